//! A run that is interrupted goes on where it was.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Place, done, stderr, windows};

/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(120);
const ONLY: [&str; 12] = [
    "--only",
    "read-only",
    "--only",
    "1",
    "--only",
    "4",
    "--only",
    "closed",
    "--only",
    "pfson_conon_inson",
    "--blocks",
    "2",
];

/// Starts a run, and interrupts it when it was begun and has made some windows.
fn interrupt(place: &Place, signal: Signal, after: usize) {
    let mut run = place.small("rds", "mysql-8.0", &ONLY);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !place.run().join("run.json").exists() || windows(&place.run()).len() < after {
        assert!(begin.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
}

/// Processes that have something in a directory: its path is among their arguments.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let command = |entry: fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains(dir).then_some(words)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(command).collect()
}

/// Nothing of a server is left: no process, no file.
fn assert_clean(place: &Place) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) && !processes_of(&place.servers()).is_empty() {
        sleep(Duration::from_millis(20));
    }
    assert_eq!(processes_of(&place.servers()), Vec::<String>::new());
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Which window was what.
fn places(windows: &[Value]) -> Vec<String> {
    let mut places: Vec<(u64, String)> = windows
        .iter()
        .map(|one| {
            let place = format!("{} {} {}", one["block"], one["cell"], one["arm"]);
            (one["number"].as_u64().unwrap(), place)
        })
        .collect();
    places.sort();
    places.into_iter().map(|(number, place)| format!("{number} {place}")).collect()
}

/// A run that was killed before its first window, and before it had made the file for it, is listed.
fn assert_begun_without_windows(place: &Place, of: usize) {
    let file = place.run().join("windows.jsonl");
    assert_eq!(windows(&place.run()).len(), 0, "it was killed too late for this test");
    let _ = fs::remove_file(&file);
    let state = format!("0 of {of}");
    let listed = done(&place.lab(&["list"]).output().unwrap());
    assert!(listed.contains(&format!("{state} windows")), "{listed}");
    let shown = place.lab(&["show", place.run().to_str().unwrap()]).output().unwrap();
    assert!(done(&shown).contains(&state));
    assert!(!file.exists(), "looking changes nothing");
}

fn resume(place: &Place) -> Command {
    let (run, list) = (place.run(), place.list());
    place.lab(&["resume", run.to_str().unwrap(), "--servers", list.to_str().unwrap()])
}

/// What a run needs is looked at again before it goes on.
fn assert_needs_room(place: &Place) {
    let before = fs::read(place.run().join("run.json")).unwrap();
    // A file system without blocks: nothing is ever free in it.
    let refused = resume(place).env("TMPDIR", "/proc").output().unwrap();
    let said = stderr(&refused);
    assert!(refused.status.code() == Some(4) && said.contains("room on the disk"), "{said}");
    assert_eq!(fs::read(place.run().join("run.json")).unwrap(), before);
}

#[test]
fn a_run_goes_on_after_ctrl_c_and_after_a_kill_with_the_windows_of_its_seed() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let whole = Place::new();
    done(&whole.small("rds", "mysql-8.0", &ONLY).output().unwrap());
    assert!(is_empty(&whole.servers()));
    let wanted = places(&windows(&whole.run()));
    assert_eq!(wanted.len(), 2 * 2 * 3);

    for (signal, after) in [(Signal::INT, 2), (Signal::KILL, 5), (Signal::KILL, 0)] {
        let place = Place::new();
        interrupt(&place, signal, after);
        assert_clean(&place);
        let file = place.run().join("windows.jsonl");
        if after == 0 {
            assert_begun_without_windows(&place, wanted.len());
        }
        let before = fs::read(&file).unwrap_or_default();
        let made = windows(&place.run()).len();
        assert!(windows(&place.run()).len() < wanted.len());
        assert_needs_room(&place);
        done(&resume(&place).output().unwrap());
        let after = fs::read(&file).unwrap();
        assert!(after.starts_with(&before), "what was measured stays as it was");
        assert_eq!(places(&windows(&place.run())), wanted, "none is lost, none is doubled");
        // What was made before and what was made after are told apart.
        let sessions =
            windows(&place.run()).into_iter().map(|one| one["session"].as_u64().unwrap());
        let parts: Vec<u64> =
            (0..wanted.len()).map(|at| u64::from(made > 0 && at >= made)).collect();
        assert_eq!(sessions.collect::<Vec<_>>(), parts);
        assert_clean(&place);
        assert!(is_empty(&place.servers()), "no file of a server is left");
    }
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
}
