//! `waggle lab` with real servers and the real sysbench, small.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy sees tests in #[test] functions only"
)]

#[path = "lab/broken.rs"]
mod broken;
#[path = "lab/compared.rs"]
mod compared;
#[path = "lab/disturbed.rs"]
mod disturbed;
#[path = "lab/foreign.rs"]
mod foreign;
#[path = "lab/interrupted.rs"]
mod interrupted;
#[path = "lab/limits.rs"]
mod limits;
#[path = "guide/reference.rs"]
mod reference;
#[path = "lab/refusals.rs"]
mod refusals;
#[path = "lab/reported.rs"]
mod reported;
#[path = "lab/set_first.rs"]
mod set_first;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// The windows of a run, as they are kept.
fn windows(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("windows.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a window is void since others had the processors: that can happen to any.
fn is_of_host(window: &Value) -> bool {
    let why = window["void"].as_str().unwrap_or("");
    why.contains("hypervisor") || why.contains(" instead of ")
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// What it printed, where it did what was asked.
fn done(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
