//! Whether the pictures of the guide and the costs in `docs/measured.md` come from the runs that are kept.
#![cfg(test)]

#[path = "kept_runs/page.rs"]
mod page;

use std::fs;
use std::path::Path;

use page::assert_written;
use waggle_lab::analysis::PooledEffect;
use waggle_lab::{Metric, StoredRun, Window};

/// The command of the guide, as it stands there.
const TINY: &str = "bench/results/2026-11-27-lab-rds-tiny";
/// Every number of threads.
const WHOLE: &str = "bench/results/2026-11-27-lab-rds";
/// Pictures of the guide, the runs that they are of, and the names of the charts.
const CHARTS: [(&str, &str, &str); 5] = [
    ("lab-qps.svg", WHOLE, "read-only-qps-by-threads"),
    ("lab-change.svg", WHOLE, "read-only-change-of-qps-against-pfsoff-by-threads"),
    ("lab-forest.svg", WHOLE, "read-only-change-of-cpu-time-per-statement-in-every-cell"),
    ("lab-noise.svg", WHOLE, "noise-floor-arms-that-are-set-alike-compared-with-each-other-a-a"),
    ("lab-windows.svg", TINY, "read-only-32-threads-every-window"),
];
const PICTURES: &str = "docs/pictures";

fn stored(run: &str) -> StoredRun {
    StoredRun::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(run)).unwrap()
}

#[test]
fn the_pictures_of_the_guide_are_charts_of_the_runs_that_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/guide/lab.md")).unwrap();
    for (file, run, name) in CHARTS {
        let charts = stored(run).report().charts();
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

const OFF: &str = "pfsoff";
const IDLE: &str = "pfson_conoff_insoff";
const EVERYTHING: &str = "pfson_conon_inson";
/// The rows of `docs/measured.md`: what is on, the arm, and what it is compared with.
const COSTS: [(&str, &str, &str); 7] = [
    ("everything on", EVERYTHING, OFF),
    ("on, collects nothing, on a server of its own", Window::ALONE, OFF),
    ("off, on another server (noise)", Window::AGAIN, OFF),
    ("all consumers, no instruments", "pfson_conon_insoff", IDLE),
    ("all instruments, no consumers", "pfson_conoff_inson", IDLE),
    ("all consumers, instruments of statements", "pfson_conon_ins_sqlon", IDLE),
    ("everything on", EVERYTHING, IDLE),
];
const WORKLOADS: [&str; 3] = ["read-only", "read-write", "write-only"];

/// The mean change of an arm under a workload, over all closed loads, with its interval.
fn mean(run: &StoredRun, arm: &str, baseline: &str, metric: Metric, workload: &str) -> String {
    let is_it = |it: &&PooledEffect| {
        let is_of = it.arm == arm && it.baseline == baseline && it.metric == metric;
        is_of && it.workload.as_deref() == Some(workload) && !it.is_open
    };
    let means: Vec<&PooledEffect> = run.analysis.pooled.iter().filter(is_it).collect();
    let [mean] = means[..] else { panic!("{arm} under {workload}: {means:?}") };
    let change = mean.percent;
    assert!(change.is_known(), "{mean:?}");
    format!("{:+.1} % ({:+.1} to {:+.1})", change.value, change.low, change.high)
}

/// The section of the page: a row for each cost, a column for each workload.
fn costs_of_performance_schema() -> String {
    let run = stored(WHOLE);
    let mut table = format!(
        "Run `{WHOLE}`: suite `rds`, MySQL 9.7, mean over 1 to 1,024 sessions. Each cell has the \
         change and its 95 % interval.\n\n| Performance Schema | compared with | metric | {} \
         |\n|---|---|---|---|---|---|\n",
        WORKLOADS.join(" | ")
    );
    for (setting, arm, baseline) in COSTS {
        let against = if baseline == OFF { "off" } else { "on, collects nothing" };
        for (metric, name) in [
            (Metric::CpuPerStatement, "server CPU per statement"),
            (Metric::Qps, "queries per second"),
        ] {
            let cells = WORKLOADS.map(|workload| mean(&run, arm, baseline, metric, workload));
            let cells = cells.join(" | ");
            table.push_str(&format!("| {setting} | {against} | {name} | {cells} |\n"));
        }
    }
    table
}

#[test]
fn the_costs_of_performance_schema_on_the_page_are_those_of_the_run_with_all_closed_loads() {
    assert_written("docs/measured.md", "pictures", &[costs_of_performance_schema()]);
}
