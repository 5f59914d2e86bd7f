//! The process that undoes changes when the one that made them is gone.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use waggle_instrumentation::hold::{HoldError, guard};

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, stop_on_signal};
use super::{cannot, history, open};

/// How long a server that does not answer is tried, and how often.
const PATIENCE: Duration = Duration::from_secs(300);
const BETWEEN: Duration = Duration::from_millis(200);
/// What it says when it is connected.
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

/// Whether it is not yet long since it first failed.
fn is_patient(broken: &mut Option<Instant>) -> bool {
    broken.get_or_insert_with(Instant::now).elapsed() < PATIENCE
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    // Ctrl-C and the end of the terminal are for the command that is guarded.
    let _ignored = stop_on_signal()?;
    // It fails for the leader of a group only, who is in nobody's.
    let _ = rustix::process::setsid();
    let options = args.account.read()?;
    let mut connection = open(&options)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{READY}")?;
    out.flush()?;
    drop(out);
    let mut broken = None;
    loop {
        match guard(&args.journal, &mut connection) {
            Ok(ended) => {
                ended.iter().for_each(history::tell);
                return Ok(Outcome::Done);
            }
            // The server was started anew, somebody ended the session, or what stands in the way may go.
            Err(
                HoldError::Connection(_) | HoldError::StillRuns { .. } | HoldError::NotKnown { .. },
            ) if is_patient(&mut broken) => {
                std::thread::sleep(BETWEEN);
                if let Ok(anew) = open(&options) {
                    connection = anew;
                }
            }
            Err(error) => return Err(cannot(error)),
        }
    }
}
