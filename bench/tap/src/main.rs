//! `cargo xtask bench tap`: what the tap costs, beside a pair of breakpoints.
//!
//! One live server, one run. How it is done and why: `README.md` of this package.
#![forbid(unsafe_code)]

mod agent;
mod arm;
mod coin;
mod foreign;
mod load;
mod reference;
mod report;
mod session;
mod settings;
mod subject;
mod windows;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use waggle_bench_frame::{Run, ended};
use waggle_stats::Random;

use report::Outcome;
use settings::{Part, Settings};

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
    let mut random = Random::seeded(settings.options.seed);
    waggle_bench_frame::waggle()?;
    session::give_way()?;
    let server = settings.start_server()?;
    load::prepare(&server)?;
    let target = subject::recognised(server.pid())?;
    let (arms, refused) = subject::tried_once(&target, settings.arms());
    for one in &refused {
        run.say(&format!("{} is refused: {}", one.arm, one.why))?;
    }
    let mut outcome = Outcome {
        server: format!("{} ({})", server.version_string(), server.version()),
        build: target.server.build.to_string(),
        refused,
        prices: Vec::new(),
        tried: Vec::new(),
        foreign: Vec::new(),
        agent: None,
        settings,
    };
    let settings = &outcome.settings;
    if settings.has(Part::Agent) {
        run.say("waggle watch")?;
        outcome.agent = Some(agent::measure(&server, settings)?);
    }
    if settings.has(Part::Others) {
        run.say("processes that are not watched")?;
        outcome.foreign = foreign::measure(&target, &arms, settings, &mut random)?;
    }
    for load in settings.loads() {
        let _running = load.start(&server, settings.threads)?;
        if settings.has(Part::Prices) {
            run.say(&format!("{load}, by the coin"))?;
            outcome.prices.extend(coin::measure(server.pid(), &arms, load, settings)?);
        }
        if settings.has(Part::Windows) {
            run.say(&format!("{load}, in windows"))?;
            outcome.tried.extend(windows::measure(&target, &arms, load, settings, &mut random)?);
        }
    }
    outcome.keep(&run)?;
    server.stop()?;
    Ok(())
}
