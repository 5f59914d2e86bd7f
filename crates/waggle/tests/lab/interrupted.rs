//! A run that is interrupted goes on where it was.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;

use super::{Place, done, is_empty, limits, stderr, windows};

/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(120);
/// Arms that share a server, in turns.
const IN_TURNS: Asked<'_> = Asked {
    suite: "rds",
    server: "mysql-8.0",
    words: &[
        "--pin",
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
    ],
};

/// What is run.
struct Asked<'a> {
    suite: &'a str,
    server: &'a str,
    words: &'a [&'a str],
}

impl Asked<'_> {
    fn run(&self, place: &Place) -> Command {
        place.small(self.suite, self.server, self.words)
    }
}

/// Starts a run, and interrupts it when it was begun and has made some windows. After Ctrl-C it says that
/// it did not come to its end.
fn interrupt(asked: &Asked<'_>, place: &Place, signal: Signal, after: usize) {
    let mut run = asked.run(place);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !place.run().join("run.json").exists() || windows(&place.run()).len() < after {
        assert!(begin.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(20));
    }
    if after > 0 {
        assert_pinned(place);
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    let ended = child.wait().unwrap();
    if signal == Signal::INT {
        assert_eq!(ended.code(), Some(1), "{ended}");
    } else {
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{ended}");
    }
}

/// The server has a part of our processors, and the load the others, as the run says, and neither has a port. Both are
/// there while windows are made.
fn assert_pinned(place: &Place) {
    let ours = waggle_calibration::processors::usable().unwrap();
    let run: Value =
        serde_json::from_slice(&fs::read(place.run().join("run.json")).unwrap()).unwrap();
    let [server, load]: [Vec<usize>; 2] = serde_json::from_value(run["pinned"].clone()).unwrap();
    if ours.len() > 1 {
        let mut both = [server.clone(), load.clone()].concat();
        both.sort_unstable();
        assert_eq!(both, ours);
        assert!(!server.is_empty() && !load.is_empty());
    }
    for (program, expected) in [("mysqld", server), ("sysbench", load)] {
        let begin = Instant::now();
        let (found, sockets) = loop {
            let found = process_of(place, program);
            if let Some(found) = found.and_then(|pid| Some((processors(pid)?, sockets(pid)?))) {
                break found;
            }
            assert!(begin.elapsed() < PATIENCE, "there is no {program}");
            sleep(Duration::from_millis(20));
        };
        assert_eq!(found, expected, "{program}");
        assert!(sockets.is_disjoint(&internet_sockets()), "{program} has a port");
    }
}

/// A process that runs a program in the directory of the servers; `None` where there is none.
fn process_of(place: &Place, program: &str) -> Option<Pid> {
    let dir = place.servers();
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = words.split('\0').next().is_some_and(|first| first.ends_with(program));
        let is_it = is_it && words.contains(dir.to_str().unwrap());
        Pid::from_raw(entry.file_name().to_str()?.parse().ok()?).filter(|_| is_it)
    })
}

/// The processors that a process may use; `None` where it has ended.
fn processors(pid: Pid) -> Option<Vec<usize>> {
    let set = sched_getaffinity(Some(pid)).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|at| set.is_set(*at)).collect())
}

/// The inodes of the sockets that a process has open; `None` where it has ended.
fn sockets(pid: Pid) -> Option<BTreeSet<String>> {
    let files = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).ok()?.flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let inode = |target: PathBuf| {
        Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    Some(targets.filter_map(inode).collect())
}

/// The inodes of all sockets that have a port, of every process: the tenth column of `/proc/net/tcp` and its like
/// (proc_net(5)).
fn internet_sockets() -> BTreeSet<String> {
    let tables = ["tcp", "tcp6", "udp", "udp6"];
    let text =
        tables.map(|table| fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default());
    let lines = text.iter().flat_map(|text| text.lines().skip(1));
    lines.filter_map(|line| line.split_whitespace().nth(9)).map(str::to_owned).collect()
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

/// No process of a server is left.
fn assert_clean(place: &Place) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) && !processes_of(&place.servers()).is_empty() {
        sleep(Duration::from_millis(20));
    }
    assert_eq!(processes_of(&place.servers()), Vec::<String>::new());
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

/// Has a run say that it was begun on another machine: one with another kernel.
fn make_it_of_another_machine(place: &Place) {
    let file = place.run().join("run.json");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("\"kernel\": \"").count(), 1, "{text}");
    fs::write(&file, text.replace("\"kernel\": \"", "\"kernel\": \"another ")).unwrap();
}

/// The report says from which window on it was another machine, where windows were made on the first one.
fn assert_machines_are_told(place: &Place, made: usize) {
    let report = fs::read_to_string(place.run().join("report.md")).unwrap();
    let said = format!("Windows from {made} on were made on another machine");
    assert_eq!(report.contains(&said), made > 0, "{report}");
    let run: Value =
        serde_json::from_slice(&fs::read(place.run().join("run.json")).unwrap()).unwrap();
    let first = run["facts"]["host"]["kernel"].as_str().unwrap();
    assert_eq!(first.starts_with("another "), made > 0, "nothing was measured on it");
    let parts = run["facts"]["taken_up"].as_array().map_or(0, Vec::len);
    assert_eq!(parts, usize::from(made > 0));
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

/// Interrupts a run, each time in another place, and goes on with it: its windows are those of one that nobody
/// interrupts.
fn goes_on(asked: &Asked<'_>, interruptions: &[(Signal, usize)]) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let whole = Place::new();
    done(&asked.run(&whole).output().unwrap());
    assert!(is_empty(&whole.servers()));
    let wanted = places(&windows(&whole.run()));
    assert_eq!(wanted.len(), 2 * 2 * 3);

    for (signal, after) in interruptions.iter().copied() {
        let place = Place::new();
        interrupt(asked, &place, signal, after);
        assert_clean(&place);
        if signal == Signal::INT {
            assert!(is_empty(&place.servers()), "no file of a server is left");
        }
        let file = place.run().join("windows.jsonl");
        if after == 0 {
            assert_begun_without_windows(&place, wanted.len());
        }
        let before = fs::read(&file).unwrap_or_default();
        let made = windows(&place.run()).len();
        assert!(windows(&place.run()).len() < wanted.len());
        make_it_of_another_machine(&place);
        assert_needs_room(&place);
        done(&resume(&place).output().unwrap());
        let after = fs::read(&file).unwrap();
        assert!(after.starts_with(&before), "what was measured stays as it was");
        assert_eq!(places(&windows(&place.run())), wanted, "none is lost, none is doubled");
        // What was made before and what was made after are told apart.
        let sessions = windows(&place.run()).into_iter().map(|one| one["part"].as_u64().unwrap());
        let parts: Vec<u64> =
            (0..wanted.len()).map(|at| u64::from(made > 0 && at >= made)).collect();
        assert_eq!(sessions.collect::<Vec<_>>(), parts);
        assert_machines_are_told(&place, made);
        assert_clean(&place);
        assert!(is_empty(&place.servers()), "no file of a server is left");
    }
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
}

#[test]
fn a_run_goes_on_after_ctrl_c_and_after_a_kill_with_the_windows_of_its_seed() {
    goes_on(&IN_TURNS, &[(Signal::INT, 2), (Signal::KILL, 5), (Signal::KILL, 0)]);
}

#[test]
fn so_does_one_with_a_server_for_each_window_and_with_a_load_at_a_fixed_rate() {
    let files = Place::new();
    let suite = limits::suite(&files, "one_after_another", &[]);
    let words = ["--pin", "--blocks", "2"];
    let asked = Asked { suite: &suite, server: "mysql-5.7", words: &words };
    goes_on(&asked, &[(Signal::INT, 2), (Signal::KILL, 7)]);
}
