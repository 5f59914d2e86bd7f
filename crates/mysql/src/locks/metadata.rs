//! Waits for metadata locks.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::{Flavour, Reading, WaitsFor};

use super::compatible::{excludes, stands_behind};
use super::gate::Waiting;
use super::wait::{Key, LockKind, Unknown, Wait};
use super::{BLOCKS_MAX, WAITERS_MAX};
use crate::connection::{
    Connection, ConnectionError, MARK, Row, ServerIdentity, absent_or, optional_text, text,
};

const INSTRUMENT: &str = "wait/lock/metadata/sql/mdl";

/// The first version that has it on by default.
const ON_SINCE: [u32; 3] = [8, 0, 0];

/// The state of a session that waits for a metadata lock on a table.
const TABLE_METADATA: &str = "Waiting for table metadata lock";

/// What can be asked about metadata locks.
enum Known {
    /// All locks requested since the instrument is on, both granted and waiting; and why some may be missing.
    Requests(Vec<Request>, Option<&'static str>),
    /// Sessions with locks on tables (MariaDB's plugin `metadata_lock_info`), but not who waits for
    /// which.
    Holders(BTreeSet<u64>),
    /// Nothing, and what to do about it.
    Nothing(String),
}

/// A row of `performance_schema.metadata_locks`.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) object: String,
    pub(super) mode: String,
    pub(super) is_pending: bool,
    pub(super) connection: u64,
}

/// Who of those whose state says that they wait is blocked by whom.
pub(super) fn read(
    connection: &mut Connection,
    waiting: &[&Waiting],
) -> Result<Vec<Wait>, ConnectionError> {
    let known = match waiting.iter().any(|one| one.waits_for == WaitsFor::MetadataLock) {
        true => ask(connection)?,
        false => Known::Nothing(String::new()),
    };
    Ok(waiting.iter().map(|one| wait(one, &known)).collect())
}

fn wait(one: &Waiting, known: &Known) -> Wait {
    let mut wait = one.wait(LockKind::Metadata);
    match known {
        // `THR_LOCK`: the locks of MyISAM, MEMORY and others.
        _ if one.waits_for == WaitsFor::TableLock => {
            wait.lock.kind = LockKind::Table;
            wait.leave_unknown("the server does not say who locks a table of this engine");
        }
        Known::Nothing(why) => wait.leave_unknown(why),
        Known::Holders(_) if one.state != TABLE_METADATA => {
            wait.leave_unknown("metadata_lock_info is read for who has locks on tables only");
        }
        Known::Holders(holders) => {
            let others = holders.iter().filter(|holder| **holder != one.connection);
            let why = "metadata_lock_info says who has locks, not who waits for which".to_owned();
            let candidates = others.map(|holder| Key::Session(*holder)).collect();
            // They are read later than the waiters: even a single one need not be it.
            wait.unknown = Some(Unknown { why, candidates });
        }
        Known::Requests(requests, not_all) => {
            from_requests(&mut wait, one.connection, requests);
            wait.not_all = *not_all;
        }
    }
    wait
}

/// The holders of locks that exclude the requested one. If there are none, the waiters for such
/// locks: the queue goes by priority, and a reader waits behind a pending `ALTER`.
pub(super) fn from_requests(wait: &mut Wait, connection: u64, requests: &[Request]) {
    let pending = requests.iter().find(|one| one.is_pending && one.connection == connection);
    let Some(pending) = pending else {
        wait.leave_unknown(format!("it waits since before the instrument {INSTRUMENT} was on"));
        return;
    };
    wait.lock.object = Some(pending.object.clone());
    wait.lock.mode = Some(pending.mode.clone());
    let others = |is_pending: bool, is_in_the_way: Option<bool>| {
        let among = |one: &&Request| {
            let answer = match is_pending {
                true => stands_behind(&pending.mode, &one.mode),
                false => excludes(&pending.mode, &one.mode),
            };
            one.is_pending == is_pending
                && one.object == pending.object
                && one.connection != connection
                && answer == is_in_the_way
        };
        let keys = requests.iter().filter(among).map(|one| Key::Session(one.connection));
        keys.collect::<BTreeSet<Key>>()
    };
    let mut blockers = others(false, Some(true));
    if blockers.is_empty() {
        blockers = others(true, Some(true));
    }
    wait.blockers = blockers.into_iter().collect();
    let candidates = others(false, None);
    if wait.blockers.is_empty() && !candidates.is_empty() {
        let why = format!("whom a lock of the mode {} excludes is not known here", pending.mode);
        wait.unknown = Some(Unknown { why, candidates: candidates.into_iter().collect() });
    } else if wait.blockers.is_empty() {
        wait.leave_unknown(format!(
            "its holder is not among the locks that the server shows: it took the lock before the \
             instrument {INSTRUMENT} was on, or is a transaction of XA whose session is gone"
        ));
    }
}

fn ask(connection: &mut Connection) -> Result<Known, ConnectionError> {
    let why = match instrument(connection)? {
        None => match requests(connection)? {
            Reading::Value(requests) => {
                let not_all = not_all(connection.server_identity(), &requests);
                return Ok(Known::Requests(requests, not_all));
            }
            Reading::Absent(why) => why,
        },
        Some(why) => why,
    };
    if connection.server_identity().flavour == Flavour::Mariadb {
        let rows = connection.rows(&format!(
            "SELECT DISTINCT THREAD_ID AS {MARK} FROM information_schema.METADATA_LOCK_INFO \
             WHERE LOCK_TYPE = 'Table metadata lock' LIMIT {BLOCKS_MAX}"
        ));
        if let Reading::Value(rows) = absent_or(connection, "metadata_lock_info", rows)? {
            if rows.len() == BLOCKS_MAX {
                let why = format!("{BLOCKS_MAX} sessions or more have locks; no more are read");
                return Ok(Known::Nothing(why));
            }
            return Ok(Known::Holders(rows.iter().filter_map(|row| number(row, 0)).collect()));
        }
    }
    Ok(Known::Nothing(why))
}

/// Why the server may not show every lock; `None` where it does.
fn not_all(server: &ServerIdentity, requests: &[Request]) -> Option<&'static str> {
    let is_on_from_the_start =
        server.flavour == Flavour::Mysql && server.server_version().number >= ON_SINCE;
    let cut = |is_pending| {
        requests.iter().filter(|one| one.is_pending == is_pending).count() >= BLOCKS_MAX
    };
    match (cut(true) || cut(false), is_on_from_the_start) {
        (true, _) => Some("there are more locks than are read"),
        (false, false) => Some("locks of before the instrument was on are not shown"),
        (false, true) => None,
    }
}

/// Why the instrument of metadata locks does not work; `None` if it does.
pub(super) fn instrument(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
    let identity = connection.server_identity();
    if !identity.performance_schema {
        let plugin = match identity.flavour {
            Flavour::Mariadb => ", or the plugin metadata_lock_info for less",
            Flavour::Mysql => "",
        };
        return Ok(Some(format!(
            "Performance Schema is off; start the server with performance_schema=ON{plugin}; waggle pfs \
             status says what that costs"
        )));
    }
    let rows = connection.rows(&format!(
        "SELECT NAME AS {MARK}, ENABLED FROM performance_schema.setup_instruments \
         WHERE NAME = '{INSTRUMENT}' \
         UNION ALL SELECT NAME, ENABLED FROM performance_schema.setup_consumers \
         WHERE NAME = 'global_instrumentation'"
    ));
    Ok(match absent_or(connection, "metadata locks", rows)? {
        Reading::Absent(why) => Some(why),
        Reading::Value(rows) => {
            let off = rows.iter().find(|row| text(row, 1) != "YES");
            off.map(|row| {
                format!(
                    "{} is off; run waggle pfs apply locks, which shows locks that are taken from \
                     then on",
                    text(row, 0)
                )
            })
        }
    })
}

fn requests(connection: &mut Connection) -> Result<Reading<Vec<Request>>, ConnectionError> {
    let of = |condition: &str, order: &str, limit: usize| {
        format!(
            "SELECT t.PROCESSLIST_ID AS {MARK}, m.OBJECT_TYPE, m.OBJECT_SCHEMA, m.OBJECT_NAME, \
               m.LOCK_TYPE, m.LOCK_STATUS \
             FROM performance_schema.metadata_locks m \
             JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID \
             WHERE {condition} {order} LIMIT {limit}"
        )
    };
    // The strongest first: all other waiters stand behind it.
    let strongest_first = "ORDER BY m.LOCK_TYPE = 'EXCLUSIVE' DESC";
    let pending = connection.rows(&of("m.LOCK_STATUS = 'PENDING'", strongest_first, BLOCKS_MAX));
    let pending = match absent_or(connection, "metadata locks", pending)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    let mut requests: Vec<Request> = pending.iter().filter_map(request).collect();
    let objects: BTreeMap<String, String> =
        pending.iter().map(|row| (object(row), condition(row))).collect();
    let objects: Vec<String> = objects.into_values().take(WAITERS_MAX).collect();
    if !objects.is_empty() {
        let held = format!("m.LOCK_STATUS = 'GRANTED' AND ({})", objects.join(" OR "));
        let granted = connection.rows(&of(&held, "", BLOCKS_MAX))?;
        requests.extend(granted.iter().filter_map(request));
    }
    Ok(Reading::Value(requests))
}

/// Who holds a read lock on all tables (`FLUSH TABLES WITH READ LOCK`), by connection id. The
/// candidates, where it is not known, are sessions whose statements tell of one.
///
/// # Errors
/// The connection is broken.
pub fn read_lock_holders(
    connection: &mut Connection,
) -> Result<Result<Vec<u64>, Unknown>, ConnectionError> {
    let why = match instrument(connection)? {
        None => match global_locks(connection)? {
            Reading::Value(holders) if holders.is_empty() => {
                format!("its holder took it before the instrument {INSTRUMENT} was on")
            }
            Reading::Value(holders) => return Ok(Ok(holders)),
            Reading::Absent(why) => why,
        },
        Some(why) => why,
    };
    let candidates = flushed(connection)?.into_iter().map(Key::Session).collect();
    Ok(Err(Unknown { why, candidates }))
}

/// Who has a lock without an object in a mode that excludes changes.
fn global_locks(connection: &mut Connection) -> Result<Reading<Vec<u64>>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT t.PROCESSLIST_ID AS {MARK}, m.OBJECT_TYPE, m.LOCK_TYPE \
         FROM performance_schema.metadata_locks m \
         JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID \
         WHERE m.OBJECT_TYPE IN ('GLOBAL', 'BACKUP', 'BACKUP LOCK') AND m.LOCK_STATUS = 'GRANTED' \
         LIMIT {BLOCKS_MAX}"
    ));
    let is_in_the_way = |row: &&Row| {
        let mode = text(row, 2);
        let mode = mode.trim_start_matches("MDL_");
        text(row, 1) == "GLOBAL" && mode == "SHARED"
            || excludes("BACKUP_SYS_DML", mode) == Some(true)
    };
    let rows = absent_or(connection, "metadata locks", rows)?;
    Ok(rows.map(|rows| {
        let ids = rows.iter().filter(is_in_the_way).filter_map(|row| number(row, 0));
        ids.collect::<BTreeSet<u64>>().into_iter().collect()
    }))
}

/// Sessions whose history of statements has `FLUSH TABLES WITH READ LOCK`, and after it nothing that
/// lets go of the lock. Nobody, where no history is kept. It proves nothing: the history may lack the
/// end of a lock, and other sessions.
fn flushed(connection: &mut Connection) -> Result<Vec<u64>, ConnectionError> {
    if !connection.server_identity().performance_schema {
        return Ok(Vec::new());
    }
    let rows = connection.rows(&format!(
        "SELECT t.PROCESSLIST_ID AS {MARK}, s.SQL_TEXT \
         FROM performance_schema.events_statements_history s \
         JOIN performance_schema.threads t ON t.THREAD_ID = s.THREAD_ID \
         WHERE s.EVENT_NAME IN ('statement/sql/flush', 'statement/sql/unlock_tables', \
             'statement/com/Change user', 'statement/com/Reset Connection') \
           AND s.ERRORS = 0 \
         ORDER BY s.THREAD_ID, s.EVENT_ID LIMIT {BLOCKS_MAX}"
    ));
    let rows = absent_or(connection, "the last statements", rows)?;
    let mut last: BTreeMap<u64, String> = BTreeMap::new();
    for row in rows.value().into_iter().flatten() {
        last.extend(number(row, 0).map(|id| (id, text(row, 1).to_ascii_uppercase())));
    }
    let takes_it = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words
            .windows(4)
            .any(|words| matches!(words, ["TABLE" | "TABLES", "WITH", "READ", "LOCK" | "LOCK;"]))
    };
    last.retain(|_, text| takes_it(text));
    Ok(last.into_keys().collect())
}

/// `None` for a lock of a thread without a session.
fn request(row: &Row) -> Option<Request> {
    Some(Request {
        connection: number(row, 0)?,
        object: object(row),
        mode: text(row, 4).trim_start_matches("MDL_").to_owned(),
        is_pending: text(row, 5) == "PENDING",
    })
}

/// `shop.orders` for a table, `SCHEMA shop`, `GLOBAL` for others.
fn object(row: &Row) -> String {
    let kind = text(row, 1);
    let name = [optional_text(row, 2), optional_text(row, 3)];
    let name: Vec<String> = name.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    match (kind.as_str(), name.join(".")) {
        ("TABLE", name) => name,
        (kind, name) => format!("{kind} {name}").trim_end().to_owned(),
    }
}

/// What finds the locks on the object of a row. Without a schema it goes past the index of the table:
/// on MySQL 8.0.12 that finds nothing for a name without a schema, as a user lock has it.
fn condition(row: &Row) -> String {
    let columns = [("OBJECT_TYPE", 1), ("OBJECT_SCHEMA", 2), ("OBJECT_NAME", 3)];
    let has_schema = optional_text(row, 2).is_some_and(|schema| !schema.is_empty());
    let is = |(column, at): (&str, usize)| match (has_schema, optional_text(row, at)) {
        (true, Some(value)) => format!("m.{column} = {}", super::quoted(&value)),
        (true, None) => format!("m.{column} IS NULL"),
        (false, value) => {
            let value = super::quoted(&value.unwrap_or_default());
            format!("COALESCE(m.{column}, '') = {value}")
        }
    };
    format!("({})", columns.map(is).join(" AND "))
}

fn number(row: &Row, at: usize) -> Option<u64> {
    text(row, at).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Waiting {
        let state = TABLE_METADATA.to_owned();
        Waiting { connection: 2, state, waits_for: WaitsFor::MetadataLock, seconds: None }
    }

    fn request(connection: u64, mode: &str, is_pending: bool) -> Request {
        Request { object: "shop.t".to_owned(), mode: mode.to_owned(), is_pending, connection }
    }

    /// Who is named, and the candidates.
    fn found(known: Known) -> (Vec<Key>, Vec<Key>) {
        let wait = wait(&waiting(), &known);
        (wait.blockers, wait.unknown.map_or(Vec::new(), |unknown| unknown.candidates))
    }

    #[test]
    fn one_holder_of_locks_is_no_proof_that_the_waiter_waits_for_it() {
        let holders = Known::Holders(BTreeSet::from([1, 2]));
        assert_eq!(found(holders), (Vec::new(), vec![Key::Session(1)]));
    }

    #[test]
    fn who_has_a_lock_of_an_unknown_mode_is_a_candidate_and_not_blamed() {
        let of_the_future =
            [request(2, "EXCLUSIVE", true), request(1, "SHARED_OF_THE_FUTURE", false)];
        let candidates = vec![Key::Session(1)];
        assert_eq!(found(Known::Requests(of_the_future.to_vec(), None)), (Vec::new(), candidates));
        let known = [request(2, "EXCLUSIVE", true), request(1, "SHARED_READ", false)];
        assert_eq!(
            found(Known::Requests(known.to_vec(), None)),
            (vec![Key::Session(1)], Vec::new())
        );
    }
}
