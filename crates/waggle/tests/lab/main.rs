//! `waggle lab` with real servers and the real sysbench, small.
#![cfg(test)]

mod broken;
mod compared;
mod disturbed;
mod foreign;
mod interrupted;
#[path = "../../../lab/tests/kept_runs/mod.rs"]
mod kept_runs;
mod limits;
#[path = "../guide/reference.rs"]
mod reference;
mod refusals;
mod reported;
mod set_first;
mod tiny;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use serde_json::Value;
use tempfile::TempDir;

/// A place for runs and for the files of servers.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { dir: TempDir::new().unwrap() };
        fs::create_dir(place.servers()).unwrap();
        fs::write(place.list(), waggle_testkit::list().unwrap()).unwrap();
        place
    }

    /// Where private servers have their files, unless they live in a tree of their own.
    fn servers(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    fn list(&self) -> PathBuf {
        self.dir.path().join("servers.toml")
    }

    fn run(&self) -> PathBuf {
        // Where `waggle lab list` looks, too.
        self.dir.path().join("lab/run")
    }

    /// What a run keeps beside its windows.
    fn run_json(&self) -> Value {
        serde_json::from_slice(&fs::read(self.run().join("run.json")).unwrap()).unwrap()
    }

    /// The path of a file with a suite.
    fn file_of(&self, suite: &str) -> String {
        let file = self.dir.path().join("mine.toml");
        fs::write(&file, suite).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// `waggle lab`, with these words.
    fn lab(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
        command.arg("lab").args(words).stdin(Stdio::null());
        command.env("TMPDIR", self.servers()).env("WAGGLE_STATE_DIR", self.dir.path());
        command
    }

    /// `waggle lab run` of a suite on a server that runs, as small as can be.
    fn foreign(&self, suite: &str, account: &Path, more: &[&str]) -> Command {
        let mut command = self.lab(&["run", suite, "--dsn", "--defaults-file"]);
        command.arg(account).arg("--output").arg(self.run());
        command.args(["--scale", "tiny", "--window", "200ms", "--seed", "7"]).args(more);
        command
    }

    /// `waggle lab run` of a suite, as small as can be.
    fn small(&self, suite: &str, server: &str, more: &[&str]) -> Command {
        let mut command = self.lab(&["run", suite, "--server", server]);
        command.arg("--servers").arg(self.list()).arg("--output").arg(self.run());
        command.args(["--scale", "tiny", "--window", "200ms", "--seed", "7"]).args(more);
        command
    }
}

/// What small suites have in common, after their own keys: point selects on next to no data.
const SMALL: &str = r#"metric = "qps"
margin_percent = 2.0

[detectable_percent]
cpu_per_statement = 2.0

[source]
what = "nobody"
server = "any"
load = "point selects"
caveats = []

[data]
tables = 1
rows = { tiny = 100, small = 100, full = 100 }
buffer_pool_mib = { tiny = 64, small = 64, full = 64 }
redo_log_mib = { tiny = 32, small = 32, full = 32 }

[[workloads]]
name = "point-selects"
script = "oltp_point_select"
"#;

/// A small suite of these keys, and of these scenarios and orders.
fn small_suite([keys, scenarios]: [&str; 2]) -> String {
    [keys, SMALL, scenarios].concat()
}

/// How many servers were started for windows.
fn starts(windows: &[Value]) -> usize {
    let starts = windows.iter().filter_map(|window| window["server_start"].as_u64());
    starts.collect::<BTreeSet<u64>>().len()
}

/// The windows of a run, as they are kept.
fn windows(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("windows.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a window is void since others had the processors: that can happen to any.
fn is_of_host(window: &Value) -> bool {
    let why = window["void"].as_str().unwrap_or("");
    ["hypervisor", " instead of ", "no transaction ended"].iter().any(|words| why.contains(words))
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// What it printed, where it did what was asked.
fn done(output: io::Result<Output>) -> String {
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What it said, where it ended so.
fn ended(output: io::Result<Output>, code: i32) -> String {
    let output = output.unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
