//! Waits of replication for its own workers.
//!
//! Workers commit in the order of their channel. The coordinator of a channel waits for workers of that channel.

use std::collections::BTreeSet;

use waggle_model::WaitsFor;

use super::BLOCKS_MAX;
use super::appliers::{self, Applier};
use super::gate::{Source, Waiting};
use super::wait::{Key, LockKind, Unknown, Wait};
use crate::connection::{Connection, ConnectionError, MARK, text};

const NOT_SAID: &str = "the server does not say which worker it waits for";

/// No server says for which worker another one waits. Where only one of its channel can be it, it is
/// that one.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
    waiting: &[&Waiting],
) -> Result<Vec<Wait>, ConnectionError> {
    // The server shows one thread after the other, so one look can show a worker before, and another one after, they
    // went on. Who is named is the only one at two looks.
    let looks = [appliers::read(connection, source)?, appliers::read(connection, source)?];
    let mut waits = Vec::new();
    let mut busy = None;
    for one in waiting {
        let mut wait = one.wait(LockKind::Replication);
        match at_both(one, &looks) {
            Some(candidates) => wait.eliminate(candidates, NOT_SAID),
            None => {
                let all = match busy.take() {
                    Some(all) => all,
                    None => self::busy(connection, source)?,
                };
                wait.unknown = Some(of_any_channel(one, &all));
                busy = Some(all);
            }
        }
        waits.push(wait);
    }
    Ok(waits)
}

/// All for whom a waiter can wait at one of two looks; `None` if that is not known of one of them.
fn at_both(one: &Waiting, [first, second]: &[Vec<Applier>; 2]) -> Option<Vec<Key>> {
    let (first, second) = (of_its_channel(one, first)?, of_its_channel(one, second)?);
    let all: BTreeSet<Key> = first.into_iter().chain(second).collect();
    Some(all.into_iter().collect())
}

/// All for whom a waiter can wait; `None` if its channel is not known, or it waits no more.
fn of_its_channel(one: &Waiting, appliers: &[Applier]) -> Option<Vec<Key>> {
    let waiter = appliers.iter().find(|applier| applier.connection == one.connection)?;
    let still_waits = waiter.waits_for() == Some(one.waits_for);
    let can_be_it = |other: &&Applier| {
        let has_no_work = other.waits_for() == Some(WaitsFor::Nobody);
        match one.waits_for {
            // The first in the order waits for nobody's commit. One without work may be in the middle
            // of a transaction: the rest has not come yet.
            WaitsFor::EarlierCommit => {
                other.waits_for() != Some(WaitsFor::EarlierCommit)
                    && !(has_no_work && other.applies == Some(false))
            }
            // The coordinator has given away all that came. A worker without work has done its part.
            _ => !has_no_work || other.applies == Some(true),
        }
    };
    let others = appliers.iter().filter(|other| {
        other.is_worker && other.connection != one.connection && other.channel == waiter.channel
    });
    still_waits.then(|| others.filter(can_be_it).map(|one| Key::Session(one.connection)).collect())
}

fn of_any_channel(one: &Waiting, busy: &[u64]) -> Unknown {
    let others = busy.iter().filter(|id| **id != one.connection);
    let why = format!(
        "{NOT_SAID}, and its channel is not known; it can also be a worker that waits for the rest of \
         its transaction"
    );
    Unknown { why, candidates: others.map(|id| Key::Session(*id)).collect() }
}

/// Workers that wait neither for work nor for other workers.
fn busy(connection: &mut Connection, source: &Source) -> Result<Vec<u64>, ConnectionError> {
    let condition = match source {
        Source::Threads => {
            "NAME IN ('thread/sql/slave_worker', 'thread/sql/replica_worker', \
             'thread/sql/rpl_parallel_thread')"
        }
        _ => {
            "COMMAND = 'Slave_worker' OR (USER = 'system user' AND COMMAND IN ('Query', 'Connect'))"
        }
    };
    let Ok(columns) = source.columns() else { return Ok(Vec::new()) };
    let rows = connection.rows(&format!(
        "SELECT {} AS {MARK}, {} FROM {} WHERE {condition} LIMIT {BLOCKS_MAX}",
        columns.id, columns.state, columns.table
    ))?;
    let is_busy = |state: &str| {
        use WaitsFor::{EarlierCommit, Nobody, Workers};
        !matches!(WaitsFor::of(state), Some(Nobody | EarlierCommit | Workers))
    };
    let busy = rows.iter().filter(|row| is_busy(&text(row, 1)));
    Ok(busy.filter_map(|row| text(row, 0).parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = "Waiting for preceding transaction to commit";
    const WORK: &str = "Waiting for an event from Coordinator";
    const FULL: &str = "Waiting for Replica Worker queue";
    const BUSY: &str = "Applying batch of row changes (update)";

    fn worker(connection: u64, channel: &str, state: &str, applies: Option<bool>) -> Applier {
        let (state, channel) = (state.to_owned(), channel.to_owned());
        Applier { connection, state, is_worker: true, channel, applies }
    }

    fn candidates(waiter: u64, state: &str, appliers: &[Applier]) -> Option<Vec<u64>> {
        let waits_for = WaitsFor::of(state).unwrap();
        let one = Waiting { connection: waiter, state: state.to_owned(), waits_for, seconds: None };
        let keys = of_its_channel(&one, appliers)?;
        Some(keys.iter().filter_map(Key::connection_id).collect())
    }

    #[test]
    fn who_commits_first_is_of_the_same_channel() {
        let appliers = [
            worker(1, "eu", TURN, Some(true)),
            worker(2, "us", BUSY, Some(true)),
            worker(3, "eu", WORK, Some(true)),
            worker(4, "eu", WORK, Some(false)),
            worker(5, "eu", TURN, Some(true)),
        ];
        // The only busy one is of another channel; 3 has to get the rest of its transaction.
        assert_eq!(candidates(1, TURN, &appliers), Some(vec![3]));
    }

    #[test]
    fn a_worker_without_work_is_a_candidate_where_its_transaction_is_not_shown() {
        let appliers =
            [worker(1, "", TURN, None), worker(2, "", BUSY, None), worker(3, "", WORK, None)];
        assert_eq!(candidates(1, TURN, &appliers), Some(vec![2, 3]));
    }

    #[test]
    fn a_coordinator_waits_for_workers_of_its_channel_also_for_one_that_waits() {
        let coordinator = Applier { is_worker: false, ..worker(9, "eu", FULL, None) };
        let appliers = [
            coordinator,
            worker(1, "eu", TURN, Some(true)),
            worker(2, "eu", BUSY, Some(true)),
            worker(3, "eu", WORK, Some(false)),
            worker(4, "us", BUSY, Some(true)),
        ];
        assert_eq!(candidates(9, FULL, &appliers), Some(vec![1, 2]));
    }

    #[test]
    fn who_goes_on_between_two_looks_is_not_named_as_the_only_one() {
        let look = |states: [&str; 3]| {
            let each = (1..).zip(states).map(|(id, state)| worker(id, "", state, Some(true)));
            each.collect::<Vec<_>>()
        };
        let one = Waiting {
            connection: 1,
            state: TURN.to_owned(),
            waits_for: WaitsFor::EarlierCommit,
            seconds: None,
        };
        let same = [look([TURN, BUSY, TURN]), look([TURN, BUSY, TURN])];
        assert_eq!(at_both(&one, &same), Some(vec![Key::Session(2)]));
        let other = [look([TURN, BUSY, TURN]), look([TURN, TURN, BUSY])];
        assert_eq!(at_both(&one, &other), Some(vec![Key::Session(2), Key::Session(3)]));
        let over = [look([TURN, BUSY, TURN]), look([BUSY, BUSY, TURN])];
        assert_eq!(at_both(&one, &over), None);
    }

    #[test]
    fn nobody_is_named_where_the_channel_is_not_known_or_the_wait_is_over() {
        let appliers = [worker(1, "", BUSY, Some(true)), worker(2, "", BUSY, Some(true))];
        assert_eq!(candidates(1, TURN, &appliers), None);
        assert_eq!(candidates(7, TURN, &appliers), None);
        let one = Waiting {
            connection: 7,
            state: TURN.to_owned(),
            waits_for: WaitsFor::EarlierCommit,
            seconds: None,
        };
        let unknown = of_any_channel(&one, &[1]);
        assert_eq!(unknown.candidates, [Key::Session(1)]);
        assert!(unknown.why.contains("channel is not known"), "{}", unknown.why);
    }
}
