//! `waggle pfs` and `waggle innodb` on real servers: what they set is there while it holds, and gone after,
//! however it ends.
#![cfg(test)]
#![allow(dead_code, reason = "the other tests use all of what they share")]

mod background;
mod calibrating;
mod costing;
mod counting;
mod death;
mod filters;
mod guarding;
mod holding;
mod holding_everything;
mod idle;
mod innodb;
#[path = "../it/load.rs"]
mod load;
mod locked;
mod plan_by_hand;
mod planning;
mod prices;
mod proving;
mod rights;
mod seeing;
mod setting;
#[path = "../it/size.rs"]
mod size;
mod switched_off;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use waggle_instrumentation::journal::{Contents, all};
use waggle_instrumentation::{Change, State, Table};
use waggle_mysql::{Connection, Options, Sources};
use waggle_testkit::{Leased, Server, Version, wait_for};

/// A server with Performance Schema on, and a place for journals.
struct Scene {
    server: Leased,
    state: TempDir,
}

impl Scene {
    fn of(version: Version) -> Self {
        Self::with(version, ["--performance-schema=ON"])
    }

    fn with<S: Into<String>>(version: Version, options: impl IntoIterator<Item = S>) -> Self {
        let builder = options.into_iter().fold(Server::builder(version), |all, one| all.arg(one));
        Self { server: builder.lease().unwrap(), state: TempDir::new().unwrap() }
    }

    fn connect(&self) -> Connection {
        self.connect_as(&self.server.defaults_file())
    }

    /// With the account of another option file.
    fn connect_as(&self, defaults_file: &Path) -> Connection {
        let file = Some(defaults_file.to_owned());
        let options = Options::read(&Sources { defaults_file: file, ..Sources::default() });
        Connection::open(&options.unwrap()).unwrap()
    }

    /// The option file of an account that has these rights and no others.
    fn few(&self, grants: &[&str]) -> PathBuf {
        self.server.few(grants).unwrap()
    }

    /// What is set, less the threads: those of clients come and go.
    fn read(&self) -> State {
        State::read(&mut self.connect()).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        self.command_as(&self.server.defaults_file(), words)
    }

    /// With the account of another option file.
    fn command_as(&self, defaults_file: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
        let group = (!["innodb", "ddl", "prove"].contains(&words[0])).then_some("pfs");
        command.args(group).args(words).env("WAGGLE_STATE_DIR", self.state.path());
        command.arg("--defaults-file").arg(defaults_file);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command, which ends with this code and says all of these words beside its output.
    fn assert_run(&self, words: &[&str], code: i32, said: &[&str]) {
        self.assert_run_as(&self.server.defaults_file(), words, code, said);
    }

    /// With the account of another option file.
    fn assert_run_as(&self, defaults_file: &Path, words: &[&str], code: i32, said: &[&str]) {
        let output = self.command_as(defaults_file, words).output().unwrap();
        let about = format!("{} {words:?}", self.server.version());
        assert_ended(&output, code, said, about);
    }

    fn spawn(&self, words: &[&str]) -> Holding {
        let child = self.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Holding(Some(child.unwrap()))
    }

    /// Begins to hold, and waits until every change is made.
    fn hold(&self, words: &[&str]) -> Holding {
        let holding = self.spawn(words);
        wait_for("the changes", || {
            let contents = self.contents().pop().filter(|contents| contents.undone.is_none())?;
            let state = self.read();
            let is_made = |change: &Change| {
                let now = state.row(change.table, &change.key);
                // A thread can have ended.
                now == change.after.as_ref() || now.is_none() && change.table == Table::Threads
            };
            let changes = contents.changes;
            let is_whole = contents.planned.is_some_and(|planned| changes.len() >= planned.rows);
            (is_whole && changes.iter().all(is_made)).then_some(())
        });
        holding
    }

    /// What `waggle pfs history` prints; it asks no server.
    fn history(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
        command.args(["pfs", "history"]).env("WAGGLE_STATE_DIR", self.state.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn journals(&self) -> PathBuf {
        self.state.path().join("journal")
    }

    /// The journals, the oldest first.
    fn contents(&self) -> Vec<Contents> {
        all(&self.journals()).unwrap().into_iter().map(Result::unwrap).collect()
    }
}

/// A command that holds changes. It is killed with the test.
struct Holding(Option<Child>);

impl Holding {
    /// Ends it as Ctrl-C does.
    fn end(mut self) -> Output {
        let child = self.0.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Waits until it ends by itself.
    fn wait(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Ends it as the kernel does when there is no memory left.
    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The process that guards a journal, by its arguments.
fn guardian_of(journal: &Path) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.find(|pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        words.any(|word| word == b"guardian")
            && words.any(|word| word == journal.as_os_str().as_encoded_bytes())
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// That a command ended with this code, and said all of these words beside its output.
fn assert_ended(output: &Output, code: i32, words: &[&str], about: impl Display) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{about}: {said}");
    for word in words {
        assert!(said.contains(word), "{about}: no {word:?} in {said}");
    }
}
