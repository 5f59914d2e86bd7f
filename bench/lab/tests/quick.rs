//! The bench itself works; what it finds is shown by its long form.
#![cfg(test)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const BENCH: &str = env!("CARGO_BIN_EXE_waggle-bench-lab");

/// Begins a small run, and stops it in its first repetition. What it said.
fn stopped(place: &Path) -> String {
    let mut child = Command::new(BENCH)
        .args(["--quick", "--output"])
        .arg(place.join("results"))
        .arg("--raw")
        .arg(place.join("raw"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("repetition 1 of 2") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    said
}

#[test]
fn a_quick_run_goes_on_after_ctrl_c_and_keeps_every_window_and_a_row_for_each_cost() {
    let place = tempfile::TempDir::new().unwrap();
    let said = stopped(place.path());
    let [kept, raw] = ["results", "raw"]
        .map(|name| fs::read_dir(place.path().join(name)).unwrap().next().unwrap().unwrap().path());
    let go_on = format!("1 of 2 repetitions are kept, and --resume {}", raw.display());
    assert!(said.contains(&go_on) && !said.contains("repetition 2 of 2"), "{said}");
    let file = raw.join("repetitions.jsonl");
    let before = fs::read(&file).unwrap();

    let ended = Command::new(BENCH).arg("--resume").arg(&raw).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("repetition 2 of 2") && !said.contains("repetition 1 of 2"), "{said}");
    let after = fs::read(&file).unwrap();
    assert!(after.starts_with(&before), "what was measured stays as it was");

    let table = fs::read_to_string(kept.join("README.md")).unwrap();
    let is_row = |line: &&str| line.ends_with("kept |") || line.ends_with("KEPT |");
    assert_eq!(table.lines().filter(is_row).count(), 5, "{table}");
    assert!(table.contains(" of 84 ("), "how many windows are void: {table}");
    assert!(table.contains("Repetitions 2 to 2: "), "each part has its machine: {table}");
    let text = String::from_utf8(after).unwrap();
    assert_eq!(text.lines().count(), 1 + 2);
    assert!(!text.contains("the injection ran"), "it runs once a statement: {text}");
    for line in text.lines().skip(1) {
        let repetition: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(repetition["windows"].as_array().unwrap().len(), 6 * 7);
    }
    let summary = fs::read_to_string(kept.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["windows_made"], 2 * 6 * 7);
    assert!(summary["windows_void"].is_u64() && summary["void_share"].is_f64(), "{summary}");
}

#[test]
fn fewer_repetitions_than_can_show_something_are_refused_before_anything_is_done() {
    let place = tempfile::TempDir::new().unwrap();
    let ended = Command::new(BENCH)
        .args(["--repetitions", "19", "--output"])
        .arg(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{said}");
    assert!(said.contains("--repetitions 19") && said.contains("--quick"), "{said}");
    assert!(fs::read_dir(place.path()).unwrap().next().is_none());
}
