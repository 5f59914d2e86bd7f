//! `waggle ddl` on real servers: both sources list every statement of data definition once, and
//! nothing else.
#![cfg(test)]

mod destinations;
mod everything;
mod locks;
mod rights;
mod secrets;
mod side_by_side;
mod sources;
#[path = "../it/watching.rs"]
#[expect(dead_code, reason = "the other tests use all of what they share")]
mod watching;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, PATIENCE, Server, ServerBuilder, Version};

use watching::Waggle;

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

/// A `waggle ddl` at work.
struct Audit(Waggle);

impl Audit {
    /// Starts it, and does not wait.
    fn spawn(server: &Server, source: &str, words: &[&str]) -> Audit {
        Self::spawn_as(&server.defaults_file(), server, source, words)
    }

    /// With the account of another option file; the tap needs none.
    fn spawn_as(file: &Path, server: &Server, source: &str, words: &[&str]) -> Audit {
        let (file, pid) = (file.to_str().unwrap(), server.pid().to_string());
        let whom = if source == PFS { ["--defaults-file", file] } else { ["--pid", &pid] };
        Audit(Waggle::start(&[&["ddl"], words, &["--source", source], &whom].concat()))
    }

    /// Starts `tail --json`, and returns when statements are listed.
    fn tail(server: &Server, source: &str, words: &[&str]) -> Audit {
        let mut audit = Audit::spawn(server, source, &[&["tail", "--json"], words].concat());
        audit.wait_until_ready(server, |audit| audit.printed().contains(READY));
        audit
    }

    /// Runs a statement again and again until it is listed.
    fn wait_until_ready(&mut self, server: &Server, is_ready: impl Fn(&Waggle) -> bool) {
        let mut client = session(server);
        self.wait_for("the first statement", |audit| {
            client.run(format!("DROP TABLE IF EXISTS test.{READY}")).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            is_ready(audit)
        });
    }

    /// Waits until this many statements are listed, and a little longer for one too many.
    fn wait_for_statements(&mut self, wanted: usize) {
        self.wait_for("all statements", |audit| statements(&audit.lines()).len() >= wanted);
        std::thread::sleep(Duration::from_millis(1500));
    }

    /// Stops it as Ctrl-C does, and gives its lines.
    fn end(mut self) -> Vec<Value> {
        self.stop();
        self.lines()
    }

    /// Stops it as Ctrl-C does.
    fn stop(&mut self) {
        self.signal(Signal::INT);
        assert_eq!(self.wait_for_end(), Some(0), "{}", self.err());
    }
}

impl Deref for Audit {
    type Target = Waggle;

    fn deref(&self) -> &Waggle {
        &self.0
    }
}

impl DerefMut for Audit {
    fn deref_mut(&mut self) -> &mut Waggle {
        &mut self.0
    }
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
