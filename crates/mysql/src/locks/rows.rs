//! Waits for row locks, from the tables that are safe to read on each version.
//!
//! - MySQL 5.7 and MariaDB: `INNODB_LOCK_WAITS` and `INNODB_LOCKS`, copies that the server makes at
//!   most ten times a second.
//! - MySQL 8.0.40, 8.4.3, 9.1 and later: `data_lock_waits` and `data_locks`, by the id of the lock
//!   that is waited for. Without the id the server walks through every row lock.
//! - Older MySQL 8 and 9: neither. If an allocation fails while these tables are read, a mutex of the
//!   transaction system stays locked and the server hangs (fixed in 8.0.37). With many row locks,
//!   reading them delays every other session (fixed in the releases of October 2024, bug 112035).
//!   `INNODB_TRX` says who waits; the blocker is named only if a single transaction can be it.
//!
//! N waiters for one record make N²/2 pairs of waiter and blocker, so only one waiter of each record
//! is asked for.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::{Flavour, Reading};

use super::gate::grant_process;
use super::sessions::Transaction;
use super::wait::{Key, Lock, LockKind, Source, Wait};
use super::{BLOCKS_MAX, WAITERS_MAX, list, quoted};
use crate::connection::{
    Connection, ConnectionError, MARK, Row, ServerIdentity, absent_or, optional_text, text,
};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    LockTables,
    DataLocks,
    TransactionsOnly,
}

const UNSAFE: &str =
    "reading data_locks can hang or stall this version (mended in MySQL 8.0.40, 8.4.3 and 9.1)";

/// The id of every transaction of MariaDB that has written nothing.
const WITHOUT_ID: &str = "0";
/// Those of them that have locks, and everybody who waits.
const READERS: &str = "trx_id = 0 AND trx_lock_structs > 0 OR trx_state = 'LOCK WAIT'";
const NOT_TOLD_APART: &str =
    "the blocker has written nothing, and MariaDB gives such transactions no id";
const CUT: &str = "there are more pairs of who blocks whom than are read";
const LET_GO: &str = "the lock was let go of while it was being read";

impl Way {
    pub(super) fn of(identity: &ServerIdentity) -> Way {
        if identity.flavour == Flavour::Mariadb {
            return Way::LockTables;
        }
        let number = |part: &str| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse::<u32>().unwrap_or(0)
        };
        let mut parts = identity.version.splitn(3, '.').map(number);
        let mut next = || parts.next().unwrap_or(0);
        match (next(), next(), next()) {
            (..8, ..) => Way::LockTables,
            (8, 0, ..40) | (8, 1..4, _) | (8, 4, ..3) | (9, 0, _) => Way::TransactionsOnly,
            _ => Way::DataLocks,
        }
    }
}

/// A row of `INNODB_TRX`.
#[derive(Clone, Debug)]
struct Trx {
    key: Key,
    details: Transaction,
    lock_structs: u64,
    requested: Option<String>,
    waited_s: Option<f64>,
}

impl Trx {
    fn read(row: &Row) -> Trx {
        let number = |at| text(row, at).parse().unwrap_or(0);
        let seconds = |at| optional_text(row, at).and_then(|text| text.parse().ok());
        let id = text(row, 0);
        let key = match number(1) {
            0 => Key::Detached(id.clone()),
            connection => Key::Session(connection),
        };
        let details = Transaction {
            id,
            age_s: seconds(4),
            rows_locked: number(5),
            rows_modified: number(6),
            rolling_back: text(row, 8) == "1",
        };
        let requested = optional_text(row, 2);
        Trx { key, details, lock_structs: number(7), requested, waited_s: seconds(3) }
    }

    fn record(&self) -> Option<String> {
        record(self.requested.as_deref()?)
    }

    /// Whether it holds a lock for which another can wait: the lock that it waits for is counted.
    fn holds(&self, of_records: bool) -> bool {
        let is_waiting = self.requested.is_some();
        match of_records {
            true => self.details.rows_locked > u64::from(self.record().is_some()),
            false => self.lock_structs > u64::from(is_waiting),
        }
    }
}

/// Transactions that match a condition, longest wait first.
fn transactions(
    connection: &mut Connection,
    condition: &str,
    limit: usize,
) -> Result<Vec<Trx>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT trx_id AS {MARK}, trx_mysql_thread_id, trx_requested_lock_id, \
           TIMESTAMPDIFF(SECOND, trx_wait_started, NOW()), \
           TIMESTAMPDIFF(SECOND, trx_started, NOW()), \
           trx_rows_locked, trx_rows_modified, trx_lock_structs, \
           trx_state = 'ROLLING BACK' OR COALESCE(trx_operation_state, '') LIKE 'rollback%' \
         FROM information_schema.INNODB_TRX WHERE {condition} \
         ORDER BY trx_wait_started IS NULL, trx_wait_started, trx_started LIMIT {limit}"
    ))?;
    Ok(rows.iter().map(Trx::read).collect())
}

/// The transactions of these participants, for those who may read them.
pub(super) fn details(
    connection: &mut Connection,
    keys: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Transaction>, ConnectionError> {
    let ids = list(keys.iter().filter_map(Key::connection_id).chain([0]));
    let limit = keys.len() + WAITERS_MAX;
    let found = transactions(connection, &format!("trx_mysql_thread_id IN ({ids})"), limit)?;
    Ok(found.into_iter().map(|trx| (trx.key, trx.details)).collect())
}

/// Row lock waits: who waits for whom.
pub(super) fn read(
    connection: &mut Connection,
    may_see_processes: bool,
) -> Result<Reading<Vec<Wait>>, ConnectionError> {
    if !may_see_processes {
        return Ok(Reading::Absent(format!(
            "account may not read transactions and row locks; run {}",
            grant_process(connection)
        )));
    }
    let way = Way::of(connection.server_identity());
    let waiters = transactions(connection, "trx_state = 'LOCK WAIT'", WAITERS_MAX)?;
    if waiters.is_empty() {
        return Ok(Reading::Value(Vec::new()));
    }
    let mut waits: Vec<Wait> = waiters.iter().map(wait).collect();
    match way {
        Way::TransactionsOnly => {
            let seen = transactions(connection, "trx_lock_structs > 0", BLOCKS_MAX)?;
            for (trx, wait) in waiters.iter().zip(&mut waits) {
                eliminate(trx, wait, &seen, is_a_holder, UNSAFE);
            }
        }
        _ => ask(connection, way, &waiters, &mut waits)?,
    }
    Ok(Reading::Value(waits))
}

fn wait(trx: &Trx) -> Wait {
    Wait {
        waiter: trx.key.clone(),
        lock: Lock { record: trx.record(), ..Lock::of(LockKind::Row) },
        waited_s: trx.waited_s,
        blockers: Vec::new(),
        by_elimination: false,
        not_all: None,
        overtaken: false,
        unknown: None,
        source: Source::Sql,
    }
}

/// Tablespace, page and heap number, out of an id of a lock: `trx:space:page:heap` in 5.7 and MariaDB,
/// `trx:space:page:heap:lock` in 8.0, `trx:guid:space:page:heap:lock` in 9.x. `None` for the lock of a
/// table, whose id is shorter.
fn record(lock_id: &str) -> Option<String> {
    let parts: Vec<&str> = lock_id.split(':').collect();
    let place = match parts.len() {
        4 => &parts[1..4],
        length @ 5.. => &parts[length - 4..length - 1],
        _ => return None,
    };
    Some(place.join(":"))
}

/// Asks for the blockers of one waiter of each record; the others of its queue follow from it.
fn ask(
    connection: &mut Connection,
    way: Way,
    waiters: &[Trx],
    waits: &mut [Wait],
) -> Result<(), ConnectionError> {
    let mut seen = BTreeSet::new();
    let firsts = waiters.iter().filter(|trx| trx.record().is_none_or(|record| seen.insert(record)));
    let ids: Vec<String> = firsts.filter_map(|trx| trx.requested.as_deref()).map(quoted).collect();
    let locks = locks(connection, way, &ids)?;
    let blocks = blocks(connection, way, &ids)?;
    let (locks, blocks) = match (locks, blocks) {
        (Reading::Value(locks), Reading::Value(blocks)) => (locks, blocks),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
            waits.iter_mut().for_each(|wait| wait.leave_unknown(&why));
            return Ok(());
        }
    };
    let by_transaction = keys_of(connection, &blocks, waiters)?;
    let readers = match blocks.iter().any(|(_, blocking)| blocking == WITHOUT_ID) {
        true => transactions(connection, READERS, BLOCKS_MAX)?,
        false => Vec::new(),
    };
    for (trx, wait) in waiters.iter().zip(waits) {
        let id = trx.requested.as_deref().unwrap_or_default();
        if let Some(lock) = locks.get(id) {
            let record = wait.lock.record.take();
            wait.lock = Lock { record, ..lock.clone() };
        }
        let of_this = blocks.iter().filter(|(requested, _)| requested == id);
        let of_this: Vec<&String> = of_this.map(|(_, blocking)| blocking).collect();
        wait.blockers = of_this.iter().filter_map(|id| by_transaction.get(*id).cloned()).collect();
        wait.not_all = (blocks.len() >= BLOCKS_MAX).then_some(CUT);
        if wait.blockers.is_empty() && of_this.iter().any(|id| *id == WITHOUT_ID) {
            eliminate(trx, wait, &readers, is_in_the_way_without_id, NOT_TOLD_APART);
        } else if wait.blockers.is_empty() {
            wait.leave_unknown(LET_GO);
        }
    }
    Ok(())
}

/// A lookup of each id. `IN` would do the same, but MySQL 9.7 then gives the row of one id only.
fn one_by_one(ids: &[String], lookup: impl Fn(&String) -> String) -> String {
    ids.iter().map(lookup).collect::<Vec<_>>().join(" UNION ALL ")
}

/// The locks of these ids.
fn locks(
    connection: &mut Connection,
    way: Way,
    ids: &[String],
) -> Result<Reading<BTreeMap<String, Lock>>, ConnectionError> {
    let statement = match way {
        Way::LockTables => format!(
            "SELECT lock_id AS {MARK}, REPLACE(lock_table, '`', ''), lock_index, lock_mode, \
               lock_data \
             FROM information_schema.INNODB_LOCKS WHERE lock_id IN ({}) LIMIT {WAITERS_MAX}",
            list(ids)
        ),
        _ => one_by_one(ids, |id| {
            format!(
                "SELECT ENGINE_LOCK_ID AS {MARK}, CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME), \
                   INDEX_NAME, LOCK_MODE, LOCK_DATA \
                 FROM performance_schema.data_locks WHERE ENGINE_LOCK_ID = {id}"
            )
        }),
    };
    let rows = connection.rows(&statement);
    let lock = |row: &Row| Lock {
        kind: LockKind::Row,
        object: optional_text(row, 1),
        index: optional_text(row, 2),
        mode: optional_text(row, 3),
        record: None,
        key: optional_text(row, 4),
        state: None,
    };
    let rows = absent_or(connection, "the row locks (data_locks)", rows)?;
    Ok(rows.map(|rows| rows.iter().map(|row| (text(row, 0), lock(row))).collect()))
}

/// Pairs of the id of a lock that is waited for and the transaction in its way.
fn blocks(
    connection: &mut Connection,
    way: Way,
    ids: &[String],
) -> Result<Reading<Vec<(String, String)>>, ConnectionError> {
    let statement = match way {
        Way::LockTables => format!(
            "SELECT requested_lock_id AS {MARK}, blocking_trx_id \
             FROM information_schema.INNODB_LOCK_WAITS WHERE requested_lock_id IN ({}) \
             LIMIT {BLOCKS_MAX}",
            list(ids)
        ),
        _ => {
            let each = one_by_one(ids, |id| {
                format!(
                    "SELECT REQUESTING_ENGINE_LOCK_ID AS {MARK}, BLOCKING_ENGINE_TRANSACTION_ID \
                     FROM performance_schema.data_lock_waits \
                     WHERE REQUESTING_ENGINE_LOCK_ID = {id}"
                )
            });
            format!("{each} LIMIT {BLOCKS_MAX}")
        }
    };
    let rows = connection.rows(&statement);
    let rows = absent_or(connection, "who blocks whom (data_lock_waits)", rows)?;
    Ok(rows.map(|rows| rows.iter().map(|row| (text(row, 0), text(row, 1))).collect()))
}

/// Who the blocking transactions are.
fn keys_of(
    connection: &mut Connection,
    blocks: &[(String, String)],
    waiters: &[Trx],
) -> Result<BTreeMap<String, Key>, ConnectionError> {
    let known = |trx: &Trx| (trx.details.id.clone(), trx.key.clone());
    let has_id = |id: &str| id != WITHOUT_ID;
    let with_id = waiters.iter().filter(|trx| has_id(&trx.details.id));
    let mut keys: BTreeMap<String, Key> = with_id.map(known).collect();
    let missing: BTreeSet<&String> = blocks
        .iter()
        .map(|(_, id)| id)
        .filter(|id| has_id(id) && !keys.contains_key(*id))
        .collect();
    if !missing.is_empty() {
        let ids = list(missing.iter().map(|id| quoted(id)));
        let found = transactions(connection, &format!("trx_id IN ({ids})"), missing.len())?;
        keys.extend(found.iter().map(known));
    }
    Ok(keys)
}

/// Names the blocker where only one of these transactions can be it. They are one copy of all
/// transactions, the waiters among them: who does not wait in it any more waited for somebody who may
/// not be in it.
fn eliminate(
    waiter: &Trx,
    wait: &mut Wait,
    seen: &[Trx],
    is_in_the_way: fn(&Trx, &Trx) -> bool,
    why: &str,
) {
    let is_it = |other: &Trx| other.key == waiter.key && other.requested == waiter.requested;
    if !seen.iter().any(is_it) {
        wait.leave_unknown(LET_GO);
    } else if seen.len() >= BLOCKS_MAX {
        wait.leave_unknown(why);
    } else {
        let others = seen.iter().filter(|other| other.key != waiter.key);
        let others = others.filter(|other| is_in_the_way(waiter, other));
        wait.eliminate(others.map(|other| other.key.clone()).collect(), why);
    }
}

/// A lock that is waited for is held by a transaction that holds locks.
fn is_a_holder(waiter: &Trx, other: &Trx) -> bool {
    other.holds(waiter.record().is_some())
}

/// The server says that one without an id is in the way. It can also stand before the waiter in the
/// queue.
fn is_in_the_way_without_id(waiter: &Trx, other: &Trx) -> bool {
    let same_queue = other.requested.is_some() && other.record() == waiter.record();
    other.details.id == WITHOUT_ID && (same_queue || is_a_holder(waiter, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(version: &str) -> Way {
        Way::of(&ServerIdentity::of_version(version))
    }

    #[test]
    fn data_locks_are_not_read_where_that_can_hang_the_server() {
        for version in ["8.0.12", "8.0.39-30", "8.1.0", "8.3.0", "8.4.2", "9.0.1", "8.0"] {
            assert_eq!(way(version), Way::TransactionsOnly, "{version}");
        }
        for version in ["8.0.40-31", "8.4.3", "9.1.0", "9.7.4-2"] {
            assert_eq!(way(version), Way::DataLocks, "{version}");
        }
        for version in ["5.7.22-log", "10.11.19-MariaDB", "11.4.5-MariaDB"] {
            assert_eq!(way(version), Way::LockTables, "{version}");
        }
    }

    fn trx(connection: u64, id: &str, locked: u64, requested: Option<&str>) -> Trx {
        let details = Transaction {
            id: id.to_owned(),
            age_s: None,
            rows_locked: locked,
            rows_modified: 0,
            rolling_back: false,
        };
        let requested = requested.map(str::to_owned);
        Trx { key: Key::Session(connection), details, lock_structs: 2, requested, waited_s: None }
    }

    /// Who is named, and the candidates.
    fn found(seen: &[Trx], is_in_the_way: fn(&Trx, &Trx) -> bool) -> (Vec<Key>, Vec<Key>) {
        let waiter = trx(2, "7", 1, Some("7:24:3:2"));
        let mut wait = wait(&waiter);
        eliminate(&waiter, &mut wait, seen, is_in_the_way, "");
        (wait.blockers, wait.unknown.map_or(Vec::new(), |unknown| unknown.candidates))
    }

    #[test]
    fn the_only_holder_is_named_and_only_while_the_waiter_waits() {
        let waiter = || trx(2, "7", 1, Some("7:24:3:2"));
        let holder = || trx(1, "5", 3, None);
        assert_eq!(found(&[waiter(), holder()], is_a_holder).0, [Key::Session(1)]);
        let another = trx(3, "6", 1, None);
        let both = vec![Key::Session(1), Key::Session(3)];
        assert_eq!(found(&[waiter(), holder(), another], is_a_holder), (Vec::new(), both));
        // It has got the lock, and waits for another one or for none.
        assert_eq!(found(&[holder()], is_a_holder), (Vec::new(), Vec::new()));
        let moved_on = trx(2, "7", 2, Some("7:24:3:9"));
        assert_eq!(found(&[moved_on, holder()], is_a_holder), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_reader_before_the_waiter_in_the_queue_is_a_candidate_too() {
        let waiter = trx(2, "7", 1, Some("7:24:3:2"));
        let before_it = trx(3, WITHOUT_ID, 1, Some("0:24:3:2"));
        let elsewhere = trx(4, WITHOUT_ID, 5, None);
        let seen = [waiter, before_it, elsewhere, trx(5, "9", 3, None)];
        let candidates = vec![Key::Session(3), Key::Session(4)];
        assert_eq!(found(&seen, is_in_the_way_without_id), (Vec::new(), candidates));
    }

    #[test]
    fn a_record_is_found_in_the_ids_of_every_version() {
        assert_eq!(record("1820:24:3:2").as_deref(), Some("24:3:2"));
        assert_eq!(record("140:66:4:2:99").as_deref(), Some("66:4:2"));
        assert_eq!(record("941:6:2:4:2:942").as_deref(), Some("2:4:2"));
        assert_eq!(record("1820:24"), None);
        assert_eq!(record(""), None);
    }
}
