//! `waggle pfs`

mod apply;
mod cost;
mod guard;
mod guardian;
pub(super) mod history;
pub(super) mod hold;
mod persist;
pub(super) mod plan;
pub(super) mod process;
pub(super) mod rights;
mod set;
mod status;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use waggle_instrumentation::hold::abandoned;
use waggle_instrumentation::journal::{self, Contents};
use waggle_instrumentation::profile::{BUILTIN, Profile};
use waggle_mysql::{Connection, Options};

use super::account::AccountArgs;
use super::{Failure, Outcome, write_json};
use crate::streams::{stdout, tell};

/// What Performance Schema records: see it, plan a change, make it for a while, and undo it.
///
/// Every change is written to a journal before it is made. It is undone when the command ends,
/// within two seconds of its death, and by `waggle pfs rollback`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs status --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Status(status::Args),
    Cost(cost::Args),
    Profiles(ProfilesArgs),
    Plan(plan::Args),
    Apply(apply::Args),
    Set(set::Args),
    Timer(set::TimerArgs),
    Rollback(history::RollbackArgs),
    History(history::HistoryArgs),
    Persist(persist::Args),
    #[command(hide = true)]
    Guardian(guardian::Args),
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    match args.command {
        Command::Status(args) => status::run(args),
        Command::Cost(args) => cost::run(args),
        Command::Profiles(args) => profiles(&args),
        Command::Plan(args) => plan::run(args),
        Command::Apply(args) => apply::run(args),
        Command::Set(args) => set::run(args),
        Command::Timer(args) => set::run_timer(args),
        Command::Rollback(args) => history::rollback(args),
        Command::History(args) => history::run(&args),
        Command::Persist(args) => persist::run(args),
        Command::Guardian(args) => guardian::run(args),
    }
}

/// List the profiles that come with waggle.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs profiles")]
struct ProfilesArgs {
    /// One JSON object per profile.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ProfileJson<'a> {
    name: &'a str,
    question: &'a str,
    expected_cost: &'a str,
}

fn profiles(args: &ProfilesArgs) -> Result<Outcome, Failure> {
    let mut out = stdout();
    for (name, text) in BUILTIN {
        let profile = Profile::parse(name, text).map_err(|error| Failure::Config(error.into()))?;
        let (question, expected_cost) = (&profile.question, &profile.expected_cost);
        if args.json {
            let row = ProfileJson { name, question, expected_cost };
            write_json(&mut out, &row)?;
        } else {
            writeln!(out, "{name}\n    {question}\n    {expected_cost}")?;
        }
    }
    Ok(Outcome::Done)
}

/// As [`open`], for a command that undoes nothing: it tells what a dead one left.
pub(super) fn connect(account: AccountArgs) -> Result<Connection, Failure> {
    let mut connection = open(&account.read()?)?;
    match abandoned(&journals(), &mut connection) {
        Ok(left) => left.iter().for_each(|contents| tell!("{}", left_behind(contents))),
        Err(error) => tell!("waggle: {error}"),
    }
    Ok(connection)
}

fn left_behind(contents: &Contents) -> String {
    let Contents { header, changes, .. } = contents;
    format!(
        "`{}` of {} ended without undoing its changes of {} rows; undo them with: waggle pfs rollback",
        header.command,
        header.at.strftime("%F %T"),
        changes.len()
    )
}

/// A connection for changes.
pub(super) fn open(options: &Options) -> Result<Connection, Failure> {
    super::connect::connect(options, Connection::open_for_changes)
}

/// Why the memory of Performance Schema is not known where it may be read.
const NOT_SAID: &str = "the server does not say";

/// Where the journals are.
pub(super) fn journals() -> PathBuf {
    journal::directory(environment, is_root())
}

/// Where calibrations are.
fn calibrations() -> PathBuf {
    journal::state_directory(environment, is_root()).join("calibration")
}

/// Where what `waggle prove` has found is.
pub(super) fn proven() -> PathBuf {
    journal::state_directory(environment, is_root()).join("proven")
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
