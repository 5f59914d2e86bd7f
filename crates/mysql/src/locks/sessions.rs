//! What is known of the sessions that block or wait.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use waggle_model::Reading;

use super::gate::Source;
use super::list;
use super::wait::Key;
use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, optional_text, text};

/// Characters of a statement that are read.
const TEXT_MAX: usize = 1024;

/// A session that blocks or waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Session {
    /// The user's name.
    pub user: Option<String>,
    /// The client's host.
    pub host: Option<String>,
    /// The default database.
    pub db: Option<String>,
    /// What it does: `Sleep`, `Query`.
    pub command: Option<String>,
    /// The server's word for the stage.
    pub state: Option<String>,
    /// For how long, in seconds: idle where the command is `Sleep`, else running.
    pub since_s: Option<f64>,
    /// Its transaction.
    pub transaction: Option<Transaction>,
    /// What it runs, or ran last.
    pub statement: LastStatement,
}

impl Session {
    /// Whether it waits for its client.
    pub fn is_idle(&self) -> bool {
        self.command.as_deref() == Some("Sleep")
    }
}

/// A transaction of InnoDB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transaction {
    /// `trx_id`.
    pub id: String,
    /// Since its begin, in seconds.
    pub age_s: Option<f64>,
    /// `trx_rows_locked`, an approximation; one that is waited for is counted.
    pub rows_locked: u64,
    /// `trx_rows_modified`.
    pub rows_modified: u64,
}

/// A statement that runs or was the last to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LastStatement {
    /// The text, at most 1024 characters of it.
    pub text: Option<String>,
    /// Whether it runs.
    pub is_running: bool,
    /// Why there is no text.
    pub why_unknown: Option<String>,
}

/// Reads the sessions of these participants.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
    keys: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Session>, ConnectionError> {
    let ids: Vec<u64> = keys.iter().filter_map(Key::connection_id).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = list(ids);
    let statement = match source {
        Source::Threads => format!(
            "SELECT PROCESSLIST_ID AS {MARK}, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB, \
               PROCESSLIST_COMMAND, PROCESSLIST_STATE, PROCESSLIST_TIME, \
               LEFT(PROCESSLIST_INFO, {TEXT_MAX}) \
             FROM performance_schema.threads WHERE PROCESSLIST_ID IN ({ids})"
        ),
        Source::Processlist => format!(
            "SELECT ID AS {MARK}, USER, HOST, DB, COMMAND, STATE, TIME, LEFT(INFO, {TEXT_MAX}) \
             FROM information_schema.PROCESSLIST WHERE ID IN ({ids})"
        ),
        Source::None(_) => return Ok(BTreeMap::new()),
    };
    let rows = connection.rows(&statement)?;
    let mut sessions: BTreeMap<Key, Session> = rows
        .iter()
        .filter_map(|row| Some((Key::Session(text(row, 0).parse().ok()?), session(row))))
        .collect();
    last_statements(connection, &mut sessions)?;
    Ok(sessions)
}

fn session(row: &Row) -> Session {
    let filled = |at| optional_text(row, at).filter(|text| !text.is_empty());
    let text = filled(7);
    let is_running = text.is_some();
    Session {
        user: filled(1),
        host: filled(2),
        db: filled(3),
        command: filled(4),
        state: filled(5),
        since_s: filled(6).and_then(|seconds| seconds.parse().ok()),
        transaction: None,
        statement: LastStatement { text, is_running, why_unknown: None },
    }
}

/// The last statement of those that run none, where Performance Schema keeps it.
fn last_statements(
    connection: &mut Connection,
    sessions: &mut BTreeMap<Key, Session>,
) -> Result<(), ConnectionError> {
    let idle: Vec<u64> = sessions
        .iter()
        .filter(|(_, session)| !session.statement.is_running)
        .filter_map(|(key, _)| key.connection_id())
        .collect();
    if idle.is_empty() {
        return Ok(());
    }
    let texts = match texts(connection, &list(idle))? {
        Reading::Value(texts) => texts,
        Reading::Absent(why) => {
            for session in sessions.values_mut().filter(|one| !one.statement.is_running) {
                session.statement.why_unknown = Some(why.clone());
            }
            return Ok(());
        }
    };
    for (key, session) in sessions.iter_mut().filter(|(_, one)| !one.statement.is_running) {
        let last = key.connection_id().and_then(|id| texts.get(&id));
        session.statement.text = last.cloned().flatten();
        if session.statement.text.is_none() {
            let why = match last {
                Some(_) => {
                    "a statement that its client prepared; this server keeps no text of such"
                }
                None => "Performance Schema has none of this session (setup_actors, thread limits)",
            };
            session.statement.why_unknown = Some(why.to_owned());
        }
    }
    Ok(())
}

/// What each session ran last, by its current events, else its history; `None` for what its client prepared and the
/// server keeps no text of.
fn texts(
    connection: &mut Connection,
    ids: &str,
) -> Result<Reading<BTreeMap<u64, Option<String>>>, ConnectionError> {
    if !connection.server_identity().performance_schema {
        let why = "Performance Schema is off; start the server with performance_schema=ON";
        return Ok(Reading::absent(why));
    }
    let consumer = connection.rows(&format!(
        "SELECT NAME AS {MARK} FROM performance_schema.setup_consumers WHERE ENABLED = 'NO' \
         AND NAME IN ('global_instrumentation', 'thread_instrumentation', \
           'events_statements_current')"
    ));
    match absent_or(connection, "the last statements", consumer)? {
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
        Reading::Value(rows) => {
            if let Some(row) = rows.first() {
                let off = text(row, 0);
                return Ok(Reading::Absent(format!("{off} is off; run waggle pfs apply locks")));
            }
        }
    }
    let mut texts = BTreeMap::new();
    // Each later row replaces the one before: history, then current, the newest event last.
    for table in ["history", "current"] {
        let rows = connection.rows(&format!(
            "SELECT t.PROCESSLIST_ID AS {MARK}, LEFT(s.SQL_TEXT, {TEXT_MAX}) \
             FROM performance_schema.threads t \
             JOIN performance_schema.events_statements_{table} s ON s.THREAD_ID = t.THREAD_ID \
             WHERE t.PROCESSLIST_ID IN ({ids}) \
               AND (s.SQL_TEXT IS NOT NULL OR s.EVENT_NAME = 'statement/com/Execute') \
               AND s.NESTING_EVENT_LEVEL = 0 ORDER BY s.EVENT_ID"
        ));
        let rows = match absent_or(connection, "the last statements", rows)? {
            Reading::Value(rows) => rows,
            Reading::Absent(why) => return Ok(Reading::Absent(why)),
        };
        for row in &rows {
            if let Ok(id) = text(row, 0).parse() {
                texts.insert(id, optional_text(row, 1));
            }
        }
    }
    Ok(Reading::Value(texts))
}
