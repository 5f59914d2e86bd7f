//! `waggle ddl` on real servers: both sources list every statement of data definition once, and
//! nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy sees tests in #[test] functions only"
)]
#![allow(clippy::print_stdout, reason = "what was measured is part of a test's result")]

#[path = "ddl/destinations.rs"]
mod destinations;
#[path = "ddl/everything.rs"]
mod everything;
#[path = "ddl/locks.rs"]
mod locks;
#[path = "ddl/rights.rs"]
mod rights;
#[path = "ddl/secrets.rs"]
mod secrets;
#[path = "ddl/side_by_side.rs"]
mod side_by_side;
#[path = "ddl/sources.rs"]
mod sources;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server, ServerBuilder, Version};

/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(120);
/// The table that tells that an audit is under way; no other statement names it.
const READY: &str = "waggle_ready";
const TAP: &str = "tap";
const PFS: &str = "pfs";

/// A server with Performance Schema on and as much room as MySQL has by default.
fn builder(version: Version) -> ServerBuilder {
    Server::builder(version)
        .arg("--performance-schema=ON")
        .arg("--performance-schema-events-statements-history-long-size=10000")
}

fn start(version: Version) -> Server {
    builder(version).start().unwrap()
}

fn session(server: &Server) -> Client {
    session_of(server, Account::ROOT)
}

fn session_of(server: &Server, account: Account) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, account).unwrap()
}

/// Runs statements of which some may fail.
fn try_all(client: &mut Client, statements: &[&str]) {
    for statement in statements {
        client.query(statement).unwrap();
    }
}

/// A `waggle ddl` at work. It is killed with the test.
struct Audit {
    child: Child,
    dir: TempDir,
}

impl Audit {
    /// Starts it, and does not wait.
    fn spawn(server: &Server, source: &str, words: &[&str]) -> Audit {
        Self::spawn_as(&server.defaults_file(), server, source, words)
    }

    /// With the account of another option file; the tap needs none.
    fn spawn_as(file: &Path, server: &Server, source: &str, words: &[&str]) -> Audit {
        let dir = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
        command.arg("ddl").args(words).args(["--source", source]);
        command.env("WAGGLE_STATE_DIR", dir.path().join("state")).stdin(Stdio::null());
        match source {
            PFS => command.arg("--defaults-file").arg(file),
            _ => command.args(["--pid", &server.pid().to_string()]),
        };
        command.stdout(File::create(dir.path().join("out")).unwrap());
        command.stderr(File::create(dir.path().join("err")).unwrap());
        Audit { child: command.spawn().unwrap(), dir }
    }

    /// Starts `tail --json`, and returns when statements are listed.
    fn tail(server: &Server, source: &str, words: &[&str]) -> Audit {
        let mut audit = Audit::spawn(server, source, &[&["tail", "--json"], words].concat());
        audit.wait_until_ready(server, |audit| audit.out().contains(READY));
        audit
    }

    /// Runs a statement again and again until it is listed.
    fn wait_until_ready(&mut self, server: &Server, is_ready: impl Fn(&Audit) -> bool) {
        let mut client = session(server);
        self.wait_for("the first statement", |audit| {
            client.run(format!("DROP TABLE IF EXISTS test.{READY}")).unwrap();
            is_ready(audit)
        });
    }

    fn wait_for(&mut self, what: &str, mut is_so: impl FnMut(&Audit) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("waggle ended with {status} before {what}: {}", self.err());
            }
            assert!(begin.elapsed() < PATIENCE, "no sign of {what}: {} {}", self.err(), self.out());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until so many statements are listed, and a little longer for one too many.
    fn wait_for_statements(&mut self, wanted: usize) {
        self.wait_for("all statements", |audit| statements(&audit.lines()).len() >= wanted);
        std::thread::sleep(Duration::from_millis(1500));
    }

    fn out(&self) -> String {
        self.read("out")
    }

    fn err(&self) -> String {
        self.read("err")
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.dir.path().join(name)).unwrap()).into_owned()
    }

    fn lines(&self) -> Vec<Value> {
        lines_of(&self.out())
    }

    /// Stops it as Ctrl-C does, and gives its lines.
    fn end(mut self) -> Vec<Value> {
        self.stop();
        self.lines()
    }

    /// Stops it as Ctrl-C does.
    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.err());
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The complete lines of JSON in a text.
fn lines_of(text: &str) -> Vec<Value> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The statements, less those that told that the audit was under way.
fn statements(lines: &[Value]) -> Vec<&Value> {
    let is_one = |line: &&Value| line["type"] == "statement" && !line.to_string().contains(READY);
    lines.iter().filter(is_one).collect()
}

/// What the gaps say is missing.
fn missing(lines: &[Value]) -> u64 {
    let gaps = lines.iter().filter(|line| line["type"] == "gap");
    gaps.map(|gap| gap["missing"].as_u64().unwrap()).sum()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}
