//! The process that undoes changes if the command that made them dies.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use waggle_instrumentation::hold::{HoldError, guard};
use waggle_mysql::{Connection, Options};

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, stop_on_signal};
use super::{history, open};
use crate::streams::stdout;

/// How long a server that does not answer is tried, and how often: more rarely while none takes a connection.
const PATIENCE: Duration = Duration::from_secs(300);
const BETWEEN: Duration = Duration::from_millis(200);
const BETWEEN_MAX: Duration = Duration::from_secs(1);
/// Its message once it is connected.
const READY: &str = "ready";

/// Wait until whoever holds a journal is gone, and undo what it left.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The journal.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
    #[command(flatten)]
    account: AccountArgs,
}

/// Starts the guardian of a journal, and waits until it is connected.
pub(super) fn start(journal: &Path, account: &AccountArgs) -> Result<(), Failure> {
    let started = || -> anyhow::Result<bool> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["pfs", "guardian", "--journal"])
            .arg(journal)
            .args(account.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        Ok(line.trim_end() == READY)
    };
    match started().context("the guardian process cannot be started; nothing was changed") {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Cannot(anyhow::anyhow!(
            "the guardian process ended before it was ready; nothing was changed"
        ))),
        Err(error) => Err(Failure::Cannot(error)),
    }
}

/// Whether it first failed only a short while ago.
fn is_patient(broken: &mut Option<Instant>) -> bool {
    broken.get_or_insert_with(Instant::now).elapsed() < PATIENCE
}

/// A connection to a server that may be gone for a while; `None` once that lasts too long.
fn connect_again(options: &Options, broken: &mut Option<Instant>) -> Option<Connection> {
    let mut between = BETWEEN;
    while is_patient(broken) {
        std::thread::sleep(between);
        if let Ok(connection) = open(options) {
            return Some(connection);
        }
        between = BETWEEN_MAX.min(2 * between);
    }
    None
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    // Ctrl-C and the end of the terminal are for the command that is guarded.
    let _ignored = stop_on_signal()?;
    // It fails for the leader of a group only, who is in nobody's.
    let _ = rustix::process::setsid();
    let options = args.account.read()?;
    let mut connection = open(&options)?;
    let mut out = stdout();
    writeln!(out, "{READY}")?;
    out.flush()?;
    let mut broken = None;
    loop {
        // It says nothing before it is done: what it wrote to may be closed, or take nothing any more.
        match guard(&args.journal, &mut connection, &mut |_| {}) {
            Ok(ended) => {
                ended.iter().for_each(history::tell);
                return Ok(Outcome::Done);
            }
            // The server restarted, somebody ended the session, or the obstacle may go away.
            Err(
                HoldError::Connection(_)
                | HoldError::StillRuns { .. }
                | HoldError::NotOurs { .. }
                | HoldError::NotKnown { .. },
            ) if is_patient(&mut broken) => {
                if let Some(anew) = connect_again(&options, &mut broken) {
                    connection = anew;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}
