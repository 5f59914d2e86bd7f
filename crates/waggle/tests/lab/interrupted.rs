//! A run that is interrupted goes on where it was.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_host::processors::{usable, usable_by};
use waggle_testkit::{wait_for, wait_showing, wait_until};

use super::{Place, done, ended, is_empty, limits, windows};

/// What is run: a small suite of two scenarios, of which this has the way that arms get their servers, and one kind
/// of load.
#[derive(Clone, Copy)]
struct Asked {
    servers: &'static str,
    load: &'static str,
    /// Blocks of three windows.
    blocks: usize,
}

impl Asked {
    fn run(self, place: &Place) -> Command {
        let blocks = self.blocks.to_string();
        let words = ["--pin", "--blocks", &blocks, "--only", self.load];
        place.small(&limits::suite(place, self.servers, &[]), "mysql-5.7", &words)
    }
}

/// Starts a run, or goes on with it, and interrupts it when it has made some windows more. After Ctrl-C it
/// says that it did not come to its end.
fn interrupt(mut run: Command, place: &Place, signal: Signal, more: usize) {
    let after = windows(&place.run()).len() + more;
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("its first windows", || {
        assert!(child.try_wait().unwrap().is_none());
        place.run().join("run.json").exists() && windows(&place.run()).len() >= after
    });
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
    let ours = usable().unwrap();
    let run = place.run_json();
    let [server, load]: [Vec<usize>; 2] = serde_json::from_value(run["pinned"].clone()).unwrap();
    if ours.len() > 1 {
        let mut both = [server.clone(), load.clone()].concat();
        both.sort_unstable();
        assert_eq!(both, ours);
        assert!(!server.is_empty() && !load.is_empty());
    }
    for (program, expected) in [("mysqld", server), ("sysbench", load)] {
        let (found, sockets) = wait_for(program, || {
            process_of(place, program).and_then(|pid| Some((usable_by(pid).ok()?, sockets(pid)?)))
        });
        assert_eq!(found, expected, "{program}");
        assert!(sockets.is_disjoint(&internet_sockets()), "{program} has a port");
    }
}

/// A process that runs a program in the directory of the servers; `None` where there is none.
fn process_of(place: &Place, program: &str) -> Option<u32> {
    let dir = place.servers();
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = words.split('\0').next().is_some_and(|first| first.ends_with(program));
        let is_it = is_it && words.contains(dir.to_str().unwrap());
        entry.file_name().to_str()?.parse().ok().filter(|_| is_it)
    })
}

/// The inodes of the sockets that a process has open; `None` where it has ended.
fn sockets(pid: u32) -> Option<BTreeSet<String>> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
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
    wait_showing("no process of a server is left", || {
        let left = processes_of(&place.servers());
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    });
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
    let listed = done(place.lab(&["list"]).output());
    assert!(listed.contains(&format!("{state} windows")), "{listed}");
    let shown = done(place.lab(&["show", place.run().to_str().unwrap()]).output());
    assert!(shown.contains(&state));
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

/// The report says from which window on it was another machine: where the run went on for the first time with
/// windows of another one.
fn assert_machines_are_told(place: &Place, starts: &[usize]) {
    let report = fs::read_to_string(place.run().join("report.md")).unwrap();
    let said = format!("Windows from {} on were made on another machine", starts[0]);
    assert!(report.contains(&said), "{report}");
    let run = place.run_json();
    assert!(run["facts"]["host"]["kernel"].as_str().unwrap().starts_with("another "));
    assert_eq!(run["facts"]["taken_up"].as_array().unwrap().len(), starts.len());
}

/// What a run needs is looked at again before it goes on.
fn assert_needs_room(place: &Place) {
    let before = fs::read(place.run().join("run.json")).unwrap();
    // A file system without blocks: nothing is ever free in it.
    let said = ended(resume(place).env("TMPDIR", "/proc").output(), 4);
    assert!(said.contains("room on the disk"), "{said}");
    assert_eq!(fs::read(place.run().join("run.json")).unwrap(), before);
}

/// Looks at a run that was interrupted, and returns how many windows it has.
fn look_at_interrupted(place: &Place, signal: Signal, more: usize, of: usize) -> usize {
    assert_clean(place);
    if signal == Signal::INT {
        assert!(is_empty(&place.servers()), "no file of a server is left");
    }
    if more == 0 {
        assert_begun_without_windows(place, of);
    }
    let made = windows(&place.run()).len();
    assert!(made < of);
    assert_needs_room(place);
    made
}

/// A run that nobody interrupts, and what it has where while it makes its windows.
fn whole(asked: Asked) -> Vec<String> {
    let place = Place::new();
    let mut run = asked.run(&place);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("its first window", || !windows(&place.run()).is_empty());
    assert_pinned(&place);
    done(child.wait_with_output());
    assert!(is_empty(&place.servers()));
    places(&windows(&place.run()))
}

/// Interrupts a run, again and again, and goes on with it: its windows are those of one that nobody interrupts.
fn goes_on(asked: Asked, interruptions: &[(Signal, usize)]) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let wanted = whole(asked);
    assert_eq!(wanted.len(), 3 * asked.blocks);

    let place = Place::new();
    let file = place.run().join("windows.jsonl");
    let mut run = asked.run(&place);
    // Where the run went on with windows that it had.
    let mut starts = Vec::new();
    let mut before = Vec::new();
    for (signal, more) in interruptions.iter().copied() {
        interrupt(run, &place, signal, more);
        let made = look_at_interrupted(&place, signal, more, wanted.len());
        if starts.is_empty() {
            make_it_of_another_machine(&place);
        }
        starts.extend(Some(made).filter(|made| *made > 0));
        let kept = fs::read(&file).unwrap_or_default();
        assert!(kept.starts_with(&before), "what was measured stays as it was");
        before = kept;
        run = resume(&place);
    }
    done(run.output());
    assert!(fs::read(&file).unwrap().starts_with(&before), "what was measured stays as it was");
    assert_eq!(places(&windows(&place.run())), wanted, "none is lost, none is doubled");
    // What was made before and what was made after are told apart.
    let parts = windows(&place.run()).into_iter().map(|one| one["part"].as_u64().unwrap() as usize);
    let expected = (0..wanted.len()).map(|at| starts.iter().filter(|start| **start <= at).count());
    assert!(parts.eq(expected), "{starts:?}");
    assert_machines_are_told(&place, &starts);
    assert_clean(&place);
    assert!(is_empty(&place.servers()), "no file of a server is left");
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
}

#[test]
fn a_run_goes_on_after_ctrl_c_and_after_a_kill_with_the_windows_of_its_seed() {
    // Its windows are kept a block at a time.
    let asked = Asked { servers: "side_by_side", load: "closed", blocks: 3 };
    goes_on(asked, &[(Signal::KILL, 0), (Signal::INT, 1), (Signal::KILL, 1)]);
}

#[test]
fn so_does_one_with_a_server_for_each_window_and_with_a_load_at_a_fixed_rate() {
    let asked = Asked { servers: "one_after_another", load: "open", blocks: 2 };
    goes_on(asked, &[(Signal::INT, 1), (Signal::KILL, 1)]);
}
