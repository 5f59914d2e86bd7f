//! `waggle locks`

mod beside;
mod json;
mod memory;
mod text;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use waggle_model::Reading;
use waggle_mysql::locks::{Deadlock, Locks, Poller, SomebodyWaits, TURN, last_deadlock};
use waggle_mysql::{Connection, ServerIdentity};

use super::account::AccountArgs;
use super::connect::connect;
use super::{Failure, Outcome, pause, pid, print, stop_on_signal};
use crate::streams::tell;
use beside::Beside;

const AFTER_HELP: &str = "\
Without an account waggle reads the memory of the servers of this host; --watch remembers what their \
sessions run, so that it can tell the last statement of an idle one.

Exit code 1 where somebody waits for a lock, 0 where nobody waits; with --watch always 0. 4 where nobody was \
found to wait for a lock, but somebody waits for something else, or not everything could be read.

Example: waggle locks --watch 1s --defaults-file /etc/mysql/waggle.cnf";

/// From this on it is told how much later the memory of a server was read than the server was asked.
const APART: Duration = Duration::from_millis(100);
/// How soon a signal is seen.
const TICK: Duration = Duration::from_millis(50);

/// Show who waits for whom as a tree: for row locks, metadata locks, flushes, replication.
///
/// Without an account, row locks and metadata locks are read in the memory of the servers of this
/// host. With one, two cheap statements ask whether anything waits. Only then are lock tables read,
/// with limits, and never one that can hang the server; where they do not tell who blocks, and the server
/// runs on this host, its memory is read. Nothing is changed: KILL is named, never sent.
/// The account needs PROCESS, and SELECT on performance_schema.*; with less, the rest is shown.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Look again and again, with this pause; until Ctrl-C.
    #[arg(long, value_name = "PAUSE", value_parser = pause, num_args = 0..=1,
          default_missing_value = "2s")]
    watch: Option<Duration>,
    /// Without an account: only the server with this process id.
    #[arg(long, value_parser = pid, conflicts_with_all = ["AccountArgs", "deadlock"])]
    pid: Option<u32>,
    /// Also show the last deadlock, which only an account can read. Reading it holds mutexes of InnoDB for a moment.
    #[arg(long)]
    deadlock: bool,
    /// Waiters that are drawn below each blocker; those for whom others wait are always drawn.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Show the literals of statements and the keys of locked records. Passwords stay masked.
    #[arg(long)]
    no_redact: bool,
    /// One JSON object per look.
    #[arg(long)]
    json: bool,
    /// With an account: do not read the memory of the server where SQL does not tell who blocks.
    #[arg(long)]
    no_memory: bool,
    #[command(flatten)]
    account: AccountArgs,
}

/// One look: what it found, and when.
struct Look<'a> {
    at: jiff::Timestamp,
    server: &'a ServerIdentity,
    locks: &'a Locks,
    deadlock: Option<&'a Reading<Option<Deadlock>>>,
    redact: bool,
    limit: usize,
    /// The process, where its memory was read.
    pid: Option<u32>,
}

impl Look<'_> {
    /// How long after the server was asked its memory was read, where that is long and both are shown.
    fn memory_after(&self) -> Option<Duration> {
        self.locks.memory_after.filter(|after| *after > APART)
    }
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    if !args.account.is_given() && !args.deadlock && !args.no_memory {
        match memory::attach(args.pid, args.watch.is_some(), &stop) {
            Ok(capture) => return memory::run(&args, capture, &stop),
            Err(Failure::Cannot(why)) if args.pid.is_none() => {
                tell!("waggle: {why}; the account of the option files is taken");
            }
            Err(failure) => return Err(failure),
        }
    }
    let options = args.account.clone().read()?;
    let mut connection = connect(&options, Connection::open)?;
    let mut poller = Poller::new(&mut connection)?;
    let mut memory = Beside::new(&args, &stop);
    if args.watch.is_some() {
        // What sessions run from now on is remembered, before anybody waits behind it.
        memory.open(&mut connection);
    }
    let mut before = None;
    loop {
        let begin = Instant::now();
        let mut poll =
            || poller.poll_with(&mut connection, &mut |connection| memory.look(connection));
        let mut locks = poll()?;
        if args.watch.is_none() && locks.may_take_turns() && wait_until(begin + TURN, &stop) {
            let statements = locks.statements;
            before = Some(std::mem::replace(&mut locks, poll()?));
            locks.statements += statements;
        }
        if let Some(before) = &before {
            locks.compare(before);
        }
        show(&args, &mut connection, &locks)?;
        let Some(pause) = args.watch else { return outcome(&locks) };
        before = Some(locks);
        if !memory.wait_until(begin + pause, &stop) {
            return Ok(Outcome::Done);
        }
    }
}

fn show(args: &Args, connection: &mut Connection, locks: &Locks) -> Result<(), Failure> {
    let deadlock = match args.deadlock {
        true => Some(last_deadlock(connection)?),
        false => None,
    };
    let look = Look {
        at: jiff::Timestamp::now(),
        server: connection.server_identity(),
        locks,
        deadlock: deadlock.as_ref(),
        redact: !args.no_redact,
        limit: args.limit,
        pid: None,
    };
    print(args.json, &json::of(&look), || text::of(&look))?;
    Ok(())
}

fn outcome(locks: &Locks) -> Result<Outcome, Failure> {
    let waits = locks.somebody_waits();
    let why = match waits {
        SomebodyWaits::ForLock => return Ok(Outcome::No),
        SomebodyWaits::No => return Ok(Outcome::Done),
        SomebodyWaits::NotForLock(_) => Some(waits.to_string()),
        SomebodyWaits::NotKnown => None,
    };
    let why: Vec<String> = why.into_iter().chain(locks.not_known.iter().cloned()).collect();
    Err(Failure::Cannot(anyhow::anyhow!("{}", why.join("; "))))
}

/// `false` if a signal came.
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
