//! `cargo xtask bench locks`: what `waggle locks` costs. How it is done: `README.md` of this package.
#![forbid(unsafe_code)]

mod effect;
mod looks;
mod polling;
mod report;
mod settings;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use waggle_bench_kept::say;
use waggle_stats::Random;

use effect::Subject;
use report::Outcome;
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
    ensure!(settings.looks > 0 && settings.blocks > 1, "give at least --looks 1 and --blocks 2");
    let begin = Instant::now();
    let machine = waggle_bench_kept::machine();
    let mut random = Random::seeded(settings.seed);
    let mut looks = Vec::new();
    if settings.has(Part::Looks) {
        for server in settings.servers() {
            say(begin, &format!("looks at {server}"))?;
            looks.extend(looks::measure(server, settings.looks)?);
        }
    }
    let (mut version, mut effects) = (None, Vec::new());
    if settings.has(Part::Effect) {
        let mut subject = Subject::start(&settings)?;
        version = Some(subject.server.version_string().to_owned());
        for sessions in settings.sessions() {
            say(begin, &format!("{sessions} sessions at work"))?;
            effects.extend(subject.measure(sessions, &settings, &mut random)?);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let outcome = Outcome { settings, machine, looks, version, effects, seconds };
    writeln!(io::stdout(), "{}", outcome.write()?.display())?;
    Ok(())
}
