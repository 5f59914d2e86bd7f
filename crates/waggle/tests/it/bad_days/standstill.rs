//! A server that is stopped as a whole.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_testkit::client::Command;
use waggle_testkit::{Server, Version, wait_until};

use crate::load::session;
use crate::tmux::Tmux;
use crate::watching::{WAGGLE, Waggle};

/// What goes on again when this is dropped.
struct Goes<F: FnMut()>(F);

impl<F: FnMut()> Drop for Goes<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A control group of a version, its file that freezes it, and what is written there.
struct Freezer {
    group: PathBuf,
    mount: &'static Path,
    file: &'static str,
    words: [&'static str; 2],
}

impl Freezer {
    /// The first that this host has.
    fn make(name: &str) -> Freezer {
        let kinds = [
            ("/sys/fs/cgroup/freezer", "freezer.state", ["FROZEN", "THAWED"]),
            ("/sys/fs/cgroup/unified", "cgroup.freeze", ["1", "0"]),
            ("/sys/fs/cgroup", "cgroup.freeze", ["1", "0"]),
        ];
        let made = kinds.into_iter().find_map(|(mount, file, words)| {
            let mount = Path::new(mount);
            let group = mount.join(name);
            mount.join("cgroup.procs").exists().then(|| fs::create_dir(&group).unwrap())?;
            Some(Freezer { group, mount, file, words })
        });
        made.expect("this host has control groups")
    }

    fn write(&self, word: usize) {
        fs::write(self.group.join(self.file), self.words[word]).unwrap();
    }

    fn take(folder: &Path, pid: u32) {
        fs::write(folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

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
}

/// A server at work, and who watches it.
fn watched(version: Version) -> (Server, Waggle) {
    let server = Server::start(version).unwrap();
    let mut client = session(&server);
    client.send(Command::Query, b"DO SLEEP(1000)").unwrap();
    let mut waggle = Waggle::watch(&server, &["--interval", "300ms"]);
    goes_on(&server, &mut waggle);
    (server, waggle)
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
        let (server, mut waggle) = watched(version);
        let pid = server.pid();
        send(pid, Signal::STOP);
        let goes = Goes(|| send(pid, Signal::CONT));
        let words = format!("STOPPED: the process is stopped (SIGSTOP); kill -CONT {pid} goes on");
        is_told(&server, &mut waggle, "stopped", &words);
        drop(goes);
        goes_on(&server, &mut waggle);
    }
}

#[test]
fn a_server_whose_control_group_is_frozen_is_shown_so() {
    let (server, mut waggle) = watched(Version::Mariadb1011);
    let pid = server.pid();
    let freezer = Freezer::make(&format!("waggle-test-{}", std::process::id()));
    let goes = Goes(|| {
        freezer.write(1);
        Freezer::take(freezer.mount, pid);
        wait_until("the group is empty", || fs::remove_dir(&freezer.group).is_ok());
    });
    Freezer::take(&freezer.group, pid);
    freezer.write(0);
    let words = format!("FROZEN by its control group; {} goes on, in", freezer.words[1]);
    is_told(&server, &mut waggle, "frozen", &words);
    let told = &waggle.lines().pop().unwrap()["standstill"];
    let file = freezer.group.join(freezer.file);
    assert!(told.as_str().unwrap().ends_with(file.to_str().unwrap()), "{told}");
    drop(goes);
    goes_on(&server, &mut waggle);
}
