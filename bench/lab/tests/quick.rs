//! The bench itself works; what it finds is shown by its long form.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::process::Command;

#[test]
fn a_quick_run_keeps_every_window_and_a_row_for_each_cost() {
    let place = tempfile::TempDir::new().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_waggle-bench-lab"))
        .args(["--quick", "--output"])
        .arg(place.path())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let kept = fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    let table = fs::read_to_string(kept.join("README.md")).unwrap();
    let is_row = |line: &&str| line.ends_with("kept |") || line.ends_with("KEPT |");
    assert_eq!(table.lines().filter(is_row).count(), 5, "{table}");
    assert!(table.contains(" of 84 ("), "how many windows are void: {table}");
    for name in ["windows-00.jsonl", "windows-01.jsonl"] {
        let windows = fs::read_to_string(kept.join(name)).unwrap();
        assert_eq!(windows.lines().count(), 6 * 7);
        assert!(!windows.contains("the injection ran"), "it runs once a statement: {windows}");
    }
    let summary = fs::read_to_string(kept.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["windows_made"], 2 * 6 * 7);
    assert!(summary["windows_void"].is_u64() && summary["void_share"].is_f64(), "{summary}");
}

#[test]
fn fewer_repetitions_than_can_show_something_are_refused_before_anything_is_done() {
    let place = tempfile::TempDir::new().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_waggle-bench-lab"))
        .args(["--repetitions", "19", "--output"])
        .arg(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{said}");
    assert!(said.contains("--repetitions 19") && said.contains("--quick"), "{said}");
    assert!(fs::read_dir(place.path()).unwrap().next().is_none());
}
