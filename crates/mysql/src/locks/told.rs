//! Waits that the state of a session tells of.

use waggle_model::WaitsFor;

use super::gate::{Source, Waiting};
use super::wait::{LockKind, Wait};
use super::{WAITERS_MAX, flush, metadata, workers};
use crate::connection::{Connection, ConnectionError};

/// Who of those whose state says that they wait is blocked by whom.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
    waiting: &[Waiting],
) -> Result<Vec<Wait>, ConnectionError> {
    let waiting = &waiting[..waiting.len().min(WAITERS_MAX)];
    let (mut locks, mut flushes, mut replicating) = (Vec::new(), Vec::new(), Vec::new());
    let mut waits = Vec::new();
    for one in waiting {
        match one.waits_for {
            WaitsFor::MetadataLock | WaitsFor::TableLock => locks.push(one),
            WaitsFor::OldTables => flushes.push(one),
            WaitsFor::EarlierCommit | WaitsFor::Workers => replicating.push(one),
            WaitsFor::Unnamed(who) | WaitsFor::NoLock(who) => {
                waits.extend(unknown(one, waits_for(who)));
            }
            WaitsFor::Unknown => {
                let why = "waggle does not know this state, and the server does not name anybody";
                waits.extend(unknown(one, why.to_owned()));
            }
            WaitsFor::Nobody => {}
        }
    }
    if !locks.is_empty() {
        waits.extend(metadata::read(connection, &locks)?);
    }
    if !flushes.is_empty() {
        waits.extend(flush::read(connection, source, &flushes)?);
    }
    if !replicating.is_empty() {
        waits.extend(workers::read(connection, source, &replicating)?);
    }
    Ok(waits)
}

/// Why it is not known who holds a session up, where its state says who that may be.
pub(super) fn waits_for(who: &str) -> String {
    format!("it waits for {who}")
}

fn unknown(one: &Waiting, why: String) -> Option<Wait> {
    let mut wait = one.wait(LockKind::of(one.waits_for)?);
    wait.leave_unknown(why);
    Some(wait)
}
