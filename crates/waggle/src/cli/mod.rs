//! The command line: one file per command.

mod account;
mod children;
mod connect;
mod ddl;
mod doctor;
mod innodb;
mod lab;
mod locks;
mod pfs;
mod private_server;
mod profile;
mod prove;
mod servers;
mod verify;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use clap::{Parser, Subcommand};
use git_version::git_version;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::streams::{stdout, tell};
use crate::text::json;

/// The version, and the commit that it was built from where that is known.
const VERSION: &str = git_version!(
    prefix = concat!(env!("CARGO_PKG_VERSION"), " "),
    fallback = env!("CARGO_PKG_VERSION")
);

/// Every statement of a running MySQL or MariaDB server, and what looking cost.
#[derive(Debug, Parser)]
#[command(version = VERSION, about, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Watch(watch::Args),
    Verify(verify::Args),
    Doctor(doctor::Args),
    Servers(servers::Args),
    Locks(locks::Args),
    Pfs(pfs::Args),
    Ddl(ddl::Args),
    Innodb(innodb::Args),
    Profile(profile::Args),
    Prove(prove::Args),
    Lab(lab::Args),
    #[command(hide = true)]
    PrivateServer(private_server::Args),
    #[command(hide = true)]
    ReadProcess,
    #[command(hide = true)]
    ReadMemory,
    #[command(hide = true)]
    AskServer,
    #[command(hide = true)]
    KeepProgram(prove::keeper::Args),
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, \
                          3 wrong configuration, 4 no right, no kernel feature, no server, or an \
                          output that lacks something";

/// How a command ends.
pub(crate) enum Outcome {
    /// It did what was asked.
    Done,
    /// It worked, and the answer is no.
    No,
}

/// Why a command could not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument is missing, or does not go with another one.
    Usage(anyhow::Error),
    /// An option or an option file is wrong.
    Config(anyhow::Error),
    /// A right, a kernel feature or a server is missing, or something in an output.
    Cannot(anyhow::Error),
}

/// What is not said to be the user's mistake is something that is missing.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Cannot(error.into())
    }
}

/// Runs a command.
pub(crate) fn run(cli: Cli) -> ExitCode {
    children::use_them();
    let ended = match cli.command {
        Command::Watch(args) => watch::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Servers(args) => servers::run(args),
        Command::Locks(args) => locks::run(args),
        Command::Pfs(args) => pfs::run(args),
        Command::Ddl(args) => ddl::run(args),
        Command::Innodb(args) => innodb::run(args),
        Command::Profile(args) => profile::run(args),
        Command::Prove(args) => prove::run(args),
        Command::Lab(args) => lab::run(args),
        Command::PrivateServer(args) => private_server::run(args),
        Command::ReadProcess => children::read_process(),
        Command::ReadMemory => children::read_memory(),
        Command::AskServer => children::ask_server(),
        Command::KeepProgram(args) => prove::keeper::run(args),
    };
    match ended {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Err(Failure::Usage(error)) => complain(&error, 2),
        Err(Failure::Config(error)) => complain(&error, 3),
        Err(Failure::Cannot(error)) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Cannot(error)) => complain(&error, 4),
    }
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    tell!("waggle: {}", with_causes(error));
    ExitCode::from(code)
}

/// A message and its causes; many a message names its cause already.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// The reader of a pipe has seen enough (`waggle watch | head`): that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Fails where outputs lack something, each in words.
fn all_written(lacks: impl IntoIterator<Item = String>) -> Result<Outcome, Failure> {
    let lacks: Vec<String> = lacks.into_iter().collect();
    match lacks.is_empty() {
        true => Ok(Outcome::Done),
        false => Err(Failure::Cannot(anyhow!(lacks.join("; ")))),
    }
}

/// Prints a value as one line of JSON, or in words.
fn print(
    is_json: bool,
    value: &impl Serialize,
    in_words: impl FnOnce() -> String,
) -> io::Result<()> {
    let mut out = stdout();
    match is_json {
        true => write_json(&mut out, value)?,
        false => write!(out, "{}", in_words())?,
    }
    out.flush()
}

/// Writes one line of JSON.
fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", json(value)?)
}

/// A flag that SIGINT, SIGTERM and SIGHUP (the terminal is gone) set.
fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// A hundred years: what is longer cannot be added to the time of every clock.
const LONGEST: std::time::Duration = std::time::Duration::from_hours(100 * 365 * 24);

/// A duration such as `10s`, `500ms`, `2m`, `1h`, or a number of seconds.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; write 500ms, 10s, 2m or 1h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is no time; write 500ms, 10s, 2m or 1h"))?;
    let duration = std::time::Duration::try_from_secs_f64(number * factor).ok();
    let duration = duration.filter(|duration| *duration <= LONGEST);
    duration.ok_or_else(|| format!("`{text}` is too long"))
}

/// A process id.
fn pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| format!("`{text}` is no process id; `waggle servers` lists them"))
}

/// As [`duration`], but some time.
fn some_time(text: &str) -> Result<std::time::Duration, String> {
    let time = duration(text)?;
    (!time.is_zero()).then_some(time).ok_or_else(|| format!("`{text}` is too short"))
}

/// The shortest time between two looks at a server.
const SHORTEST_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// As [`duration`], of an interval or the time between two looks.
fn pause(text: &str) -> Result<std::time::Duration, String> {
    let pause = duration(text)?;
    let is_long_enough = pause >= SHORTEST_PAUSE;
    is_long_enough.then_some(pause).ok_or_else(|| format!("`{text}` is too short; at least 10ms"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, pause, pid};

    #[test]
    fn a_bare_number_is_seconds_and_no_time_at_all_is_refused() {
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(pause("30"), Ok(Duration::from_secs(30)));
        assert!(pause("0s").unwrap_err().contains("too short"));
    }

    #[test]
    fn what_is_no_process_id_is_called_so() {
        assert_eq!(pid("4711"), Ok(4711));
        for wrong in ["abc", "0", "-1", "4294967296"] {
            assert!(pid(wrong).unwrap_err().contains("is no process id"), "{wrong}");
        }
    }
}
