//! Waits for the end of a flush.
//!
//! A flush marks tables as old. A session that opens such a table waits until nobody has the old one
//! open any more (`TABLE_SHARE::wait_for_old_version` in `sql/table.cc`), also after the flush was
//! killed. By then it has a metadata lock on the table. Statements that run, `LOCK TABLES`, an open
//! `HANDLER` and the applier of replication have tables open. `table_handles` lists who has which.
//! A metadata lock proves nothing: a transaction keeps it after its statement has closed the table.

use std::collections::BTreeSet;

use waggle_model::Reading;

use super::gate::{Columns, Source, Waiting};
use super::wait::{Key, LockKind, Unknown, Wait};
use super::{BLOCKS_MAX, WAITERS_MAX, list, metadata};
use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, text};

/// A session, and a table that it has open, or has a metadata lock on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    connection: u64,
    table: String,
}

/// A session that runs a statement, and since when.
#[derive(Clone, Debug)]
struct Running {
    connection: u64,
    seconds: f64,
}

/// Who uses the old tables.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
    waiting: &[&Waiting],
) -> Result<Vec<Wait>, ConnectionError> {
    let open = open_tables(connection)?;
    let locked = locked_tables(connection, waiting)?;
    let mut waits: Vec<Wait> = waiting.iter().map(|one| one.wait(LockKind::Flush)).collect();
    let why = open.why().or(locked.why());
    let open = open.value().map_or(&[][..], Vec::as_slice);
    let locked = locked.value().map_or(&[][..], Vec::as_slice);
    waits.iter_mut().for_each(|wait| by_table(wait, open, locked));
    if waits.iter().any(|wait| wait.blockers.is_empty()) {
        let running = running(connection, source, waiting)?;
        let left = waits.iter_mut().filter(|wait| wait.blockers.is_empty());
        left.for_each(|wait| leave_open(wait, open, &running, why));
    }
    Ok(waits)
}

/// The table that the waiter has locked and has not opened, and everybody who has it open. With two
/// such tables it can wait for either. The flush itself has locked none.
fn by_table(wait: &mut Wait, open: &[Use], locked: &[Use]) {
    let opened = tables_of(&wait.waiter, open);
    let awaited: Vec<&str> = tables_of(&wait.waiter, locked).difference(&opened).copied().collect();
    if let [table] = awaited[..] {
        let users = open.iter().filter(|one| one.table == table);
        let users: BTreeSet<Key> = users.map(|one| Key::Session(one.connection)).collect();
        wait.blockers = users.into_iter().collect();
        wait.lock.object = Some(table.to_owned());
    }
}

fn tables_of<'a>(key: &Key, uses: &'a [Use]) -> BTreeSet<&'a str> {
    let own = uses.iter().filter(|one| *key == Key::Session(one.connection));
    own.map(|one| one.table.as_str()).collect()
}

/// Nobody is proved to be in the way. It can be a session that has a table open, or a statement that
/// runs for longer than the waiter waits.
fn leave_open(wait: &mut Wait, open: &[Use], running: &[Running], why: Option<&str>) {
    let waited_s = wait.waited_s.unwrap_or(0.0);
    let longer = running.iter().filter(|one| one.seconds >= waited_s).map(|one| one.connection);
    let table = wait.lock.object.as_deref();
    let users = open.iter().filter(|one| table.is_none_or(|table| one.table == table));
    let candidates: BTreeSet<Key> =
        users.map(|one| one.connection).chain(longer).map(Key::Session).collect();
    let candidates = candidates.into_iter().filter(|key| *key != wait.waiter).collect();
    let why = why.map_or(String::new(), |why| format!("; {why}"));
    let why = format!(
        "it is who uses a table since before the flush: a statement that runs for longer than this \
         wait, a session with LOCK TABLES or an open HANDLER, or the applier of replication{why}"
    );
    wait.unknown = Some(Unknown { why, candidates });
}

/// The tables that sessions have open, but for this one.
fn open_tables(connection: &mut Connection) -> Result<Reading<Vec<Use>>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT DISTINCT t.PROCESSLIST_ID AS {MARK}, CONCAT(h.OBJECT_SCHEMA, '.', h.OBJECT_NAME) \
         FROM performance_schema.table_handles h \
         JOIN performance_schema.threads t ON t.THREAD_ID = h.OWNER_THREAD_ID \
         WHERE h.OBJECT_TYPE = 'TABLE' AND h.OWNER_THREAD_ID <> 0 \
           AND t.PROCESSLIST_ID <> CONNECTION_ID() LIMIT {BLOCKS_MAX}"
    ));
    let rows = absent_or(connection, "the open tables (table_handles)", rows)?;
    Ok(rows.map(|rows| rows.iter().filter_map(a_use).collect()))
}

/// The tables on which the waiters have metadata locks.
fn locked_tables(
    connection: &mut Connection,
    waiting: &[&Waiting],
) -> Result<Reading<Vec<Use>>, ConnectionError> {
    if let Some(why) = metadata::instrument(connection)? {
        return Ok(Reading::Absent(why));
    }
    let ids = list(waiting.iter().map(|one| one.connection));
    let rows = connection.rows(&format!(
        "SELECT t.PROCESSLIST_ID AS {MARK}, CONCAT(m.OBJECT_SCHEMA, '.', m.OBJECT_NAME) \
         FROM performance_schema.metadata_locks m \
         JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID \
         WHERE m.OBJECT_TYPE = 'TABLE' AND m.LOCK_STATUS = 'GRANTED' \
           AND t.PROCESSLIST_ID IN ({ids}) LIMIT {BLOCKS_MAX}"
    ));
    Ok(match absent_or(connection, "metadata locks", rows)? {
        // Of a waiter whose list is cut it is not known which table it waits for.
        Reading::Value(rows) if rows.len() == BLOCKS_MAX => Reading::Absent(format!(
            "the waiters have {BLOCKS_MAX} locks or more; no more are read"
        )),
        rows => rows.map(|rows| rows.iter().filter_map(a_use).collect()),
    })
}

fn a_use(row: &Row) -> Option<Use> {
    Some(Use { connection: text(row, 0).parse().ok()?, table: text(row, 1) })
}

/// Statements that run, the longest first, but those of waiters.
fn running(
    connection: &mut Connection,
    source: &Source,
    waiting: &[&Waiting],
) -> Result<Vec<Running>, ConnectionError> {
    let Ok(Columns { id, seconds, command, table, .. }) = source.columns() else {
        return Ok(Vec::new());
    };
    let rows = connection.rows(&format!(
        "SELECT {id} AS {MARK}, {seconds} FROM {table} \
         WHERE {command} IN ('Query', 'Execute') AND {id} <> CONNECTION_ID() \
         ORDER BY {seconds} DESC LIMIT {}",
        2 * WAITERS_MAX
    ))?;
    let is_waiter = |id: &u64| waiting.iter().any(|one| one.connection == *id);
    let running = rows.iter().filter_map(|row| {
        let connection = text(row, 0).parse().ok().filter(|id| !is_waiter(id))?;
        Some(Running { connection, seconds: text(row, 1).parse().ok()? })
    });
    Ok(running.collect())
}

#[cfg(test)]
mod tests {
    use waggle_model::WaitsFor;

    use super::*;

    fn wait(connection: u64) -> Wait {
        let state = "Waiting for table flush".to_owned();
        let waits_for = WaitsFor::OldTables;
        Waiting { connection, state, waits_for, seconds: Some(5.0) }.wait(LockKind::Flush)
    }

    fn uses(of: &[(u64, &str)]) -> Vec<Use> {
        of.iter()
            .map(|(connection, table)| Use { connection: *connection, table: (*table).into() })
            .collect()
    }

    fn running(of: &[(u64, f64)]) -> Vec<Running> {
        of.iter()
            .map(|(connection, seconds)| Running { connection: *connection, seconds: *seconds })
            .collect()
    }

    fn sessions(ids: &[u64]) -> Vec<Key> {
        ids.iter().map(|id| Key::Session(*id)).collect()
    }

    #[test]
    fn everybody_who_has_the_table_open_is_waited_for() {
        // It has opened one table, and waits for the other.
        let open = uses(&[(1, "shop.t"), (5, "shop.t"), (2, "shop.first"), (4, "shop.first")]);
        let mut waiter = wait(2);
        by_table(&mut waiter, &open, &uses(&[(2, "shop.first"), (2, "shop.t"), (3, "shop.t")]));
        assert_eq!(waiter.blockers, sessions(&[1, 5]));
        assert_eq!(waiter.lock.object.as_deref(), Some("shop.t"));
        assert!(!waiter.by_elimination);
    }

    #[test]
    fn nobody_is_blamed_where_the_table_can_be_one_of_two() {
        // Its transaction has read `before`, and keeps the lock on it.
        let mut waiter = wait(2);
        let locked = uses(&[(2, "shop.before"), (2, "shop.t")]);
        let open = uses(&[(1, "shop.before")]);
        by_table(&mut waiter, &open, &locked);
        leave_open(&mut waiter, &open, &running(&[(7, 9.0)]), None);
        assert_eq!((&waiter.blockers[..], &waiter.lock.object), (&[][..], &None));
        assert_eq!(waiter.unknown.unwrap().candidates, sessions(&[1, 7]));
    }

    #[test]
    fn a_flush_may_wait_for_everybody_who_uses_a_table() {
        let open = uses(&[(1, "shop.t"), (4, "shop.other")]);
        let mut flush = wait(9);
        by_table(&mut flush, &open, &[]);
        leave_open(&mut flush, &open, &[], None);
        assert_eq!(flush.unknown.unwrap().candidates, sessions(&[1, 4]));
        assert_eq!((&flush.blockers[..], &flush.lock.object), (&[][..], &None));
    }

    #[test]
    fn one_candidate_alone_is_not_blamed() {
        let mut flush = wait(9);
        by_table(&mut flush, &uses(&[(1, "shop.t")]), &[]);
        leave_open(&mut flush, &uses(&[(1, "shop.t")]), &[], None);
        assert_eq!((&flush.blockers[..], flush.by_elimination), (&[][..], false));
        assert_eq!(flush.unknown.unwrap().candidates, sessions(&[1]));
    }

    #[test]
    fn without_a_list_of_locks_the_longer_statements_are_the_candidates() {
        let mut waiter = wait(2);
        leave_open(
            &mut waiter,
            &[],
            &running(&[(1, 60.0), (3, 1.0)]),
            Some("the instrument is off"),
        );
        let unknown = waiter.unknown.unwrap();
        assert_eq!(unknown.candidates, sessions(&[1]));
        assert!(unknown.why.contains("the instrument is off"), "{}", unknown.why);
    }
}
