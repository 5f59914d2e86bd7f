//! The small form of the bench, whole, on real servers.

#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Runs the small form. Gives the directory of its results.
fn bench(words: &[&str], output: &Path) -> PathBuf {
    let bench = Command::new(env!("CARGO_BIN_EXE_waggle-bench-pfs"))
        .args([&["--quick"], words, &["--output"]].concat())
        .arg(output)
        .output()
        .unwrap();
    assert!(
        bench.status.success(),
        "the bench failed:\n{}",
        String::from_utf8_lossy(&bench.stderr)
    );
    fs::read_dir(output).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn the_small_form_predicts_measures_filters_and_applies() {
    let output = tempfile::tempdir().unwrap();
    let words = ["--seed", "7", "--name", "quick"];
    let directory = bench(&words, output.path());
    let summary = fs::read_to_string(directory.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["settings"]["seed"], 7);

    let list = |name: &str| summary[name].as_array().unwrap().clone();
    let profiles: Vec<Value> =
        list("predictions").iter().map(|one| one["profile"].clone()).collect();
    assert_eq!(profiles, ["default", "waits", "stages", "everything"]);
    for one in list("predictions") {
        // From two blocks of each price the sum can be anything, less than nothing, too.
        assert!(one["predicted_ns"]["value"].is_f64(), "{one:#}");
        assert!(one["without_ns"].as_f64().unwrap() > 0.0, "{one:#}");
        assert!(one["ratio"]["high"].is_f64(), "{one:#}");
    }
    assert_eq!(list("filtering").len(), 5);
    let applying = &summary["applying"];
    assert_eq!(applying["with_ms"].as_array().unwrap().len(), 1);
    let longest = applying["without_ms"].as_array().unwrap();
    assert!(longest.iter().all(|ms| ms.as_f64().unwrap() > 0.0), "{longest:?}");
    let kinds = list("calibration");
    assert!(kinds.iter().any(|one| one["class"] == "wait/synch/mutex"), "{kinds:#?}");
    let page = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(page.contains("| read write | 2 | waits |"), "{page}");
    assert!(page.contains("| all | one |"), "{page}");
}

#[test]
fn a_part_runs_alone() {
    let output = tempfile::tempdir().unwrap();
    let directory = bench(&["--only", "filtering"], output.path());
    let page = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(page.contains("| all | one |") && page.contains("| - | not run |"), "{page}");
    assert!(!page.contains("## The prices"), "{page}");
}
