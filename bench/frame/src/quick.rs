//! The small form of a bench, for its test.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What a bench kept.
pub struct Quick {
    /// For programs.
    pub summary: Value,
    /// For people.
    pub page: String,
}

impl Quick {
    /// Runs the program of a bench with these words beside `--quick`.
    ///
    /// # Errors
    /// The bench failed, or did not keep what it should.
    pub fn run(program: &str, words: &[&str]) -> Result<Quick> {
        let place = tempfile::tempdir()?;
        let output = place.path().join("results");
        let bench = Command::new(program)
            .args(words)
            .args(["--quick", "--seed", "7", "--name", "quick", "--output"])
            .arg(&output)
            .output()?;
        let said = String::from_utf8_lossy(&bench.stderr);
        ensure!(bench.status.success(), "the bench failed; see the last line:\n{said}");
        let made = fs::read_dir(&output)?.next().context("it kept nothing")??;
        let summary = fs::read(made.path().join("summary.json"))?;
        let summary: Value = serde_json::from_slice(&summary)?;
        ensure!(summary["settings"]["seed"] == 7, "the summary says what was asked: {summary:#}");
        let page = fs::read_to_string(made.path().join("README.md"))?;
        Ok(Quick { summary, page })
    }
}
