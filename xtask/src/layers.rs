//! `cargo xtask test`: every layer of the tests, each with its time and its budget.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

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
    steps: &'static [Step],
}

/// The guest is 30 to 60 times slower than the host.
const GUEST_SECONDS_MAX: u64 = 900;

enum Step {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// The licences and the sources of what we depend on.
    Deny,
    /// One test of the binary of a package, under another kernel.
    Guest { kernel: &'static str, package: &'static str, test: &'static str },
}

const LAYERS: [Layer; 12] = [
    Layer {
        name: "style",
        budget: Duration::from_secs(240),
        steps: &[
            Step::Cargo(&["fmt", "--all", "--check"]),
            Step::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
            Step::Deny,
        ],
    },
    Layer {
        name: "pure",
        budget: Duration::from_secs(200),
        steps: &[
            Step::Cargo(&["test", "--workspace", "--lib", "--bins"]),
            Step::Cargo(&[
                "test",
                "--package",
                "waggle-sql",
                "--test",
                "digest",
                "--test",
                "mask",
                "--test",
                "robust",
                "--test",
                "settings",
                "--test",
                "fingerprint",
                "--test",
                "tables",
                "--test",
                "ddl",
                "--test",
                "format",
                "--test",
                "fuzz",
            ]),
        ],
    },
    Layer {
        name: "rooms",
        budget: Duration::from_secs(20),
        steps: &[Step::Cargo(&["test", "--package", "xtask", "--test", "rooms"])],
    },
    Layer {
        name: "servers",
        budget: Duration::from_secs(180),
        steps: &[
            // With its examples: one test starts a server from another program.
            Step::Cargo(&["test", "--package", "waggle-testkit"]),
            Step::Cargo(&["test", "--package", "waggle-mysql", "--test", "it"]),
        ],
    },
    Layer {
        name: "digests",
        budget: Duration::from_secs(120),
        steps: &[Step::Cargo(&["test", "--package", "waggle-sql", "--test", "digests"])],
    },
    Layer {
        name: "kernel",
        budget: Duration::from_secs(300),
        steps: &[Step::Cargo(&["test", "--package", "waggle-probes", "--test", "it"])],
    },
    Layer {
        name: "waggle",
        budget: Duration::from_secs(450),
        steps: &[Step::Cargo(&[
            "test",
            "--package",
            "waggle",
            "--bins",
            "--test",
            "it",
            "--test",
            "clock",
            "--test",
            "help",
        ])],
    },
    Layer {
        name: "instrumentation",
        budget: Duration::from_secs(480),
        steps: &[
            Step::Cargo(&["test", "--package", "waggle-instrumentation", "--test", "it"]),
            Step::Cargo(&[
                "test",
                "--package",
                "waggle",
                "--test",
                "pfs",
                "--test",
                "locks",
                "--test",
                "guide",
                "--test",
                "ddl",
            ]),
        ],
    },
    Layer {
        name: "lab",
        budget: Duration::from_secs(300),
        steps: &[
            Step::Cargo(&[
                "test",
                "--package",
                "waggle-lab",
                "--test",
                "it",
                "--test",
                "coverage",
                "--test",
                "published_effects",
                "--test",
                "noise_floor",
            ]),
            Step::Cargo(&["test", "--package", "waggle", "--test", "lab"]),
        ],
    },
    Layer {
        name: "terminal",
        budget: Duration::from_secs(150),
        steps: &[Step::Cargo(&["test", "--package", "waggle", "--test", "terminal"])],
    },
    Layer {
        name: "bench",
        budget: Duration::from_secs(270),
        steps: &[
            Step::Cargo(&["test", "--package", "waggle-bench"]),
            Step::Cargo(&["test", "--package", "waggle-bench-sql"]),
            Step::Cargo(&["test", "--package", "waggle-bench-pfs"]),
            Step::Cargo(&["test", "--package", "waggle-bench-lab"]),
            Step::Cargo(&["test", "--package", "waggle-bench-locks"]),
            Step::Cargo(&["test", "--package", "waggle-stats", "--test", "coverage"]),
        ],
    },
    Layer {
        name: "kernel 6.1",
        budget: Duration::from_secs(180),
        steps: &[Step::Guest {
            kernel: "6.1",
            package: "waggle",
            test: "rungs::the_hook_that_doctor_chooses_captures_every_statement",
        }],
    },
];

pub(crate) fn run(args: Args) -> Result<()> {
    crate::setup::run()?;
    let mut times = Vec::new();
    for layer in LAYERS.iter().filter(|layer| layer.name.contains(&args.only)) {
        let begin = Instant::now();
        for step in layer.steps {
            step.run().with_context(|| format!("layer {}", layer.name))?;
        }
        times.push((layer, begin.elapsed()));
    }
    if times.is_empty() {
        bail!("no layer is called `{}`", args.only);
    }
    println!("\n{:<12} {:>8} {:>8}", "layer", "time", "budget");
    for (layer, time) in &times {
        let over = if *time > layer.budget { "  over its budget" } else { "" };
        let seconds = |time: &Duration| format!("{:.0} s", time.as_secs_f64());
        println!("{:<12} {:>8} {:>8}{over}", layer.name, seconds(time), seconds(&layer.budget));
    }
    Ok(())
}

impl Step {
    fn run(&self) -> Result<()> {
        match self {
            Step::Cargo(arguments) => {
                println!("\n== cargo {}", arguments.join(" "));
                let ended = Command::new("cargo").args(*arguments).status().context("cargo")?;
                ensure!(ended.success(), "cargo {} ended with {ended}", arguments.join(" "));
                Ok(())
            }
            Step::Deny => crate::deny::check(),
            Step::Guest { kernel, package, test } => {
                println!("\n== {package}: {test} under kernel {kernel}");
                let binary = test_binary(package)?;
                let command = [&binary, "--exact", test, "--nocapture"].map(str::to_owned);
                crate::vm::run(crate::vm::VmArgs {
                    kernel: (*kernel).to_owned(),
                    timeout: GUEST_SECONDS_MAX,
                    memory: "2G".to_owned(),
                    command: command.into(),
                })
            }
        }
    }
}

/// Builds the integration tests of a package and says where they are.
fn test_binary(package: &str) -> Result<String> {
    let built = Command::new("cargo")
        .args([
            "test",
            "--no-run",
            "--message-format",
            "json",
            "--test",
            "it",
            "--package",
            package,
        ])
        .output()
        .context("cargo")?;
    ensure!(built.status.success(), "the tests of {package} cannot be built");
    String::from_utf8(built.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "it")
        .find_map(|message| message["executable"].as_str().map(str::to_owned))
        .with_context(|| format!("cargo did not say where the tests of {package} are"))
}
