//! A step of a layer: tests of one kind, and what was found of each.

use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::built::{Built, Executable};
use super::look::{Ended, look};
use super::tier::Tier;

/// The guest is 30 to 60 times slower than the host.
const GUEST_SECONDS_MAX: u64 = 900;
/// Several times what the longest program takes. One that hangs is ended.
const PROGRAM_MAX: Duration = Duration::from_secs(1200);

pub(crate) enum Step {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// The licences and the sources of what we depend on.
    Deny,
    /// The unit tests of every package.
    Units,
    /// Files of `tests` of the package in a directory.
    Tests(&'static str, &'static [&'static str]),
    /// Tests under another kernel, which boots once: each by its package and its name.
    Guest { kernel: &'static str, tests: &'static [(&'static str, &'static str)] },
}

/// What was found of one test.
pub(crate) struct Found {
    /// What runs it again; `None` for a step that is no program of tests.
    pub(crate) program: Option<Executable>,
    pub(crate) ended: Ended,
    /// Further looks at it, alone.
    pub(crate) again: Vec<Ended>,
}

impl Found {
    /// A step as a whole.
    pub(crate) fn of_step(heading: &str, time: Duration, failure: Option<String>) -> Found {
        let ended = Ended { name: heading.to_owned(), time, failure };
        Found { program: None, ended, again: Vec::new() }
    }

    /// Whether it failed in the last look.
    pub(crate) fn has_failed(&self) -> bool {
        self.again.last().unwrap_or(&self.ended).failure.is_some()
    }

    /// Whether it failed beside others, and passed alone.
    pub(crate) fn is_unstable(&self) -> bool {
        self.ended.failure.is_some() && !self.has_failed()
    }

    /// With its program.
    pub(crate) fn name(&self) -> String {
        let name = &self.ended.name;
        self.program.as_ref().map_or_else(|| name.clone(), |one| format!("{} {name}", one.name()))
    }
}

impl Step {
    /// Whether a tier has something of it.
    pub(crate) fn is_of(&self, tier: Tier) -> bool {
        match self {
            Step::Cargo(_) | Step::Deny => tier == Tier::Gate,
            Step::Guest { .. } => tier == Tier::Long,
            Step::Units => true,
            Step::Tests(package, targets) => {
                targets.iter().any(|target| tier.has_some_of(package, target))
            }
        }
    }

    /// Runs what a tier has of it; of a program, `at_once` tests at a time.
    pub(crate) fn run(&self, tier: Tier, built: &Built, at_once: usize) -> Result<Vec<Found>> {
        match self {
            Step::Cargo(words) => {
                program(&format!("cargo {}", words.join(" ")), Command::new("cargo").args(*words))
            }
            Step::Deny => program("cargo deny", &mut crate::deny::command()?),
            Step::Units => tests(built.units(), tier, at_once),
            Step::Tests(package, targets) => {
                let programs = targets.iter().filter(|target| tier.has_some_of(package, target));
                let programs: Result<Vec<_>> =
                    programs.map(|target| built.integration(package, target)).collect();
                tests(programs?.into_iter(), tier, at_once)
            }
            Step::Guest { kernel, tests } => {
                let heading = format!("{} tests under kernel {kernel}", tests.len());
                program(&heading, &mut guest(kernel, tests, built)?)
            }
        }
    }
}

fn tests<'a>(
    programs: impl Iterator<Item = &'a Executable>,
    tier: Tier,
    at_once: usize,
) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for program in programs {
        let names = program.tests(tier)?;
        if names.is_empty() {
            continue;
        }
        println!("\n== {}: {} tests", program.name(), names.len());
        let ended = look(program, &names, at_once, tier.longest_test())?;
        let of = |ended| Found { program: Some(program.clone()), ended, again: Vec::new() };
        found.extend(ended.into_iter().map(of));
    }
    Ok(found)
}

/// Runs a program that is a test as a whole.
fn program(heading: &str, command: &mut Command) -> Result<Vec<Found>> {
    println!("\n== {heading}");
    let begin = Instant::now();
    let failure = match wait(command).with_context(|| heading.to_owned())? {
        status if status.success() => None,
        status => Some(format!("{status}: see above")),
    };
    Ok(vec![Found::of_step(heading, begin.elapsed(), failure)])
}

/// Runs a program to its end, for as long as one may take.
fn wait(command: &mut Command) -> Result<ExitStatus> {
    let (mut child, begin) = (command.spawn()?, Instant::now());
    while begin.elapsed() < PROGRAM_MAX {
        if let Some(ended) = child.try_wait()? {
            return Ok(ended);
        }
        sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    bail!("it hung: ended after {} minutes", PROGRAM_MAX.as_secs() / 60)
}

fn guest(kernel: &str, tests: &[(&str, &str)], built: &Built) -> Result<Command> {
    let mut script = Vec::new();
    for (package, test) in tests {
        let binary = built.integration(package, "it")?.path.display();
        script.push(format!("'{binary}' --exact {test} --nocapture"));
    }
    // This program, even where building the tests has put another one into its place.
    let mut command = Command::new("/proc/self/exe");
    command.args(["vm", "--kernel", kernel, "--timeout", &GUEST_SECONDS_MAX.to_string(), "--"]);
    command.args(["sh", "-c", &script.join(" && ")]);
    Ok(command)
}
