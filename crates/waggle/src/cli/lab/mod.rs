//! `waggle lab`

mod announce;
mod arguments;
mod found;
mod list;
mod progress;
mod report;
mod run;
mod server;

use std::path::{Path, PathBuf};

use waggle_instrumentation::journal;
use waggle_lab::LabError;
use waggle_lab::run_dir::RUN;
use waggle_lab::suite::SuiteError;

use super::{Failure, Outcome};

/// Published overhead experiments, run again on your own server and hardware.
///
/// A suite compares settings under a load, in short windows in a random order, on private servers that
/// are started for it. A server in use is touched only where --dsn and --yes say so, and its settings are put back.
/// Every window is kept; a run that is interrupted can be resumed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: waggle lab run rds --server /usr/sbin/mysqld --scale tiny --time-budget 10m"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(arguments::RunArgs),
    Resume(arguments::ResumeArgs),
    Suites(list::SuitesArgs),
    List(list::ListArgs),
    Show(list::ShowArgs),
    Report(report::ReportArgs),
    Compare(report::CompareArgs),
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    match args.command {
        Command::Run(args) => run::run(args),
        Command::Resume(args) => run::resume(args),
        Command::Suites(args) => list::suites(args),
        Command::List(args) => list::list(args),
        Command::Show(args) => list::show(args),
        Command::Report(args) => report::report(args),
        Command::Compare(args) => report::compare(args),
    }
}

/// Where runs are kept.
fn runs() -> PathBuf {
    let environment = |name: &str| std::env::var(name).ok();
    let is_root = rustix::process::geteuid().is_root();
    journal::state_directory(environment, is_root).join("lab")
}

/// The directory of a run, found by its name among the kept runs or by its path.
fn directory(run: &Path) -> PathBuf {
    match run.components().count() {
        1 if !run.join(RUN).is_file() => runs().join(run),
        _ => run.to_owned(),
    }
}

/// How an error ends the command: a wrong suite is wrong configuration, the rest is missing on the host.
fn failed(error: impl Into<LabError>) -> Failure {
    let error = error.into();
    match error {
        LabError::Suite(SuiteError::NoSuchWord { .. }) => Failure::Usage(error.into()),
        LabError::Suite(_) | LabError::Scenario { .. } | LabError::DoesNotFit(_) => {
            Failure::Config(error.into())
        }
        _ => Failure::Cannot(error.into()),
    }
}
