//! `waggle locks` on real servers of all five versions: chains of row locks and of metadata locks,
//! queues, deadlocks, flushes, replication, missing rights, and a server that dies.
#![cfg(test)]

mod both;
mod memory;
mod metadata;
mod mix;
mod remedies;
mod rights;
mod rows;
#[path = "../it/size.rs"]
#[expect(dead_code, reason = "a soak does the same as these tests, but asserts more")]
mod size;
mod states;
mod turns;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use waggle_testkit::client::Command as Packet;
use waggle_testkit::{Client, Leased, PATIENCE, Server, Version, wait_showing};

/// How long a new wait may take until it is shown. Only a soak has the machine for itself, and asserts it.
const SHOWN_S: f64 = 2.0;

/// InnoDB makes its copy of the transactions anew only when nobody has read it for a tenth of a second
/// (`CACHE_MIN_IDLE_TIME_US` in `storage/innobase/trx/trx0i_s.cc`).
const PAUSE: Duration = Duration::from_millis(250);

/// Takes a row of `shop.t`.
const WRITE: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";

/// A server with a table of four rows.
struct Scene {
    server: Leased,
}

impl Scene {
    /// Performance Schema is as the version has it: on in MySQL, off in MariaDB.
    fn of(version: Version) -> Self {
        Self::with(version, &[])
    }

    fn with(version: Version, arguments: &[&str]) -> Self {
        let builder = Server::builder(version);
        let builder = arguments.iter().fold(builder, |builder, one| builder.arg(*one));
        let scene = Self { server: builder.lease().unwrap() };
        let mut root = scene.session();
        root.run("CREATE DATABASE shop").unwrap();
        root.run("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB").unwrap();
        root.run("INSERT INTO shop.t VALUES (1, 0), (2, 0), (3, 0), (4, 0)").unwrap();
        scene
    }

    fn version(&self) -> Version {
        self.server.version()
    }

    fn session(&self) -> Client {
        self.server.root().unwrap()
    }

    /// A session that has run these statements.
    fn session_after(&self, statements: &[&str]) -> Client {
        let mut session = self.session();
        statements.iter().for_each(|statement| drop(session.run(statement).unwrap()));
        session
    }

    /// A session that has run all these statements but the last, for which it waits.
    fn waiting(&self, statements: &[&str]) -> Client {
        let (last, first) = statements.split_last().unwrap();
        let mut session = self.session_after(first);
        session.send(Packet::Query, last.as_bytes()).unwrap();
        session
    }

    /// A session whose transaction takes a while to roll back: it has written a row of `shop.t`, and many of another.
    fn with_many_changes(&self) -> Client {
        let mut session = self.session_after(&[
            "CREATE TABLE shop.big (id INT AUTO_INCREMENT PRIMARY KEY, c CHAR(40), KEY (c))",
            "BEGIN",
            WRITE,
            "INSERT INTO shop.big (c) VALUES (UUID()), (UUID()), (UUID()), (UUID())",
        ]);
        for _ in 0..15 {
            session.run("INSERT INTO shop.big (c) SELECT UUID() FROM shop.big").unwrap();
        }
        session
    }

    /// By SQL alone.
    fn waggle(&self, defaults_file: PathBuf, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
        command
            .args(["locks", "--no-memory"])
            .args(arguments)
            .arg("--defaults-file")
            .arg(defaults_file);
        command.output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.waggle(self.server.defaults_file(), arguments);
        String::from_utf8(output.stdout).unwrap()
    }

    fn look(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let arguments = [&["--json"], arguments].concat();
        let output = self.waggle(self.server.defaults_file(), &arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_slice(&output.stdout);
        (json.unwrap_or_else(|_| panic!("{}: {errors}", self.version())), output.status.code())
    }

    /// Looks until `found` gives something: a waiter needs a moment until it waits.
    fn look_until<T>(&self, what: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        wait_showing(format!("{}: {what}", self.version()), || {
            let (look, _) = self.look(&[]);
            found(&look).ok_or_else(|| {
                sleep(PAUSE);
                format!("{look:#}")
            })
        })
    }

    /// The same for what has just come about: in a soak it has to be shown soon.
    fn look_until_soon<T>(&self, what: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        let begin = Instant::now();
        let found = self.look_until(what, found);
        self.shown_after(what, begin);
        found
    }

    fn shown_after(&self, what: &str, begin: Instant) {
        let seconds = begin.elapsed().as_secs_f64();
        size::keep(&json!({
            "test": "locks", "server": self.version().name(), "shown": what, "seconds": seconds,
        }));
        assert!(!size::is_soak() || seconds <= SHOWN_S, "{}: {what}: {seconds} s", self.version());
    }

    /// Looks until the blockers are drawn as `1(2 3)`: who blocks, and in parentheses who waits.
    fn look_until_drawn(&self, expected: &str) -> Value {
        self.look_until_soon(expected, |look| {
            (drawn(&look["blockers"]) == expected).then(|| look.clone())
        })
    }
}

/// Every key of a look stands on the page of the reference.
fn assert_documented(look: &Value) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/locks-json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut values = vec![look];
    while let Some(value) = values.pop() {
        for (key, below) in value.as_object().into_iter().flatten() {
            let stands = [format!("`{key}`"), format!(".{key}`")];
            assert!(stands.iter().any(|stands| page.contains(stands)), "{key} is not documented");
            values.push(below);
        }
        values.extend(value.as_array().into_iter().flatten());
    }
}

fn drawn(nodes: &Value) -> String {
    let one = |node: &Value| match node["waiters"].as_array().unwrap().is_empty() {
        true => node["connection_id"].to_string(),
        false => format!("{}({})", node["connection_id"], drawn(&node["waiters"])),
    };
    nodes.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Runs a test on each version, in a soak one after the other; a failure names it.
fn on_each(versions: &[Version], test: impl Fn(Version) + Copy + Send + Sync) {
    if size::is_soak() {
        versions.iter().for_each(|version| test(*version));
        return;
    }
    std::thread::scope(|scope| {
        let running: Vec<_> =
            versions.iter().map(|version| (version, scope.spawn(move || test(*version)))).collect();
        for (version, run) in running {
            assert!(run.join().is_ok(), "failed on {version}");
        }
    });
}
