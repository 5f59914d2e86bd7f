//! `cargo xtask bench lab`: whether the lab finds costs of which the size is known. How it is done:
//! `README.md` of this package.
#![forbid(unsafe_code)]

mod injection;
mod kept;
mod repetition;
mod report;
mod settings;

use std::io::{self, Write};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use waggle_bench_kept::{machine, new_directory, say};
use waggle_calibration::processors::{keep_on, usable};
use waggle_lab::suite::Suite;

use kept::{Begun, Kept, Repetition};
use repetition::{Subject, has_its_windows};
use report::Outcome;
use settings::Arguments;

/// What is compared.
const TRUTH: &str = include_str!("../truth.toml");

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done where standard error is closed.
            let _ = writeln!(io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let machine = machine();
    let mut kept = match &arguments.resume {
        Some(directory) => Kept::open(directory)?,
        None => begin(arguments, &machine)?,
    };
    let Begun { settings, truth } = kept.begun().clone();
    let suite = Suite::parse("truth", &truth)?;
    for repetition in kept.repetitions()? {
        ensure!(
            has_its_windows(&suite, &settings, &repetition),
            "{} was begun by a bench that has another schedule: go on with that one, or begin a new \
             run",
            kept.directory().display()
        );
    }
    make_missing(&mut kept, &suite, &machine).with_context(|| {
        let made = kept.missing().unwrap_or(settings.repetitions);
        let directory = kept.directory().display();
        let of = settings.repetitions;
        format!("{made} of {of} repetitions are kept, and --resume {directory} makes the others")
    })?;
    let outcome = Outcome::of(&suite, &settings, &kept.repetitions()?);
    outcome.write(kept.directory())?;
    writeln!(io::stdout(), "{}\nkept in {}", outcome.markdown(), kept.directory().display())?;
    ensure!(outcome.is_kept || settings.quick, "a limit was not kept: see above");
    Ok(())
}

/// Begins a run in a new directory.
fn begin(arguments: &Arguments, machine: &Value) -> Result<Kept> {
    let settings = arguments.settings.clone().made_quick();
    settings.check()?;
    let directory = new_directory(&arguments.output, &arguments.name, machine)?;
    Kept::create(&directory, &Begun { settings, truth: TRUTH.to_owned() })
}

/// Makes the repetitions that are not there yet, and keeps each when it has ended. Fails after the one at
/// work where a signal stops it.
fn make_missing(kept: &mut Kept, suite: &Suite, machine: &Value) -> Result<()> {
    if kept.missing().is_none() {
        return Ok(());
    }
    let begin = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let processors = usable().context("which processors may be used")?;
    let of_server = processors.split_last().filter(|(_, ours)| !ours.is_empty());
    let (&of_server, ours) = of_server
        .context("it needs two processors: one for the server and its load, one to look")?;
    keep_on(process::id(), ours).context("the bench on processors of its own")?;
    let settings = kept.begun().settings.clone();
    while let Some(number) = kept.missing() {
        ensure!(!stop.load(Ordering::Relaxed), "a signal stopped it");
        say(begin, &format!("repetition {} of {}", number + 1, settings.repetitions))?;
        let since = Instant::now();
        // Each has a server of its own, so that what a start does by chance is in the spread.
        let mut subject = Subject::start(suite, &settings, of_server)?;
        let (windows, busy_ns) = subject.measure(number)?;
        let (machine, seconds) = (machine.clone(), since.elapsed().as_secs_f64());
        kept.append(&Repetition { number, machine, seconds, busy_ns, windows })?;
    }
    Ok(())
}
