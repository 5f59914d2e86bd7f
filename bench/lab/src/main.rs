//! `cargo xtask bench lab`: whether the lab finds costs of which the size is known. How it is done:
//! `README.md` of this package.
#![forbid(unsafe_code)]

mod injection;
mod kept;
mod repetition;
mod report;
mod settings;

use std::fs;
use std::io::{self, Write as _};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use waggle_bench_frame::{Run, ended, write};
use waggle_host::processors::{keep_on, usable};
use waggle_lab::suite::Suite;

use kept::{Begun, Kept, Repetition};
use repetition::{Subject, has_its_windows};
use report::Outcome;
use settings::Arguments;

/// What is compared.
const TRUTH: &str = include_str!("../truth.toml");

fn main() -> ExitCode {
    ended(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<()> {
    let run = Run::begin("lab", &arguments.settings.options);
    let mut kept = match &arguments.resume {
        Some(directory) => Kept::open(directory)?,
        None => begin(arguments, &run)?,
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
    make_missing(&mut kept, &suite, &run).with_context(|| {
        let made = kept.missing().unwrap_or(settings.repetitions);
        let directory = kept.directory().display();
        let of = settings.repetitions;
        format!("{made} of {of} repetitions are kept, and --resume {directory} makes the others")
    })?;
    let outcome = Outcome::of(&suite, &settings, &kept.repetitions()?);
    let name = kept.directory().file_name().unwrap_or_default();
    let directory = settings.options.output.join(name);
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let page = outcome.markdown();
    write(&directory, &serde_json::to_value(&outcome)?, &page)?;
    writeln!(io::stdout(), "{page}\nkept in {}", directory.display())?;
    ensure!(outcome.is_kept || settings.options.quick, "a limit was not kept: see above");
    Ok(())
}

/// Begins a run in new directories for what it finds and for what it measures.
fn begin(arguments: &Arguments, run: &Run) -> Result<Kept> {
    let settings = arguments.settings.clone().made_quick();
    settings.check()?;
    let raw = settings.options.raw.join(run.new_directory()?.file_name().unwrap_or_default());
    fs::create_dir_all(&raw).with_context(|| raw.display().to_string())?;
    Kept::create(&raw, &Begun { settings, truth: TRUTH.to_owned() })
}

/// Makes the repetitions that are not there yet, and keeps each when it has ended. Fails after the one at
/// work where a signal stops it.
fn make_missing(kept: &mut Kept, suite: &Suite, run: &Run) -> Result<()> {
    if kept.missing().is_none() {
        return Ok(());
    }
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
        run.say(&format!("repetition {} of {}", number + 1, settings.repetitions))?;
        let since = Instant::now();
        // Each has a server of its own, so that what a start does by chance is in the spread.
        let mut subject = Subject::start(suite, &settings, of_server)?;
        let (windows, busy_ns) = subject.measure(number)?;
        let (machine, seconds) = (run.machine.clone(), since.elapsed().as_secs_f64());
        kept.append(&Repetition { number, machine, seconds, busy_ns, windows })?;
    }
    Ok(())
}
