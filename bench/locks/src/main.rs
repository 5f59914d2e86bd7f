//! `cargo xtask bench locks`: what `waggle locks` costs. How it is done: `README.md` of this package.
#![forbid(unsafe_code)]

mod effect;
mod looks;
mod memory;
mod polling;
mod report;
mod settings;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use waggle_bench_frame::{Run, ended};
use waggle_stats::Random;

use effect::Subject;
use report::Outcome;
use settings::{Part, Settings};

fn main() -> ExitCode {
    ended(run(Settings::parse().made_quick()))
}

fn run(settings: Settings) -> Result<()> {
    ensure!(settings.looks > 0 && settings.blocks > 1, "give at least --looks 1 and --blocks 2");
    let run = Run::begin("locks", &settings.options);
    let mut random = Random::seeded(settings.options.seed);
    let mut looks = Vec::new();
    if settings.has(Part::Looks) {
        for server in settings.servers() {
            run.say(&format!("looks at {server}"))?;
            looks.extend(looks::measure(server, settings.looks)?);
        }
    }
    let mut in_memory = Vec::new();
    if settings.has(Part::Memory) {
        for server in settings.servers() {
            run.say(&format!("looks in the memory of {server}"))?;
            in_memory.extend(memory::measure(server, &settings.numbers(), settings.looks)?);
        }
    }
    let (mut version, mut effects) = (None, Vec::new());
    if settings.has(Part::Effect) {
        let mut subject = Subject::start(&settings)?;
        version = Some(subject.server.version_string().to_owned());
        for sessions in settings.sessions() {
            run.say(&format!("{sessions} sessions at work"))?;
            effects.extend(subject.measure(sessions, &settings, &mut random)?);
        }
    }
    let outcome = Outcome { settings, looks, in_memory, version, effects };
    run.keep(outcome.settings(), outcome.found(), &outcome.page(&run))
}
