//! `cargo xtask bench lab`: whether the lab finds costs of which the size is known. How it is done:
//! `README.md` of this package.
#![forbid(unsafe_code)]

mod injection;
mod repetition;
mod report;
mod settings;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use waggle_bench_kept::{machine, say};
use waggle_calibration::Awake;
use waggle_lab::suite::Suite;

use repetition::Subject;
use report::Outcome;
use settings::Settings;

/// What is compared.
const TRUTH: &str = include_str!("../truth.toml");

fn main() -> ExitCode {
    match run(Settings::parse().made_quick()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done where standard error is closed.
            let _ = writeln!(io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(settings: Settings) -> Result<()> {
    settings.check()?;
    let begin = Instant::now();
    let machine = machine();
    let suite = Suite::parse("truth", TRUTH)?;
    // Two sessions leave processors time to halt.
    let _awake = Awake::keep();
    let mut repetitions = Vec::new();
    for number in 0..settings.repetitions {
        say(begin, &format!("repetition {} of {}", number + 1, settings.repetitions))?;
        // Each has a server of its own, so that what a start does by chance is in the spread.
        let mut subject = Subject::start(&suite, &settings)?;
        repetitions.push(subject.measure(number)?);
    }
    let outcome = Outcome::of(&suite, &settings, machine, repetitions, begin.elapsed());
    let (kept, is_kept) = outcome.write(&settings)?;
    writeln!(io::stdout(), "{}\nkept in {}", outcome.markdown(), kept.display())?;
    anyhow::ensure!(is_kept || settings.quick, "a limit was not kept: see above");
    Ok(())
}
