//! Whether the pictures of the guide are charts of the runs that are kept.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::path::Path;

use waggle_lab::KeptRun;

/// The command of the guide, as it stands there.
const TINY: &str = "bench/results/2026-11-26-lab-rds-tiny";
/// Every number of threads.
const WHOLE: &str = "bench/results/2026-11-26-lab-rds";
/// Pictures of the guide, the runs that they are of, and the names of the charts.
const CHARTS: [(&str, &str, &str); 5] = [
    ("lab-qps.svg", WHOLE, "read-only-qps-by-threads"),
    ("lab-change.svg", WHOLE, "read-only-change-of-qps-against-pfsoff-by-threads"),
    ("lab-forest.svg", WHOLE, "read-only-change-of-processor-time-per-statement-in-every-cell"),
    ("lab-noise.svg", WHOLE, "noise-floor-arms-that-are-set-alike-compared-with-each-other-a-a"),
    ("lab-windows.svg", TINY, "read-only-32-threads-every-window"),
];
const PICTURES: &str = "docs/pictures";

#[test]
fn the_pictures_of_the_guide_are_charts_of_the_runs_that_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/guide/lab.md")).unwrap();
    for (file, run, name) in CHARTS {
        let charts = KeptRun::read(&root.join(run)).unwrap().report().charts();
        let chart = charts.iter().find(|chart| chart.name == name);
        let names = || charts.iter().map(|chart| chart.name.as_str()).collect::<Vec<_>>();
        let chart = chart.unwrap_or_else(|| panic!("no chart {name}; there are {:?}", names()));
        assert!(guide.contains(&format!("(../pictures/{file})")), "{file} is not in the guide");
        let path = root.join(PICTURES).join(file);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &chart.svg).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let how = "run UPDATE=1 cargo test -p waggle-lab --test pictures, and commit it";
        assert!(kept == chart.svg, "{file} is not the chart of {run}: {how}");
    }
}
