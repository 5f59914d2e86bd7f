//! The sessions that block or wait.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use waggle_model::Reading;

use super::gate::Source;
use super::wait::Key;
use super::{appliers, list};
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
    /// Whose session it is.
    pub kind: SessionKind,
    /// The name of its thread in Performance Schema.
    pub thread: Option<String>,
    /// The channel of replication (MariaDB: the connection) that an applier works for, where the
    /// server says it; empty for the one without a name.
    pub channel: Option<String>,
    /// Whether it, or its statement, was killed, or its connection is closed; `None` where this account
    /// cannot see it.
    pub killed: Option<bool>,
    /// Whether it has prepared a transaction of XA; `None` where that is not known, or was not asked.
    pub xa_prepared: Option<bool>,
    /// Its transaction.
    pub transaction: Option<Transaction>,
    /// Seconds since its transaction began, where the tap has seen that.
    pub transaction_s: Option<f64>,
    /// What it runs, or ran last.
    pub statement: LastStatement,
    /// The first statement of its transaction that wrote something, where the tap has seen it.
    pub first_write: Option<String>,
}

impl Session {
    /// Whether it waits for its client.
    pub fn is_idle(&self) -> bool {
        self.command.as_deref() == Some("Sleep")
    }

    /// For how long it can have held a lock of its transaction, in seconds.
    pub(super) fn holds_at_most_s(&self) -> Option<f64> {
        self.transaction.as_ref().and_then(|transaction| transaction.age_s).or(self.transaction_s)
    }
}

/// Whose session it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// Not known: the server does not list it.
    #[default]
    Unknown,
    /// A client's.
    Client,
    /// A thread of replication that changes data: the SQL thread or one of its workers.
    Applier,
    /// The thread of replication that reads from the other server.
    Receiver,
    /// An event of the event scheduler.
    Event,
    /// The event scheduler itself.
    EventScheduler,
    /// Another thread of the server.
    System,
}

/// Our word for a thread that is not in the list of processes. A client's session leaves it as soon as
/// its connection is closed, and rolls back after that (`THD::release_resources` in `sql/sql_class.cc`).
const CLOSED: &str = "Closed";

/// The user that the server shows for its own threads.
const SYSTEM_USER: &str = "system user";

impl SessionKind {
    /// By the name of the thread in Performance Schema, and whether it is of the background.
    fn of_thread(name: &str, is_background: bool, user: Option<&str>) -> SessionKind {
        match name.rsplit('/').next().unwrap_or_default() {
            "slave_sql" | "replica_sql" => SessionKind::Applier,
            "slave_worker" | "replica_worker" | "rpl_parallel_thread" => SessionKind::Applier,
            "slave_io" | "replica_io" => SessionKind::Receiver,
            "event_worker" => SessionKind::Event,
            "event_scheduler" => SessionKind::EventScheduler,
            _ if user == Some(SYSTEM_USER) => SessionKind::System,
            _ if is_background && user.is_none() => SessionKind::System,
            _ => SessionKind::Client,
        }
    }

    /// By the row of the list of processes, which does not name the threads.
    fn of_process(user: &str, command: &str, state: &str) -> SessionKind {
        match (user, command) {
            (SYSTEM_USER, "Slave_SQL" | "Slave_worker") => SessionKind::Applier,
            (SYSTEM_USER, "Slave_IO") => SessionKind::Receiver,
            // MySQL: both threads of replication.
            (SYSTEM_USER, "Connect" | "Query") => {
                let is_of_the_other = ["master", "source"].iter().any(|word| state.contains(word));
                match is_of_the_other && !state.contains("DELAY") {
                    true => SessionKind::Receiver,
                    false => SessionKind::Applier,
                }
            }
            (SYSTEM_USER, _) => SessionKind::System,
            ("event_scheduler", _) => SessionKind::EventScheduler,
            // A client has this command only while it logs in.
            (_, "Connect") => SessionKind::Event,
            _ => SessionKind::Client,
        }
    }
}

/// A transaction of InnoDB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transaction {
    /// `trx_id`.
    pub id: String,
    /// Seconds since it began.
    pub age_s: Option<f64>,
    /// `trx_rows_locked`, an approximation; one that is waited for is counted.
    pub rows_locked: u64,
    /// `trx_rows_modified`; of one that is being rolled back, what is left to undo.
    pub rows_modified: u64,
    /// Whether it is being rolled back.
    pub rolling_back: bool,
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
    /// Whether the server refused it; then it says nothing about the state of the session.
    #[serde(skip)]
    pub(super) was_refused: bool,
}

impl LastStatement {
    /// Whether it left a transaction that is prepared by XA; `None` if it cannot tell.
    pub(super) fn prepared(&self) -> Option<bool> {
        let text = self.text.as_deref().filter(|_| !self.was_refused)?;
        let words: Vec<&str> = text.split_ascii_whitespace().take(2).collect();
        Some(words.join(" ").eq_ignore_ascii_case("XA PREPARE"))
    }
}

/// Reads the sessions of these participants.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
    ask_killed: bool,
    keys: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Session>, ConnectionError> {
    let ids: Vec<u64> = keys.iter().filter_map(Key::connection_id).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = list(ids);
    let statement = match source {
        Source::Threads => {
            // Only the list of processes says who was killed. It takes a mutex of each session for an
            // instant.
            let (killed, from) = match ask_killed {
                true => (
                    format!("IF(p.ID IS NULL, '{CLOSED}', p.COMMAND)"),
                    "LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.PROCESSLIST_ID",
                ),
                false => ("NULL".to_owned(), ""),
            };
            format!(
                "SELECT t.PROCESSLIST_ID AS {MARK}, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, \
                   t.PROCESSLIST_DB, t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE, \
                   t.PROCESSLIST_TIME, LEFT(t.PROCESSLIST_INFO, {TEXT_MAX}), {killed}, t.NAME, t.TYPE \
                 FROM performance_schema.threads t {from} WHERE t.PROCESSLIST_ID IN ({ids})"
            )
        }
        Source::Processlist => format!(
            "SELECT ID AS {MARK}, USER, HOST, DB, COMMAND, STATE, TIME, LEFT(INFO, {TEXT_MAX}), COMMAND \
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
    channels(connection, source, &mut sessions)?;
    Ok(sessions)
}

fn session(row: &Row) -> Session {
    let filled = |at| optional_text(row, at).filter(|text| !text.is_empty());
    let text = filled(7);
    let is_running = text.is_some();
    let word = |at| filled(at).unwrap_or_default();
    let kind = match filled(9) {
        Some(name) => SessionKind::of_thread(&name, word(10) == "BACKGROUND", filled(1).as_deref()),
        None => SessionKind::of_process(&word(1), &word(4), &word(5)),
    };
    Session {
        kind,
        thread: filled(9),
        channel: None,
        killed: filled(8)
            .map(|command| command == "Killed" || command == CLOSED && kind == SessionKind::Client),
        xa_prepared: None,
        user: filled(1),
        host: filled(2),
        db: filled(3),
        command: filled(4),
        state: filled(5),
        since_s: filled(6).and_then(|seconds| seconds.parse().ok()),
        transaction: None,
        transaction_s: None,
        statement: LastStatement { text, is_running, ..LastStatement::default() },
        first_write: None,
    }
}

/// The channels of appliers.
fn channels(
    connection: &mut Connection,
    source: &Source,
    sessions: &mut BTreeMap<Key, Session>,
) -> Result<(), ConnectionError> {
    if sessions.values().any(|session| session.kind == SessionKind::Applier) {
        for applier in appliers::read(connection, source)? {
            if let Some(session) = sessions.get_mut(&Key::Session(applier.connection)) {
                session.channel = Some(applier.channel);
            }
        }
    }
    Ok(())
}

/// Which of these have prepared a transaction of XA. Its locks outlive the session.
pub(super) fn prepared<'a>(
    connection: &mut Connection,
    of: impl Iterator<Item = (&'a Key, &'a mut Session)>,
) -> Result<(), ConnectionError> {
    let mut left = Vec::new();
    for (key, session) in of {
        let is_session = key.connection_id().is_some();
        if is_session && session.is_idle() {
            session.xa_prepared = session.statement.prepared();
        }
        if !is_session || session.is_idle() && session.xa_prepared.is_none() {
            left.push(session);
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    match connection.rows("XA RECOVER") {
        Ok(rows) if rows.is_empty() => {
            left.into_iter().for_each(|session| session.xa_prepared = Some(false));
            Ok(())
        }
        // There are some, but of unknown sessions; or MySQL 8 wants the right XA_RECOVER_ADMIN.
        Ok(_) => Ok(()),
        Err(error) if error.number().is_some() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The last statement of idle sessions, if Performance Schema keeps it.
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
        session.statement.was_refused = last.is_some_and(|(_, was_refused)| *was_refused);
        session.statement.text = last.and_then(|(text, _)| text.clone());
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

type Texts = BTreeMap<u64, (Option<String>, bool)>;

/// What each session ran last, from its current events, else its history, and whether the server
/// refused it. The text is `None` for a prepared statement whose text the server does not keep.
fn texts(connection: &mut Connection, ids: &str) -> Result<Reading<Texts>, ConnectionError> {
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
            "SELECT t.PROCESSLIST_ID AS {MARK}, LEFT(s.SQL_TEXT, {TEXT_MAX}), s.ERRORS \
             FROM performance_schema.threads t \
             JOIN performance_schema.events_statements_{table} s ON s.THREAD_ID = t.THREAD_ID \
             WHERE t.PROCESSLIST_ID IN ({ids}) \
               AND (s.SQL_TEXT IS NOT NULL OR s.EVENT_NAME IN \
                 ('statement/com/Execute', 'statement/com/Bulk_execute')) \
               AND s.NESTING_EVENT_LEVEL = 0 ORDER BY s.EVENT_ID"
        ));
        let rows = match absent_or(connection, "the last statements", rows)? {
            Reading::Value(rows) => rows,
            Reading::Absent(why) => return Ok(Reading::Absent(why)),
        };
        for row in &rows {
            if let Ok(id) = text(row, 0).parse() {
                texts.insert(id, (optional_text(row, 1), text(row, 2) != "0"));
            }
        }
    }
    Ok(Reading::Value(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_server_are_told_from_clients() {
        let of = SessionKind::of_thread;
        assert_eq!(of("thread/sql/one_connection", false, Some("app")), SessionKind::Client);
        for name in ["slave_worker", "replica_worker", "slave_sql", "rpl_parallel_thread"] {
            let name = format!("thread/sql/{name}");
            assert_eq!(of(&name, false, Some(SYSTEM_USER)), SessionKind::Applier, "{name}");
        }
        assert_eq!(of("thread/sql/event_worker", false, Some("root")), SessionKind::Event);
        assert_eq!(of("thread/innodb/srv_purge_thread", true, None), SessionKind::System);
        // Of the thread pool.
        assert_eq!(of("thread/threadpool/worker_thread", true, Some("app")), SessionKind::Client);
    }

    #[test]
    fn who_was_killed_or_has_left_the_list_of_processes_is_ending() {
        let of = |command: Option<&str>, thread: &str| {
            let mut row: Row = vec![None; 11];
            row[8] = command.map(|command| command.as_bytes().to_vec());
            row[9] = Some(format!("thread/{thread}").into_bytes());
            session(&row).killed
        };
        assert_eq!(of(Some("Killed"), "sql/one_connection"), Some(true));
        assert_eq!(of(Some(CLOSED), "sql/one_connection"), Some(true));
        assert_eq!(of(Some(CLOSED), "sql/slave_worker"), Some(false));
        assert_eq!(of(Some("Sleep"), "sql/one_connection"), Some(false));
        assert_eq!(of(None, "sql/one_connection"), None);
    }

    #[test]
    fn the_last_statement_tells_of_a_transaction_of_xa_unless_it_was_refused() {
        let after = |text: &str, was_refused| {
            let text = Some(text.to_owned());
            LastStatement { text, was_refused, ..LastStatement::default() }.prepared()
        };
        assert_eq!(after("xa  prepare 'x'", false), Some(true));
        assert_eq!(after("XA START 'x'", false), Some(false));
        assert_eq!(after("SELECT 1", false), Some(false));
        assert_eq!(after("SELECT 1", true), None);
        assert_eq!(LastStatement::default().prepared(), None);
    }

    #[test]
    fn without_names_of_threads_user_command_and_state_tell() {
        let of = SessionKind::of_process;
        assert_eq!(of("app", "Query", "updating"), SessionKind::Client);
        assert_eq!(of(SYSTEM_USER, "Slave_worker", "Update_rows"), SessionKind::Applier);
        assert_eq!(
            of(SYSTEM_USER, "Connect", "Waiting for master to send event"),
            SessionKind::Receiver
        );
        assert_eq!(
            of(SYSTEM_USER, "Connect", "Reading event from the relay log"),
            SessionKind::Applier
        );
        assert_eq!(of(SYSTEM_USER, "Daemon", "InnoDB purge coordinator"), SessionKind::System);
        assert_eq!(of("event_scheduler", "Daemon", ""), SessionKind::EventScheduler);
        assert_eq!(of("root", "Connect", "updating"), SessionKind::Event);
    }
}
