//! `cargo xtask test`: every layer of the tests, each with its time and its budget.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::built::{Built, Executable};

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
    /// The unit tests of every package.
    Units,
    /// Files of `tests` of the package in a directory.
    Tests(&'static str, &'static [&'static str]),
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
        budget: Duration::from_secs(60),
        steps: &[
            Step::Units,
            Step::Cargo(&["test", "--workspace", "--doc"]),
            Step::Tests(
                "crates/sql",
                &[
                    "digest",
                    "mask",
                    "robust",
                    "settings",
                    "fingerprint",
                    "tables",
                    "ddl",
                    "format",
                    "fuzz",
                ],
            ),
        ],
    },
    Layer {
        name: "rooms",
        budget: Duration::from_secs(20),
        steps: &[Step::Tests("xtask", &["rooms"])],
    },
    Layer {
        name: "servers",
        budget: Duration::from_secs(120),
        steps: &[Step::Tests("crates/testkit", &["it"]), Step::Tests("crates/mysql", &["it"])],
    },
    Layer {
        name: "digests",
        budget: Duration::from_secs(60),
        steps: &[Step::Tests("crates/sql", &["digests"])],
    },
    Layer {
        name: "kernel",
        budget: Duration::from_secs(150),
        steps: &[Step::Tests("crates/probes", &["it"])],
    },
    Layer {
        name: "waggle",
        budget: Duration::from_secs(330),
        steps: &[Step::Tests("crates/waggle", &["it", "clock", "help"])],
    },
    Layer {
        name: "instrumentation",
        budget: Duration::from_secs(840),
        steps: &[
            Step::Tests("crates/instrumentation", &["it"]),
            Step::Tests("crates/waggle", &["pfs", "locks", "guide", "ddl"]),
        ],
    },
    Layer {
        name: "lab",
        budget: Duration::from_secs(760),
        steps: &[
            Step::Tests(
                "crates/lab",
                &["it", "coverage", "published_effects", "noise_floor", "pictures", "reckoned"],
            ),
            Step::Tests("crates/waggle", &["lab"]),
        ],
    },
    Layer {
        name: "terminal",
        budget: Duration::from_secs(90),
        steps: &[Step::Tests("crates/waggle", &["terminal"])],
    },
    Layer {
        name: "bench",
        budget: Duration::from_secs(330),
        steps: &[
            Step::Tests("bench/tap", &["quick"]),
            Step::Tests("bench/sql", &["quick"]),
            Step::Tests("bench/pfs", &["quick"]),
            Step::Tests("bench/lab", &["quick"]),
            Step::Tests("bench/locks", &["quick"]),
            Step::Tests("crates/stats", &["coverage"]),
        ],
    },
    Layer {
        name: "kernel 6.1",
        budget: Duration::from_secs(180),
        steps: &[Step::Guest {
            kernel: "6.1",
            package: "crates/waggle",
            test: "rungs::the_hook_that_doctor_chooses_captures_every_statement",
        }],
    },
];

pub(crate) fn run(args: Args) -> Result<()> {
    crate::setup::run()?;
    let chosen: Vec<&Layer> =
        LAYERS.iter().filter(|layer| layer.name.contains(&args.only)).collect();
    if chosen.is_empty() {
        bail!("no layer is called `{}`", args.only);
    }
    let (mut times, mut built) = (Vec::new(), None);
    for layer in chosen {
        if layer.steps.iter().any(Step::is_of_tests) {
            Built::once(&mut built)?;
        }
        let begin = Instant::now();
        for step in layer.steps {
            step.run(&mut built).with_context(|| format!("layer {}", layer.name))?;
        }
        times.push((layer, begin.elapsed()));
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
    fn is_of_tests(&self) -> bool {
        matches!(self, Step::Units | Step::Tests(..) | Step::Guest { .. })
    }

    fn run(&self, built: &mut Option<Built>) -> Result<()> {
        match self {
            Step::Cargo(arguments) => {
                println!("\n== cargo {}", arguments.join(" "));
                let ended = Command::new("cargo").args(*arguments).status().context("cargo")?;
                ensure!(ended.success(), "cargo {} ended with {ended}", arguments.join(" "));
                Ok(())
            }
            Step::Deny => crate::deny::check(),
            Step::Units => Built::once(built)?.units().try_for_each(Executable::run),
            Step::Tests(package, targets) => {
                let built = Built::once(built)?;
                targets.iter().try_for_each(|target| built.integration(package, target)?.run())
            }
            Step::Guest { kernel, package, test } => {
                println!("\n== {package}: {test} under kernel {kernel}");
                let binary =
                    Built::once(built)?.integration(package, "it")?.path.display().to_string();
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
