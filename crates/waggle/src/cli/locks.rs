//! `waggle locks`

mod json;
mod text;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use waggle_model::Reading;
use waggle_mysql::locks::{Deadlock, Locks, Poller, last_deadlock};
use waggle_mysql::{Connection, ConnectionError};

use super::account::AccountArgs;
use super::{Failure, Outcome, pause, stop_on_signal};

const AFTER_HELP: &str = "\
Exit code 1 where somebody waits, 0 where nobody does; with --watch always 0. 4 where nobody was found, \
but not everywhere could be looked.

Example: waggle locks --watch 1s --defaults-file /etc/mysql/waggle.cnf";

/// How soon a signal is seen.
const TICK: Duration = Duration::from_millis(50);

/// Show who waits for which lock, and who holds it: row locks and metadata locks as a tree.
///
/// Two cheap statements ask whether anything waits; only then are tables of locks read, with limits,
/// and none that can hang the server. Nothing is changed: KILL is named, never sent. The account
/// needs PROCESS, and SELECT on performance_schema.*; with less, the rest is shown.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Look again and again, with this pause; until Ctrl-C.
    #[arg(long, value_name = "PAUSE", value_parser = pause, num_args = 0..=1,
          default_missing_value = "2s")]
    watch: Option<Duration>,
    /// Also show the last deadlock. Reading it holds mutexes of InnoDB for a moment.
    #[arg(long)]
    deadlock: bool,
    /// Waiters that are drawn below each blocker; those for whom others wait are always drawn.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Show the literals of statements and the keys of locked records, too. Passwords are masked all
    /// the same.
    #[arg(long)]
    no_redact: bool,
    /// One JSON object per look.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

/// One look: what it found, and when.
struct Look<'a> {
    at: jiff::Timestamp,
    server: &'a str,
    locks: &'a Locks,
    deadlock: Option<&'a Reading<Option<Deadlock>>>,
    redact: bool,
    limit: usize,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let options = args.account.clone().read()?;
    let stop = stop_on_signal()?;
    let mut connection =
        Connection::open(&options, None).map_err(|error| Failure::Config(error.into()))?;
    let mut poller = Poller::new(&mut connection).map_err(cannot)?;
    loop {
        let begin = Instant::now();
        let locks = look(&args, &mut connection, &mut poller)?;
        let Some(pause) = args.watch else { return outcome(&locks) };
        if !wait_until(begin + pause, &stop) {
            return Ok(Outcome::Done);
        }
    }
}

fn cannot(error: ConnectionError) -> Failure {
    Failure::Cannot(error.into())
}

fn look(args: &Args, connection: &mut Connection, poller: &mut Poller) -> Result<Locks, Failure> {
    let locks = poller.poll(connection).map_err(cannot)?;
    let deadlock = match args.deadlock {
        true => Some(last_deadlock(connection).map_err(cannot)?),
        false => None,
    };
    let look = Look {
        at: jiff::Timestamp::now(),
        server: &connection.server_identity().version,
        locks: &locks,
        deadlock: deadlock.as_ref(),
        redact: !args.no_redact,
        limit: args.limit,
    };
    let mut out = io::stdout().lock();
    match args.json {
        true => {
            serde_json::to_writer(&mut out, &json::of(&look)).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        false => write!(out, "{}", text::of(&look))?,
    }
    out.flush()?;
    Ok(locks)
}

fn outcome(locks: &Locks) -> Result<Outcome, Failure> {
    match locks.somebody_waits() {
        Some(true) => Ok(Outcome::No),
        Some(false) => Ok(Outcome::Done),
        None => Err(Failure::Cannot(anyhow::anyhow!("{}", locks.not_known.join("; ")))),
    }
}

/// `false` where a signal came.
fn wait_until(end: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(TICK));
    }
    false
}
