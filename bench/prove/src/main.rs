//! `cargo xtask bench prove`: whether `waggle prove` finds costs of known size, and what it finds of waggle. How it is done:
//! `README.md` of this package.
#![forbid(unsafe_code)]

mod prices;
mod report;
mod settings;
mod truth;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use waggle_bench_frame::{Run, ended};
use waggle_stats::Random;

use report::Outcome;
use settings::{Part, Settings};

fn main() -> ExitCode {
    ended(run(Settings::parse().made_quick()))
}

fn run(settings: Settings) -> Result<()> {
    let run = Run::begin("prove", &settings.options);
    let mut random = Random::seeded(settings.options.seed);
    let truth = match settings.has(Part::Truth) {
        true => truth::measure(&settings, &run, &mut random)?,
        false => Vec::new(),
    };
    let prices = match settings.has(Part::Prices) {
        true => prices::measure(&settings, &run)?,
        false => Vec::new(),
    };
    let outcome = Outcome { settings, truth, prices };
    run.keep(outcome.settings(), outcome.found(), &outcome.page(&run))
}
