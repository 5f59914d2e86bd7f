//! `cargo xtask bench pfs`: whether what waggle says of the price of Performance Schema is so. How it
//! is done: `README.md` of this package.
#![forbid(unsafe_code)]

mod apply;
mod filtering;
mod load;
mod predict;
mod profiles;
mod report;
mod server;
mod settings;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use waggle_bench_kept::say;
use waggle_calibration::{Request, measure, start_knowing};
use waggle_instrumentation::cost::Calibration;
use waggle_instrumentation::cost::calibration::Host;
use waggle_stats::Random;

use predict::Prediction;
use report::Outcome;
use server::Subject;
use settings::{Part, Settings};

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
    let begin = Instant::now();
    let machine = waggle_bench_kept::machine();
    let mut random = Random::seeded(settings.seed);
    let mut prices = None;
    if settings.has(Part::Prices) {
        say(begin, "prices from point selects alone")?;
        prices = Some(calibrate(&settings, begin)?);
    }
    let mut subject = Subject::start(&settings)?;
    let mut predictions = Vec::new();
    if let Some(prices) = &prices {
        predictions = predict(&mut subject, prices, &settings, &mut random, begin)?;
    }
    let mut filtering = Vec::new();
    if settings.has(Part::Filtering) {
        say(begin, "filtering after and before")?;
        filtering = filtering::measure(&mut subject, &settings, &mut random)?;
    }
    let mut applying = None;
    if settings.has(Part::Applying) {
        say(begin, "what applying does to 32 sessions")?;
        applying = Some(apply::measure(&mut subject, &settings, &mut random)?);
    }
    let version = subject.server.version_string().to_owned();
    let outcome = Outcome {
        machine,
        version,
        prices,
        predictions,
        filtering,
        applying,
        seconds: begin.elapsed().as_secs_f64(),
        settings,
    };
    writeln!(io::stdout(), "{}", outcome.write()?.display())?;
    Ok(())
}

/// Every profile under every load.
fn predict(
    subject: &mut Subject,
    prices: &Calibration,
    settings: &Settings,
    random: &mut Random,
    begin: Instant,
) -> Result<Vec<Prediction>> {
    let mut predictions = Vec::new();
    for threads in settings.threads() {
        for load in settings.loads() {
            say(begin, &format!("{} with {threads} threads", load.name))?;
            let running = load.start(&subject.server, threads)?;
            let under = (load, threads);
            predictions.extend(predict::measure(subject, prices, settings, random, under)?);
            drop(running);
        }
    }
    Ok(predictions)
}

/// On a server of its own, which nobody has used before.
fn calibrate(settings: &Settings, begin: Instant) -> Result<Calibration> {
    let start = || Subject::start(settings);
    let subject = start_knowing(start, |subject: &Subject| subject.options.clone())?;
    let stop = AtomicBool::new(false);
    let mut tell = |sessions: u32, round: usize, of: usize| {
        if round.is_multiple_of(10) {
            let what = match round < of {
                true => format!("round {} of {of}", round + 1),
                false => "again what was void".to_owned(),
            };
            // Nothing depends on it.
            let _ = say(begin, &format!("  {sessions} sessions: {what}"));
        }
    };
    let measured = measure(Request {
        options: &subject.options,
        pid: subject.server.pid(),
        rounds: settings.rounds,
        seed: settings.seed,
        stop: &stop,
        tell: &mut tell,
    })?;
    Ok(Calibration {
        at: jiff::Timestamp::now(),
        host: Host::look(),
        version: subject.server.version_string().to_owned(),
        build: None,
        rounds: settings.rounds,
        measured,
    })
}
