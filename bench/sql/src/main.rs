//! `cargo xtask bench sql`: how fast digests and fingerprints are made on one processor, side by
//! side with `pt-query-digest` and with a parser. How it is done: `README.md` of this package.
#![forbid(unsafe_code)]

mod report;
mod rounds;
mod tool;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::Value;
use waggle_bench_frame::{Options, Run, ended};

/// Measure how fast digests and fingerprints are made, side by side with other programs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench sql")]
#[command(after_help = "Example: cargo xtask bench sql --rounds 20 --name trial")]
struct Settings {
    /// Rounds; in each every subject works once, in a random order.
    #[arg(long, value_name = "N", default_value_t = 60)]
    rounds: usize,
    /// Statements of a round, in KiB.
    #[arg(long, value_name = "KIB", default_value_t = 512)]
    kib: usize,
    #[command(flatten)]
    options: Options,
}

impl Settings {
    fn made_quick(self) -> Settings {
        if self.options.quick { Settings { rounds: 3, kib: 16, ..self } } else { self }
    }
}

fn main() -> ExitCode {
    ended(run(&Settings::parse().made_quick()))
}

fn run(settings: &Settings) -> Result<()> {
    let run = Run::begin("sql", &settings.options);
    let allocations = allocations(settings)?;
    let times = rounds::measure(settings)?;
    let results = rounds::results(&times);
    report::keep(&run, settings, &results, &allocations)?;
    let ours = allocations.iter().filter(|one| one["ours"] == true);
    let allocating: Vec<_> = ours.filter(|one| one["allocations"] != 0).collect();
    ensure!(allocating.is_empty(), "allocations after the first round: {allocating:?}");
    Ok(())
}

/// What the program beside this one counts.
fn allocations(settings: &Settings) -> Result<Vec<Value>> {
    let program = std::env::current_exe()?.with_file_name("waggle-bench-sql-allocations");
    let output = Command::new(&program)
        .args([(settings.kib * 1024).to_string(), settings.options.seed.to_string()])
        .output()
        .with_context(|| format!("{}: not built? use cargo xtask bench sql", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {said}", program.display());
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).context("no JSON")).collect()
}
