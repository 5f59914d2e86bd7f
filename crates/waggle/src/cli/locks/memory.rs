//! Without an account: the memory of every server of this host.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use waggle_account::Grouping;
use waggle_host::monotonic_ns;
use waggle_model::{Command, Ran, SeenLocks, SeenSession};
use waggle_mysql::locks::{About, Locks, Memory, TURN, in_memory, server_in_memory};
use waggle_observe::{
    Capture, Missing, Observer, ObserverOptions, OpenTransaction, Sinks, Watched, WhyMissing,
    no_server,
};
use waggle_probes::capture::Amount;

use super::{Args, Look, json, outcome, text};
use crate::cli::watch::{CaptureArgs, until};
use crate::cli::{Failure, Outcome, print};
use crate::lacking;
use crate::streams::tell;
use crate::text::printable;

/// How often the observer looks at sessions by itself.
const INTERVAL: Duration = Duration::from_secs(1);
/// Why nothing is told of a server that was read just before.
const ENDED: &str = "the server has ended";

/// Finds the servers, or the one of this process. Who does not go on looking for them waits for all that may be found.
pub(super) fn attach(
    pid: Option<u32>,
    goes_on: bool,
    stop: &AtomicBool,
) -> Result<Capture, Failure> {
    // For what no lock and no state of a session tells: its thread does.
    let capture = CaptureArgs::of(pid).with_waits().attach(false, goes_on, stop)?;
    match capture.watched().is_empty() {
        true => Err(Failure::Cannot(anyhow!("{}", no_server()))),
        false => Ok(capture),
    }
}

/// What remembers the statements of sessions between looks.
pub(super) fn observe(capture: Capture, looks_for_servers: bool) -> Observer {
    let grouping = Grouping::Digest;
    Observer::begin(capture, ObserverOptions { interval: INTERVAL, grouping, looks_for_servers })
}

pub(super) fn run(args: &Args, capture: Capture, stop: &AtomicBool) -> Result<Outcome, Failure> {
    let mut observer = observe(capture, args.watch.is_some());
    let redact = !args.no_redact;
    let mut before = BTreeMap::new();
    loop {
        let begin = Instant::now();
        let mut told = read(&mut observer, redact);
        if args.watch.is_none() && known(&told).any(|(_, locks)| locks.may_take_turns()) {
            observer.run(&mut Sinks::default(), &mut until(Some(TURN), stop));
            before = known(&told).map(|(pid, locks)| (pid, locks.clone())).collect();
            told = read(&mut observer, redact);
            for pid in before.keys() {
                told.entry(*pid).or_insert_with(|| Err(ENDED.to_owned()));
            }
        }
        for (pid, locks) in &mut told {
            if let (Ok(locks), Some(before)) = (locks, before.get(pid)) {
                locks.compare(before);
            }
        }
        let unread = show(args, &observer, &told)?;
        let Some(pause) = args.watch else {
            let missing = unknown(&observer.capture().missing());
            let missing = (!missing.is_empty()).then(|| lacking::servers(&missing));
            return sum(known(&told), unread.into_iter().chain(missing).collect());
        };
        before = known(&told).map(|(pid, locks)| (pid, locks.clone())).collect();
        let left = pause.saturating_sub(begin.elapsed());
        observer.run(&mut Sinks::default(), &mut until(Some(left), stop));
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Done);
        }
    }
}

/// Those of whom something is known.
fn known(told: &BTreeMap<u32, Memory>) -> impl Iterator<Item = (u32, &Locks)> {
    told.iter().filter_map(|(pid, told)| Some((*pid, told.as_ref().ok()?)))
}

/// Prints what was found at every server; gives what could not be read.
fn show(
    args: &Args,
    observer: &Observer,
    told: &BTreeMap<u32, Memory>,
) -> Result<Vec<String>, Failure> {
    let mut unread = Vec::new();
    for (pid, told) in told {
        let watched = observer.capture().watched().get(pid);
        let locks = match told {
            Ok(locks) => locks,
            Err(why) => {
                // One that has just ended is no loss where there are others.
                let has_ended = watched.is_none_or(|watched| watched.found().has_ended());
                if args.watch.is_some() || has_ended && args.pid.is_none() {
                    tell!("waggle: pid {pid}: {why}");
                } else {
                    unread.push(format!("pid {pid}: {why}"));
                }
                continue;
            }
        };
        let Some(Watched { server, .. }) = watched else { continue };
        let look = Look {
            at: jiff::Timestamp::now(),
            server: &server_in_memory(server.flavour, &server.version),
            locks,
            deadlock: None,
            redact: !args.no_redact,
            limit: args.limit,
            pid: Some(*pid),
        };
        print(args.json, &json::of(&look), || text::of(&look))?;
    }
    Ok(unread)
}

/// What the memory of each server tells now, by pid, with what is remembered of its sessions.
pub(super) fn read(observer: &mut Observer, redact: bool) -> BTreeMap<u32, Memory> {
    let seen = observer.locks();
    let seen_ns = monotonic_ns();
    // What ended before the look is known when it is told.
    observer.drain(Amount::UpToNow, &mut Sinks::default());
    let observer = &*observer;
    let told = |(pid, seen): (u32, Result<SeenLocks, String>)| {
        let flavour = observer.capture().watched().get(&pid)?.server.flavour;
        let about = |session: &SeenSession| about(observer, pid, session, seen_ns, redact);
        Some((pid, seen.map(|seen| in_memory(&seen, flavour, &about))))
    };
    seen.into_iter().filter_map(told).collect()
}

/// What is known of a session beside its memory.
fn about(
    observer: &Observer,
    pid: u32,
    session: &SeenSession,
    seen_ns: u64,
    redact: bool,
) -> About {
    let book = observer.remembered();
    let remembered = book.of(pid, session, seen_ns);
    let seconds = |since_ns: u64| monotonic_ns().saturating_sub(since_ns) as f64 / 1e9;
    // As its session read it.
    let text = |ran: &Ran| printable(&ran.text, ran.settings, redact);
    let is_idle = session.command == Command::SLEEP;
    let began = || observer.capture().start_ns(pid, session.noted_start_us?);
    let since_s = match is_idle {
        true => remembered.map(|one| seconds(one.last_end_ns)),
        false => began().map(seconds),
    };
    let transaction_s = match remembered.map(|one| one.transaction) {
        Some(OpenTransaction::Since(begun_ns)) => Some(seconds(begun_ns)),
        // What it runs is a transaction of its own.
        Some(OpenTransaction::No) if !is_idle => since_s,
        _ => None,
    };
    About {
        since_s,
        transaction_s,
        last: remembered.map(|one| text(one.last)),
        first_write: remembered.and_then(|one| one.first_write).map(text),
        why_unknown: Some(match book.forgotten() {
            0 => "it ended before waggle came, which remembers statements with --watch".to_owned(),
            forgotten => format!(
                "it ended before waggle came, or was forgotten: {forgotten} sessions were, as there were too \
                 many or statements were lost"
            ),
        }),
    }
}

/// The servers of which nothing is known, so that nobody can say that nobody waits: all of root, mysql and the user of
/// waggle, and those that may still be read. Everybody else can start what looks like a server and is none.
fn unknown(missing: &[Missing]) -> Vec<Missing> {
    let is_meant =
        |one: &&Missing| one.owner.is_trusted() || !matches!(one.why, WhyMissing::Refused(_));
    missing.iter().filter(is_meant).cloned().collect()
}

/// The worst outcome of all servers; `doubts` say what is not known of them, or of those that could not be read.
fn sum<'a>(
    found: impl Iterator<Item = (u32, &'a Locks)>,
    mut doubts: Vec<String>,
) -> Result<Outcome, Failure> {
    let mut is_any = false;
    for (pid, locks) in found {
        match outcome(locks) {
            Ok(Outcome::No) => is_any = true,
            Ok(Outcome::Done) => {}
            Err(Failure::Usage(why) | Failure::Config(why) | Failure::Cannot(why)) => {
                doubts.push(format!("pid {pid}: {why:#}"));
            }
        }
    }
    if is_any {
        doubts.iter().for_each(|why| tell!("waggle: {why}"));
        return Ok(Outcome::No);
    }
    match doubts.is_empty() {
        true => Ok(Outcome::Done),
        false => Err(Failure::Cannot(anyhow!("{}", doubts.join("; ")))),
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::{Flavour, Reading};

    use super::*;

    #[test]
    fn where_a_server_is_missing_nobody_says_that_nobody_waits() {
        let missing = || vec!["pid 7 is not watched yet".to_owned()];
        assert!(matches!(sum([].into_iter(), Vec::new()), Ok(Outcome::Done)));
        assert!(matches!(sum([].into_iter(), missing()), Err(Failure::Cannot(_))));
        let (metadata, rows) = (Reading::Value(Vec::new()), Reading::Value(Vec::new()));
        let seen =
            SeenLocks { sessions: Vec::new(), metadata, rows, unreadable: 0, is_pooled: false };
        let free = in_memory(&seen, Flavour::Mariadb, &|_| unreachable!("nobody is there"));
        assert!(matches!(sum([(7, &free)].into_iter(), Vec::new()), Ok(Outcome::Done)));
        assert!(matches!(sum([(7, &free)].into_iter(), missing()), Err(Failure::Cannot(_))));
    }
}
