//! The small form of the bench, whole: on a real server, with every arm.

#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(output: &Path) -> PathBuf {
    let bench = Command::new(env!("CARGO_BIN_EXE_waggle-bench"))
        .args(["tap", "--quick", "--seed", "7", "--name", "quick", "--output"])
        .arg(output)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&bench.stderr);
    assert!(bench.status.success(), "the bench failed; it needs root, see the last line:\n{said}");
    let mut made = fs::read_dir(output).unwrap();
    made.next().unwrap().unwrap().path()
}

#[test]
fn the_small_form_measures_every_arm_that_loads_and_counts_every_statement() {
    let output = tempfile::tempdir().unwrap();
    let directory = run(output.path());
    let summary = fs::read_to_string(directory.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["settings"]["seed"], 7);

    let prices = summary["prices"].as_array().unwrap();
    let refused = summary["refused"].as_array().unwrap();
    for arm in ["A/A", "waggle send", "waggle syscall", "waggle uprobe", "uprobe pair"] {
        let of_arm: Vec<_> = prices.iter().filter(|price| price["arm"] == arm).collect();
        assert_eq!(of_arm.len(), 3, "{arm}: two loads and both of them; refused: {refused:?}");
        for price in of_arm.iter().filter(|_| arm != "A/A") {
            // What is captured and what the server counts are read some moments apart, and the
            // windows are short. That nothing is missing, `waggle verify` proves.
            let share = price["captured_share"].as_f64().unwrap();
            assert!((0.5..2.0).contains(&share), "{price:#}");
            assert_eq!(price["lost"], 0, "{price:#}");
        }
    }
    let fentry = refused.iter().any(|one| one["arm"] == "waggle fentry" && one["why"] != "");
    let is_measured = prices.iter().any(|price| price["arm"] == "waggle fentry");
    assert!(fentry || is_measured, "fentry is measured or refused with a reason");

    let agent = &summary["agent"];
    assert!(agent["captured"].as_u64().unwrap() > 0, "{agent}");
    assert_eq!(agent["lost"], 0);
    let run_times = summary["run_times"].as_array().unwrap();
    assert_eq!(run_times.len() % 2, 0);
    assert!(run_times.iter().all(|one| one["runs"].as_u64().unwrap() > 0), "{run_times:#?}");

    let page = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(page.contains("| waggle send |") && page.contains("A/A half-width"), "{page}");
    let windows = fs::read_to_string(directory.join("windows.csv")).unwrap();
    let of_loads = prices.iter().filter(|price| !price["load"].is_null());
    let number = |price: &serde_json::Value, name: &str| price[name].as_u64().unwrap();
    let blocks: u64 = of_loads.map(|one| number(one, "blocks") + number(one, "void_blocks")).sum();
    assert_eq!(windows.lines().count() as u64, 1 + 4 * blocks);
}

#[test]
fn a_server_that_does_not_exist_is_refused_with_the_names_of_those_that_do() {
    let bench = Command::new(env!("CARGO_BIN_EXE_waggle-bench"))
        .args(["tap", "--server", "mysql-4.1"])
        .output()
        .unwrap();
    assert!(!bench.status.success());
    assert!(String::from_utf8_lossy(&bench.stderr).contains("mariadb-10.11"));
}
