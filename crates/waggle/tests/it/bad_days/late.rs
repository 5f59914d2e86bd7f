//! Answers that come late: processors are taken away, or who looks is stopped, for seconds.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use waggle_host::Process;
use waggle_testkit::{Killed, Server, Version, wait_for, wait_until};

use crate::watching::Waggle;

/// The command of the child that reads a program, and of the one that reads memory.
const READS_PROGRAM: &str = "read-process";
const READS_MEMORY: &str = "read-memory";
/// Longer than anybody was waited for by the clock.
const TRUSTED_WAIT: Duration = Duration::from_secs(12);

fn send(pid: u32, signal: Signal) -> bool {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).is_ok()
}

/// Waggle or a child of it, stopped until this is dropped.
struct Stopped(u32);

impl Stopped {
    /// Stops it where it is at work.
    fn at_work(child: u32, is_meant: impl Fn(u32) -> bool) -> Option<Stopped> {
        let stopped = send(child, Signal::STOP).then(|| Stopped(child))?;
        let state = wait_for("the stop of the child", || {
            let state = Process::of(child).state().value().copied().unwrap_or('Z');
            matches!(state, 'T' | 'Z' | 'X').then_some(state)
        });
        (state == 'T' && is_meant(child)).then_some(stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        send(self.0, Signal::CONT);
    }
}

fn has_open(child: u32, program: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{child}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == program)
}

/// Starts waggle and stops the child that reads the program of this server, before it has told anything.
fn with_stopped_child(arguments: &[&str], program: &Path) -> (Waggle, Stopped) {
    let program = fs::canonicalize(program).unwrap();
    wait_for("a child at work", || {
        let mut waggle = Waggle::start(arguments);
        let mut child = None;
        wait_until("a child, or what it told", || {
            let mut children = waggle.children(READS_PROGRAM).into_iter();
            child = children
                .find_map(|child| Stopped::at_work(child, |child| has_open(child, &program)));
            child.is_some() || waggle.has_ended() || !waggle.printed().is_empty()
        });
        child.map(|child| (waggle, child))
    })
}

fn pids(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["pid"].as_u64()).collect()
}

#[test]
fn locks_wait_for_a_server_whose_program_is_read_late() {
    let [one, late] =
        [Version::Mysql57, Version::Mariadb114].map(|version| Server::start(version).unwrap());
    let (mut waggle, stopped) = with_stopped_child(&["locks", "--json"], late.program());
    // A look at the one server takes a moment only.
    sleep(Duration::from_secs(3));
    assert!(!waggle.has_ended(), "{}", waggle.err());
    drop(stopped);
    let ended = waggle.end();
    let seen = pids(&ended.lines());
    assert!([&one, &late].iter().all(|it| seen.contains(&it.pid().into())), "{}", ended.err);
}

/// The second one of a program is asked for when the program is read.
#[test]
fn waggle_may_be_stopped_while_it_attaches() {
    let servers = [Version::Mariadb114; 2].map(|version| Server::start(version).unwrap());
    let (waggle, child) = with_stopped_child(&["locks", "--json"], servers[0].program());
    let stopped = Stopped::at_work(waggle.pid(), |_| true).unwrap();
    drop(child);
    sleep(Duration::from_secs(3));
    drop(stopped);
    let ended = waggle.end();
    let seen = pids(&ended.lines());
    assert!(servers.iter().all(|it| seen.contains(&it.pid().into())), "{}", ended.err);
}

#[test]
fn who_reads_memory_may_be_stopped_for_seconds() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let mut waggle = Waggle::watch(&server, &["--interval", "200ms"]);
    let readers = waggle.children(READS_MEMORY);
    let stopped = Stopped::at_work(readers[0], |_| true).unwrap();
    sleep(Duration::from_secs(5));
    drop(stopped);
    waggle.wait_for_lines(3);
    assert_eq!(waggle.children(READS_MEMORY), readers, "another one took its place");
    let ended = waggle.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let is_read = |line: &Value| line["running"].is_number();
    assert!(ended.lines().iter().all(is_read), "{:#?}", ended.lines());
}

#[test]
fn a_watch_that_ends_before_the_program_is_read_says_so() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let pid = server.pid().to_string();
    let watch = ["watch", "--json", "--for", "1s", "--pid", &pid];
    let (waggle, stopped) = with_stopped_child(&watch, server.program());
    let ended = waggle.end();
    drop(stopped);
    let why = format!("pid {pid} is not watched yet: its program is still being read");
    ended.assert_refused(&[&why, "none of its statements was seen"]);
    assert_eq!(ended.out, "");
}

/// A process that runs a server's program with the arguments of one that has been, and waits for its options.
struct Starting {
    process: Killed,
    dir: TempDir,
}

impl Starting {
    fn with(mut server: Server) -> (Server, Starting) {
        let dir = tempfile::tempdir().unwrap();
        let options = dir.path().join("options");
        mknodat(CWD, &options, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        let words = fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap();
        let words: Vec<&str> = words.split('\0').filter(|word| word.starts_with("--")).collect();
        let is_of_files = |word: &&&str| ["--no-defaults", "--defaults-file"].contains(&name(word));
        let others = words.iter().filter(|word| !is_of_files(word));
        let mut command = Command::new(server.program());
        command.arg(format!("--defaults-file={}", options.display())).args(others);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        server.kill9().unwrap();
        (server, Starting { process: Killed(command.spawn().unwrap()), dir })
    }

    /// Lets it go on.
    fn give_options(&self) {
        let options = self.dir.path().join("options");
        let mut open = fs::OpenOptions::new();
        open.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // It can be opened when the server has done so.
        wait_until("the server at its options", || open.open(&options).is_ok());
    }
}

fn name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// MySQL 5.7 finds sessions by a key of its threads, which it makes when it has its options.
#[test]
fn a_server_that_starts_is_awaited_and_not_called_none() {
    let (_server, starting) = Starting::with(Server::start(Version::Mysql57).unwrap());
    let pid = starting.process.id().to_string();
    let doctor = Waggle::start(&["doctor", "--json", "--pid", &pid]).end();
    let told: Value =
        serde_json::from_str(&doctor.out).unwrap_or_else(|_| panic!("{}", doctor.err));
    let why = told["servers"][0]["why_not"].as_str().unwrap();
    assert!(why.contains("it is starting"), "{why}");

    let mut waggle = Waggle::start(&["watch", "--json", "--pid", &pid]);
    sleep(TRUSTED_WAIT / 4);
    starting.give_options();
    waggle.wait_for("an interval of the server", |waggle| !waggle.lines().is_empty());
    assert_eq!(waggle.interrupt().code, Some(0));
}

#[test]
fn a_process_that_is_a_server_in_a_moment_is_awaited() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let options = dir.path().join("options");
    mknodat(CWD, &options, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let becomes = "sleep 2; exec \"$0\" --defaults-file=\"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", becomes]).arg(server.program()).arg(&options);
    let shell = Killed(shell.spawn().unwrap());
    let waggle = Waggle::watch_pid(shell.id(), &[]);
    assert_eq!(waggle.interrupt().code, Some(0));
}
