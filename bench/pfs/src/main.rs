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

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Parser;
use waggle_bench_frame::{Run, ended};
use waggle_calibration::{Request, measure, start_knowing};
use waggle_instrumentation::cost::Calibration;
use waggle_instrumentation::cost::calibration::Host;
use waggle_mysql::Options;
use waggle_stats::Random;
use waggle_testkit::Server;

use predict::Prediction;
use report::Outcome;
use server::Subject;
use settings::{Part, Settings};

fn main() -> ExitCode {
    ended(run(Settings::parse().made_quick()))
}

fn run(settings: Settings) -> Result<()> {
    let run = Run::begin("pfs", &settings.options);
    let mut random = Random::seeded(settings.options.seed);
    let mut prices = None;
    if settings.has(Part::Prices) {
        run.say("prices from point selects alone")?;
        prices = Some(calibrate(&settings, &run)?);
    }
    let mut subject = Subject::start(&settings)?;
    let mut predictions = Vec::new();
    if let Some(prices) = &prices {
        predictions = predict(&mut subject, prices, &settings, &mut random, &run)?;
    }
    let mut filtering = Vec::new();
    if settings.has(Part::Filtering) {
        run.say("filtering after and before")?;
        filtering = filtering::measure(&mut subject, &settings, &mut random)?;
    }
    let mut applying = None;
    if settings.has(Part::Applying) {
        run.say("what applying does to 32 sessions")?;
        applying = Some(apply::measure(&mut subject, &settings, &mut random)?);
    }
    let version = subject.server.version_string().to_owned();
    let outcome = Outcome { version, prices, predictions, filtering, applying, settings };
    run.keep(outcome.settings(), outcome.found(), &outcome.page(&run))
}

/// Every profile under every load.
fn predict(
    subject: &mut Subject,
    prices: &Calibration,
    settings: &Settings,
    random: &mut Random,
    run: &Run,
) -> Result<Vec<Prediction>> {
    let mut predictions = Vec::new();
    for threads in settings.threads() {
        for load in settings.loads() {
            run.say(&format!("{} with {threads} threads", load.name))?;
            let running = load.start(&subject.server, threads)?;
            let under = (load, threads);
            predictions.extend(predict::measure(subject, prices, settings, random, under)?);
            drop(running);
        }
    }
    Ok(predictions)
}

/// On a server of its own, which nobody has used before.
fn calibrate(settings: &Settings, run: &Run) -> Result<Calibration> {
    let start = || server::start(settings);
    let restart = |mut server: Server| -> Result<Server> {
        server.restart()?;
        Ok(server)
    };
    let options = |server: &Server| Options {
        user: Some("root".to_owned()),
        socket: Some(server.socket()),
        ..Options::default()
    };
    let server = start_knowing(start, restart, options)?;
    let options = options(&server);
    let stop = AtomicBool::new(false);
    let mut tell = |sessions: u32, round: usize, of: usize| {
        if round.is_multiple_of(10) {
            let what = match round < of {
                true => format!("round {} of {of}", round + 1),
                false => "again what was void".to_owned(),
            };
            // Nothing depends on it.
            let _ = run.say(&format!("  {sessions} sessions: {what}"));
        }
    };
    let measured = measure(Request {
        options: &options,
        pid: server.pid(),
        rounds: settings.rounds,
        seed: settings.options.seed,
        stop: &stop,
        tell: &mut tell,
    })?;
    Ok(Calibration {
        at: jiff::Timestamp::now(),
        host: Host::look(),
        version: server.version_string().to_owned(),
        build: None,
        rounds: settings.rounds,
        measured,
    })
}
