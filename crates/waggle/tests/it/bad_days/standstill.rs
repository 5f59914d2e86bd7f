//! A server that is stopped as a whole: by a signal, a debugger, or the freezer of its control group.

use std::fs;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_testkit::client::Command;
use waggle_testkit::{Account, Client, Killed, Server, Version, wait_until};

use super::control_group::{ControlGroup, Setting};
use crate::load::session;
use crate::tmux::Tmux;
use crate::watched;
use crate::watching::{WAGGLE, Waggle};

/// What goes on again when this is dropped.
pub(super) struct Goes<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for Goes<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

pub(super) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// How a group is frozen in each version.
const FREEZERS: [Setting; 3] = [
    ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN"),
    ("/sys/fs/cgroup/unified", "cgroup.freeze", "1"),
    ("/sys/fs/cgroup", "cgroup.freeze", "1"),
];

fn has_state(line: &Value, state: &str, words: &str) -> bool {
    line["state"] == state && line["standstill"].as_str().unwrap_or_default().contains(words)
}

/// All that is shown of a server that stands still says so, in these words.
fn is_told(server: &Server, waggle: &mut Waggle, state: &str, words: &str) {
    let pid = server.pid().to_string();
    waggle.wait_for(state, |waggle| has_state(waggle.lines().last().unwrap(), state, words));
    let mut table = Waggle::start(&["watch", "--table", "--interval", "300ms", "--pid", &pid]);
    let line = |text: &str| text.lines().take(3).any(|line| line.starts_with(words));
    table.wait_for("the table", |table| line(&table.printed()));
    let view = Tmux::start(80, 24);
    view.command(&format!("{WAGGLE} watch --pid {pid}"));
    view.wait_for("the view", line);
    view.quit();
    let locks = Waggle::start(&["locks", "--pid", &pid]).end();
    assert_eq!((locks.code, &*locks.out), (Some(4), ""), "{}", locks.err);
    assert!(locks.err.contains(words), "{}", locks.err);
    // An account cannot be asked either.
    let file = server.option_file(Account::ROOT).unwrap();
    let mut options = fs::read_to_string(&file).unwrap();
    options.push_str("\nconnect-timeout = 5\n");
    fs::write(&file, options).unwrap();
    let asked = Waggle::start(&["locks", "--defaults-file", file.to_str().unwrap()]).end();
    assert_eq!((asked.code, &*asked.out), (Some(4), ""), "{}", asked.err);
    assert!(asked.err.contains(words), "{}", asked.err);
    let doctor = Waggle::start(&["doctor", "--pid", &pid]).end();
    assert_eq!(doctor.code, Some(1), "{}", doctor.err);
    assert!(doctor.out.contains(words), "{}", doctor.out);
    let servers = Waggle::start(&["servers", "--json"]).end().lines();
    let row = servers.iter().find(|row| row["pid"] == server.pid()).unwrap();
    assert!(row["standstill"].as_str().unwrap().contains(words), "{row}");
}

/// A server that runs a statement, and who watches it.
fn at_work(version: Version, sql: &str) -> (Server, Client, Waggle) {
    let server = Server::start(version).unwrap();
    let mut client = session(&server);
    client.send(Command::Query, sql.as_bytes()).unwrap();
    let mut waggle = Waggle::watch(&server, &["--interval", "300ms"]);
    goes_on(&server, &mut waggle);
    (server, client, waggle)
}

/// While the server stands still, its session says so. Returns since when that is so at least.
fn session_is_stopped(waggle: &mut Waggle) -> Instant {
    waggle.wait_for("the session is stopped", |waggle| {
        waggle.lines().last().unwrap()["sessions"][0]["waits_for"] == "stopped"
    });
    Instant::now()
}

/// The statement that stood still ends, and tells that it did so for that long.
fn time_is_told(server: &Server, client: &mut Client, waggle: &mut Waggle, at_least: Duration) {
    session(server).run(format!("KILL QUERY {}", client.connection_id())).unwrap();
    // Who is interrupted may get an error.
    let _ = client.read_reply();
    let told_us = |waggle: &Waggle| -> u64 {
        let lines = waggle.lines();
        let digests = watched::digests(&lines, "DO ").into_iter();
        digests.filter_map(|digest| digest["time_us"]["stopped"].as_u64()).sum()
    };
    waggle.wait_for("its time", |waggle| told_us(waggle) > 0);
    let (told_us, held_us) = (told_us(waggle), at_least.as_micros());
    assert!(u128::from(told_us) >= held_us, "{told_us} µs, and it was held for {held_us}");
}

fn goes_on(server: &Server, waggle: &mut Waggle) {
    waggle.wait_for("it runs", |waggle| has_state(waggle.lines().last().unwrap(), "runs", ""));
    let pid = server.pid().to_string();
    let locks = Waggle::start(&["locks", "--pid", &pid]).end();
    assert_eq!(locks.code, Some(0), "{}", locks.err);
}

#[test]
fn a_server_that_a_signal_stopped_is_shown_so_and_nobody_says_that_nobody_waits() {
    for version in [Version::Mysql80, Version::Mariadb114] {
        let (server, mut client, mut waggle) = at_work(version, "DO SLEEP(1000)");
        let pid = server.pid();
        send(pid, Signal::STOP);
        let goes = Goes(|| send(pid, Signal::CONT));
        let words = format!("STOPPED by a signal (SIGSTOP); to resume it: kill -CONT {pid}");
        let since = session_is_stopped(&mut waggle);
        is_told(&server, &mut waggle, "stopped", &words);
        let at_least = since.elapsed();
        drop(goes);
        goes_on(&server, &mut waggle);
        time_is_told(&server, &mut client, &mut waggle, at_least);
    }
}

/// A debugger that holds all threads of a process until its input ends.
fn debugger(pid: u32) -> Killed {
    let mut gdb = Program::new("setpriv");
    gdb.args(["--pdeathsig", "KILL", "gdb", "-nx", "-quiet"]);
    gdb.args(["-iex", "set auto-solib-add off", "-iex", "set debuginfod enabled off"]);
    gdb.args(["-p", &pid.to_string()]).stdin(Stdio::piped());
    Killed(gdb.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_server_that_a_debugger_holds_is_shown_so() {
    for version in [Version::Mysql80, Version::Mariadb114] {
        let (server, mut client, mut waggle) = at_work(version, "DO SLEEP(1000)");
        let mut gdb = debugger(server.pid());
        let words =
            format!("STOPPED: a debugger (pid {}) holds the process; resume it there", gdb.id());
        let since = session_is_stopped(&mut waggle);
        is_told(&server, &mut waggle, "traced", &words);
        let at_least = since.elapsed();
        drop(gdb.stdin.take());
        wait_until("the debugger lets go", || gdb.try_wait().unwrap().is_some());
        goes_on(&server, &mut waggle);
        time_is_told(&server, &mut client, &mut waggle, at_least);
    }
}

#[test]
fn a_server_whose_control_group_is_frozen_is_shown_so() {
    // The freezer of version 1 does not touch who sleeps.
    let busy = "DO BENCHMARK(1000000000000, MD5('busy'))";
    let is_mounted = |mount: &&Setting| Path::new(mount.0).join("cgroup.procs").exists();
    let has_newer = FREEZERS[1..].iter().any(|mount| is_mounted(&mount));
    let newer = has_newer.then_some((&FREEZERS[1..], "DO SLEEP(1000)"));
    for (freezers, sql) in [(&FREEZERS[..], busy)].into_iter().chain(newer) {
        let (server, mut client, mut waggle) = at_work(Version::Mariadb1011, sql);
        let pid = server.pid();
        let (group, frozen) = ControlGroup::of(pid, freezers);
        let thawed = if frozen == "1" { "0" } else { "THAWED" };
        let goes = Goes(|| group.write(thawed));
        group.write(frozen);
        let words = format!("FROZEN with its control group; to thaw it write {thawed} to");
        let since = session_is_stopped(&mut waggle);
        is_told(&server, &mut waggle, "frozen", &words);
        let told = &waggle.lines().pop().unwrap()["standstill"];
        assert!(told.as_str().unwrap().ends_with(group.file.to_str().unwrap()), "{told}");
        let at_least = since.elapsed();
        drop(goes);
        goes_on(&server, &mut waggle);
        time_is_told(&server, &mut client, &mut waggle, at_least);
    }
}
