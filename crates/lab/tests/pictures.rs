//! Whether the pictures of the guide are charts of the runs that are kept, and the figures of ours in README theirs.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::path::Path;

use waggle_lab::analysis::PooledEffect;
use waggle_lab::{KeptRun, Metric, Window};

/// The command of the guide, as it stands there.
const TINY: &str = "bench/results/2026-11-27-lab-rds-tiny";
/// Every number of threads.
const WHOLE: &str = "bench/results/2026-11-27-lab-rds";
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

/// The means of an arm under each workload, over all closed loads.
fn means<'a>(run: &'a KeptRun, arm: &str, baseline: &str, metric: Metric) -> Vec<&'a PooledEffect> {
    let is_it = |it: &&PooledEffect| {
        let is_of = it.arm == arm && it.baseline == baseline && it.metric == metric;
        is_of && it.workload.is_some() && !it.is_open
    };
    let means: Vec<&PooledEffect> = run.analysis.pooled.iter().filter(is_it).collect();
    let is_known = |it: &&PooledEffect| it.percent.is_known() && it.proven_percent.is_finite();
    assert!(means.len() == 3 && means.iter().all(is_known), "{arm}: {means:?}");
    means
}

/// The lowest and the highest, with so many digits after the point.
fn range(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let values: Vec<f64> = values.collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{low:.digits$} to {high:.digits$} %")
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_run_with_all_closed_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = KeptRun::read(&root.join(WHOLE)).unwrap();
    let (cpu, qps) = (Metric::CpuPerStatement, Metric::Qps);
    let (off, idle) = ("pfsoff", "pfson_conoff_insoff");
    let more =
        |arm, baseline| means(&run, arm, baseline, cpu).into_iter().map(|it| it.percent.value);
    let fewer = means(&run, "pfson_conon_inson", off, qps).into_iter().map(|it| -it.percent.value);
    let apart = more(Window::AGAIN, off).map(f64::abs).fold(0.0, f64::max);
    let proven = |arm| means(&run, arm, idle, cpu).into_iter().map(|it| it.proven_percent);
    let proven = proven("pfson_conon_insoff").chain(proven("pfson_conoff_inson"));
    let said = [
        format!(
            "everything on takes {} more processor time for a statement than off",
            range(more("pfson_conon_inson", off), 0)
        ),
        format!("costs {} of the queries per second", range(fewer, 0)),
        format!("takes {} more, by workload", range(more(Window::ALONE, off), 1)),
        format!("differed by up to {apart:.1} % in that run"),
        format!("less than {:.1} %", proven.fold(0.0, f64::max) + 0.05),
        format!("the instruments of statements {}", range(more("pfson_conon_ins_sqlon", idle), 0)),
        format!("with all instruments {}", range(more("pfson_conon_inson", idle), 0)),
    ];
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let lacking: Vec<&String> = said.iter().filter(|one| !readme.contains(*one)).collect();
    assert!(lacking.is_empty(), "README does not say: {lacking:#?}");
}
