//! Waits for metadata locks.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::{Flavour, Reading};

use super::compatible::{excludes, stands_behind};
use super::gate::Waiting;
use super::wait::{Key, Lock, LockKind, Unknown, Wait};
use super::{BLOCKS_MAX, WAITERS_MAX};
use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, optional_text, text};

const INSTRUMENT: &str = "wait/lock/metadata/sql/mdl";
/// `THR_LOCK`: the locks of MyISAM, MEMORY and others.
const TABLE_LEVEL: &str = "Waiting for table level lock";

/// The state of who waits for a metadata lock on a table.
const TABLE_METADATA: &str = "Waiting for table metadata lock";

/// What can be asked about metadata locks.
enum Known {
    /// All locks that were asked for since the instrument is on: who has them, who waits.
    Requests(Vec<Request>),
    /// Who has locks on tables (MariaDB's plugin `metadata_lock_info`); not who waits for which.
    Holders(BTreeSet<u64>),
    /// Nothing, and what to do about it.
    Nothing(String),
}

/// A row of `performance_schema.metadata_locks`.
#[derive(Clone, Debug)]
struct Request {
    object: String,
    mode: String,
    is_pending: bool,
    connection: u64,
}

/// Who of those whose state says that they wait is blocked by whom.
pub(super) fn read(
    connection: &mut Connection,
    waiting: &[Waiting],
) -> Result<Vec<Wait>, ConnectionError> {
    let known = match waiting.iter().any(|one| one.state != TABLE_LEVEL) {
        true => ask(connection)?,
        false => Known::Nothing(String::new()),
    };
    let waiters: BTreeSet<u64> = waiting.iter().map(|one| one.connection).collect();
    Ok(waiting.iter().take(WAITERS_MAX).map(|one| wait(one, &waiters, &known)).collect())
}

fn wait(one: &Waiting, waiters: &BTreeSet<u64>, known: &Known) -> Wait {
    let mut wait = Wait {
        waiter: Key::Session(one.connection),
        lock: Lock::of(LockKind::Metadata),
        waited_s: one.seconds,
        blockers: Vec::new(),
        by_elimination: false,
        unknown: None,
    };
    let unknown = |why: &str| Some(Unknown { why: why.to_owned(), candidates: Vec::new() });
    match known {
        _ if one.state == TABLE_LEVEL => {
            wait.lock.kind = LockKind::Table;
            wait.unknown = unknown("the server does not say who locks a table of this engine");
        }
        Known::Nothing(why) => wait.unknown = unknown(why),
        Known::Holders(_) if one.state != TABLE_METADATA => {
            wait.unknown = unknown("metadata_lock_info is read for who has locks on tables only");
        }
        Known::Holders(holders) => {
            let others = holders.iter().filter(|holder| **holder != one.connection);
            let candidates: Vec<Key> = others.map(|holder| Key::Session(*holder)).collect();
            let why = "metadata_lock_info says who has locks, not who waits for which";
            match waiters.len() {
                1 => wait.eliminate(candidates, why),
                // Who waits may be the one who is waited for.
                _ => wait.unknown = Some(Unknown { why: why.to_owned(), candidates }),
            }
        }
        Known::Requests(requests) => from_requests(&mut wait, one.connection, requests),
    }
    wait
}

/// Who has a lock that excludes the one that is asked for; if nobody, who waits for such a one:
/// the queue is served by priority, and a reader stands behind a pending `ALTER`.
fn from_requests(wait: &mut Wait, connection: u64, requests: &[Request]) {
    let pending = requests.iter().find(|one| one.is_pending && one.connection == connection);
    let Some(pending) = pending else {
        wait.unknown = Some(Unknown {
            why: format!("it waits since before the instrument {INSTRUMENT} was on"),
            candidates: Vec::new(),
        });
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
        wait.eliminate(candidates.into_iter().collect(), &why);
    } else if wait.blockers.is_empty() {
        wait.unknown = Some(Unknown {
            why: format!(
                "its holder is not among the locks that the server shows: it took the lock before the \
                 instrument {INSTRUMENT} was on, or is a transaction of XA whose session is gone"
            ),
            candidates: Vec::new(),
        });
    }
}

fn ask(connection: &mut Connection) -> Result<Known, ConnectionError> {
    let why = match instrument(connection)? {
        None => match requests(connection)? {
            Reading::Value(requests) => return Ok(Known::Requests(requests)),
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

/// Why the instrument does not work; `None` where it does.
fn instrument(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
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
    // The strongest first: whoever else waits stands behind them.
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

/// `None` for a lock of a thread without a session.
fn request(row: &Row) -> Option<Request> {
    Some(Request {
        connection: number(row, 0)?,
        object: object(row),
        mode: text(row, 4),
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

fn condition(row: &Row) -> String {
    let is = |column: &str, at: usize| {
        let value = optional_text(row, at).map_or("NULL".to_owned(), |text| super::quoted(&text));
        format!("m.{column} <=> {value}")
    };
    let all = [is("OBJECT_TYPE", 1), is("OBJECT_SCHEMA", 2), is("OBJECT_NAME", 3)];
    format!("({})", all.join(" AND "))
}

fn number(row: &Row, at: usize) -> Option<u64> {
    text(row, at).parse().ok()
}
