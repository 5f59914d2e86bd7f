//! The small form of the bench, whole, on real servers.
#![cfg(test)]

use serde_json::Value;
use waggle_bench_frame::Quick;

const BENCH: &str = env!("CARGO_BIN_EXE_waggle-bench-pfs");

#[test]
fn the_small_form_predicts_measures_filters_and_applies() {
    let Quick { summary, page } = Quick::run(BENCH, &[]).unwrap();
    let list = |name: &str| summary[name].as_array().unwrap().clone();
    let profiles: Vec<Value> =
        list("predictions").iter().map(|one| one["profile"].clone()).collect();
    assert_eq!(profiles, ["default", "waits", "stages", "everything"]);
    for one in list("predictions") {
        // From two blocks of each price the sum can be anything. Where it is below 0, there is no ratio.
        let predicted = one["predicted_ns"]["value"].as_f64().unwrap();
        assert!(one["without_ns"].as_f64().unwrap() > 0.0, "{one:#}");
        assert_eq!(one["ratio"]["high"].is_f64(), predicted > 0.0, "{one:#}");
    }
    assert_eq!(list("filtering").len(), 5);
    let applying = &summary["applying"];
    assert_eq!(applying["with_ms"].as_array().unwrap().len(), 1);
    let longest = applying["without_ms"].as_array().unwrap();
    assert!(longest.iter().all(|ms| ms.as_f64().unwrap() > 0.0), "{longest:?}");
    let kinds = list("calibration");
    assert!(kinds.iter().any(|one| one["class"] == "wait/synch/mutex"), "{kinds:#?}");
    assert!(page.contains("| read write | 2 | waits |"), "{page}");
    assert!(page.contains("| all | one |"), "{page}");
}

#[test]
fn a_part_runs_alone() {
    let page = Quick::run(BENCH, &["--only", "filtering"]).unwrap().page;
    assert!(page.contains("| all | one |") && page.contains("| - | not run |"), "{page}");
    assert!(!page.contains("## The prices"), "{page}");
}
