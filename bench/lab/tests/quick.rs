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
    assert_eq!(
        table.lines().filter(|line| line.contains("KEPT") || line.contains("kept |")).count(),
        5
    );
    let windows = fs::read_to_string(kept.join("windows-01.jsonl")).unwrap();
    assert_eq!(windows.lines().count(), 6 * 7);
}
