//! `cargo xtask test`: every layer of the tests, each with its time and its budget.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the layers whose name holds this.
    #[arg(default_value = "")]
    only: String,
}

/// A part of the tests that needs the same things.
struct Layer {
    name: &'static str,
    /// What a quiet machine with two cores should need at most. It is shown, not enforced: a busy
    /// machine is no defect.
    budget: Duration,
    cargo: &'static [&'static [&'static str]],
}

const LAYERS: [Layer; 6] = [
    Layer {
        name: "style",
        budget: Duration::from_secs(240),
        cargo: &[
            &["fmt", "--all", "--check"],
            &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        ],
    },
    Layer {
        name: "pure",
        budget: Duration::from_secs(120),
        cargo: &[&["test", "--workspace", "--lib", "--bins"]],
    },
    Layer {
        name: "rooms",
        budget: Duration::from_secs(20),
        cargo: &[&["test", "--package", "xtask", "--test", "rooms"]],
    },
    Layer {
        name: "servers",
        budget: Duration::from_secs(180),
        cargo: &[
            &["test", "--package", "waggle-testkit", "--test", "it"],
            &["test", "--package", "waggle-mysql", "--test", "it"],
        ],
    },
    Layer {
        name: "kernel",
        budget: Duration::from_secs(240),
        cargo: &[&["test", "--package", "waggle-probes", "--test", "it"]],
    },
    Layer {
        name: "waggle",
        budget: Duration::from_secs(300),
        cargo: &[&["test", "--package", "waggle", "--test", "it"]],
    },
];

pub(crate) fn run(args: Args) -> Result<()> {
    crate::setup::run()?;
    let mut times = Vec::new();
    for layer in LAYERS.iter().filter(|layer| layer.name.contains(&args.only)) {
        let begin = Instant::now();
        for arguments in layer.cargo {
            println!("\n== {}: cargo {}", layer.name, arguments.join(" "));
            let ended = Command::new("cargo").args(*arguments).status().context("cargo")?;
            if !ended.success() {
                bail!("layer {}: cargo {} ended with {ended}", layer.name, arguments.join(" "));
            }
        }
        times.push((layer, begin.elapsed()));
    }
    if times.is_empty() {
        bail!("no layer is called `{}`", args.only);
    }
    println!("\n{:<10} {:>8} {:>8}", "layer", "time", "budget");
    for (layer, time) in &times {
        let over = if *time > layer.budget { "  over its budget" } else { "" };
        let seconds = |time: &Duration| format!("{:.0} s", time.as_secs_f64());
        println!("{:<10} {:>8} {:>8}{over}", layer.name, seconds(time), seconds(&layer.budget));
    }
    Ok(())
}
