//! `cargo xtask bench tap`: what the tap costs, side by side with other ways and with nothing.
//!
//! One live server, one run: arms are attached and detached in short windows whose order is
//! random. How it is done and why: `README.md` of this package.
#![forbid(unsafe_code)]

mod agent;
mod arms;
mod estimate;
mod foreign;
mod load;
mod meter;
mod reference;
mod report;
mod run_time;
mod session;
mod settings;
mod windows;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use waggle_bench_frame::{Run, ended};
use waggle_stats::Random;
use waggle_testkit::target_dir;

use arms::{Arm, Arms};
use load::Load;
use meter::Meter;
use report::Outcome;
use settings::Settings;

/// Benches of waggle against real servers.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Cli {
    #[command(subcommand)]
    command: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Tap(Settings),
    /// The other process of the bench: it works when it is told to.
    #[command(name = foreign::COMMAND, hide = true)]
    Foreign {
        work: foreign::Work,
    },
}

fn main() -> ExitCode {
    ended(match Cli::parse().command {
        Bench::Tap(settings) if settings.own_session => run(settings.made_quick()),
        Bench::Tap(_) => session::again("--own-session"),
        Bench::Foreign { work } => foreign::be_the_other(work),
    })
}

fn run(settings: Settings) -> Result<()> {
    let run = Run::begin("tap", &settings.options);
    let seed = settings.options.seed;
    waggle_bench_frame::waggle()?;
    session::give_way()?;
    let server = settings.start_server()?;
    load::prepare(&server)?;
    settings.placement.bind_server(server.pid())?;
    settings.placement.bind_ourselves()?;
    let mut arms = Arms::of(server.pid(), &settings.arms())?;
    for refused in arms.refused() {
        run.say(&format!("{} is refused: {}", refused.arm, refused.why))?;
    }
    let mut random = Random::seeded(seed);
    let mut meter = Meter::of(&server)?;
    let agent = if arms.usable().iter().any(|arm| matches!(arm, Arm::Tap(_))) {
        run.say("waggle watch")?;
        let _running = Load::DENSEST.start(&server, settings.threads)?;
        let written = target_dir().join("bench-watch.jsonl");
        Some(agent::measure(&server, &mut meter, &settings, &written)?)
    } else {
        None
    };
    run.say("another process")?;
    let foreign = foreign::measure(&mut arms, &settings, &mut random)?;
    let mut windows = Vec::new();
    let mut run_times = Vec::new();
    for load in settings.loads() {
        run.say(load.name())?;
        let _running = load.start(&server, settings.threads)?;
        let first = windows.len() / windows::BLOCK;
        windows.extend(windows::measure(
            &mut arms,
            &mut meter,
            load,
            &settings,
            &mut random,
            first,
        )?);
        run_times.extend(run_time::measure(&mut arms, &mut meter, load, &settings, &mut random)?);
    }
    let outcome = Outcome {
        server: format!("{} ({})", server.version_string(), server.version()),
        build: arms.build(),
        refused: arms.refused().iter().map(|one| (one.arm, one.why.clone())).collect(),
        prices: Arm::ALL
            .into_iter()
            .flat_map(|arm| estimate::prices(&windows, arm, seed))
            .collect(),
        windows,
        run_times,
        foreign,
        agent,
        settings,
    };
    outcome.keep(&run)?;
    server.stop()?;
    Ok(())
}
