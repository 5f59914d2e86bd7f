//! Does anything wait? Two cheap statements, before any table of locks is read.

use waggle_model::{Flavour, Reading, WaitsFor, idle_states, other_waiting_states};

use super::wait::{Key, Lock, LockKind, Source as WaitSource, Wait};
use super::{WAITERS_MAX, list, quoted};
use crate::connection::{
    Connection, ConnectionError, MARK, UNKNOWN_VARIABLE, absent_or, optional_text, text,
};
use crate::rights;

/// How InnoDB counts waits for its locks. These two are counters in memory, always on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RowWaits {
    /// `Innodb_row_lock_current_waits`: current waits.
    pub now: u64,
    /// `Innodb_row_lock_waits`: waits since the server's start.
    pub since_start: u64,
}

/// A session whose state says that it waits for somebody.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) connection: u64,
    pub(super) state: String,
    pub(super) waits_for: WaitsFor,
    pub(super) seconds: Option<f64>,
}

impl Waiting {
    /// Its wait, of which no more is known yet.
    pub(super) fn wait(&self, kind: LockKind) -> Wait {
        Wait {
            waiter: Key::Session(self.connection),
            lock: Lock { state: Some(self.state.clone()), ..Lock::of(kind) },
            waited_s: self.seconds,
            blockers: Vec::new(),
            by_elimination: false,
            not_all: None,
            overtaken: false,
            unknown: None,
            source: WaitSource::Sql,
        }
    }
}

/// Where the states of the sessions are read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// `performance_schema.threads`: no lock is taken, all sessions are seen. MariaDB does not tell there what its engines
    /// wait for (`set_thd_proc_info` in `sql/sql_class.cc` tells `PROCESSLIST` alone).
    Threads,
    /// `information_schema.PROCESSLIST`: takes a mutex of each session for an instant.
    Processlist,
    /// Nowhere, with the remedy.
    None(String),
}

/// Where the sessions are listed, and what the columns are called there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) id: &'static str,
    pub(super) state: &'static str,
    pub(super) seconds: &'static str,
    pub(super) command: &'static str,
    pub(super) table: &'static str,
}

impl Source {
    /// Where to read, or why no list of sessions may be read.
    pub(super) fn columns(&self) -> Result<Columns, &str> {
        match self {
            Source::Threads => Ok(Columns {
                id: "PROCESSLIST_ID",
                state: "PROCESSLIST_STATE",
                seconds: "PROCESSLIST_TIME",
                command: "PROCESSLIST_COMMAND",
                table: "performance_schema.threads",
            }),
            Source::Processlist => Ok(Columns {
                id: "ID",
                state: "STATE",
                seconds: "TIME",
                command: "COMMAND",
                table: "information_schema.PROCESSLIST",
            }),
            Source::None(why) => Err(why),
        }
    }

    /// Where the states of the sessions tell of every wait, as far as this account may read that.
    pub(super) fn of_states(&self, connection: &Connection, may_see_processes: bool) -> Source {
        match connection.server_identity().flavour {
            Flavour::Mariadb if may_see_processes => Source::Processlist,
            _ => self.clone(),
        }
    }

    /// What the states there leave out; `None` where they tell of every wait.
    pub(super) fn leaves_out(&self, connection: &Connection) -> Option<String> {
        let is_mariadb = connection.server_identity().flavour == Flavour::Mariadb;
        (is_mariadb && matches!(self, Source::Threads)).then(|| {
            let grant = grant_process(connection);
            format!("waits in engines other than InnoDB are told in PROCESSLIST only; run {grant}")
        })
    }

    /// Finds out what this account may read.
    pub(super) fn find(connection: &mut Connection) -> Result<Source, ConnectionError> {
        if connection.server_identity().performance_schema {
            let rows = connection
                .rows(&format!("SELECT 1 AS {MARK} FROM performance_schema.threads LIMIT 1"));
            if absent_or(connection, "the threads", rows)?.value().is_some() {
                return Ok(Source::Threads);
            }
        }
        // Without PROCESS this table shows the account's own sessions, and says nothing about it.
        if may_see_processes(connection)? {
            return Ok(Source::Processlist);
        }
        let grant = grant_process(connection);
        let how = match connection.server_identity().performance_schema {
            true => format!("{grant} and SELECT ON performance_schema.* likewise"),
            false => grant,
        };
        Ok(Source::None(format!("account may not see the sessions of others; run {how}")))
    }
}

/// The statement that gives the right to see transactions and sessions.
pub(super) fn grant_process(connection: &Connection) -> String {
    connection.server_identity().grant("PROCESS ON *.*")
}

/// Whether the account has the right PROCESS. MariaDB shows an empty table to who has not, MySQL
/// refuses; roles count where the server counts them.
pub(super) fn may_see_processes(connection: &mut Connection) -> Result<bool, ConnectionError> {
    if connection.server_identity().flavour == Flavour::Mysql {
        let probe = format!("SELECT 1 AS {MARK} FROM information_schema.INNODB_TRX LIMIT 1");
        return match connection.rows(&probe) {
            Ok(_) => Ok(true),
            Err(error) if error.is_access_denied() => Ok(false),
            Err(error) => Err(error),
        };
    }
    rights::has(connection, "PROCESS", &["*.*"])
}

/// What the counters of a server say.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) row_waits: Reading<RowWaits>,
    /// Statements that run, without this one.
    pub(super) running: Option<u64>,
    /// How many statements InnoDB lets in at a time; `None`: as many as there are.
    pub(super) limit: Option<u64>,
}

/// How many statements InnoDB lets in; 0: all.
const ADMITTED: &str = "@@GLOBAL.innodb_thread_concurrency";

/// Whether InnoDB can limit that: no MariaDB that waggle supports does.
pub(super) fn has_limit(connection: &mut Connection) -> Result<bool, ConnectionError> {
    if connection.server_identity().flavour == Flavour::Mariadb {
        return Ok(false);
    }
    match connection.rows(&format!("SELECT {ADMITTED} AS {MARK}")) {
        Ok(_) => Ok(true),
        Err(error) if error.number() == Some(UNKNOWN_VARIABLE) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the counters.
pub(super) fn counters(
    connection: &mut Connection,
    has_limit: bool,
) -> Result<Counters, ConnectionError> {
    let schema = match connection.server_identity().flavour {
        Flavour::Mysql => "performance_schema",
        Flavour::Mariadb => "information_schema",
    };
    let limit = if has_limit { ADMITTED } else { "0" };
    let rows = connection.rows(&format!(
        "SELECT VARIABLE_NAME AS {MARK}, VARIABLE_VALUE, {limit} FROM {schema}.global_status \
         WHERE VARIABLE_NAME IN ('Innodb_row_lock_current_waits', 'Innodb_row_lock_waits', \
                                 'Threads_running')"
    ))?;
    let number = |name: &str| {
        let row = rows.iter().find(|row| text(row, 0).eq_ignore_ascii_case(name))?;
        text(row, 1).parse().ok()
    };
    let (now, since_start) =
        (number("Innodb_row_lock_current_waits"), number("Innodb_row_lock_waits"));
    let row_waits = match (now, since_start) {
        (Some(now), Some(since_start)) => Reading::Value(RowWaits { now, since_start }),
        _ => Reading::absent("this server has no InnoDB, or does not count its waits"),
    };
    let running = number("Threads_running").map(|running: u64| running.saturating_sub(1));
    let limit = rows.first().and_then(|row| text(row, 2).parse().ok()).filter(|limit| *limit > 0);
    Ok(Counters { row_waits, running, limit })
}

/// The `COMMAND` of threads that work in the background.
const DAEMON: &str = "Daemon";

/// Sessions whose state says that they wait for somebody ([`WaitsFor`]), the longest first; one more
/// than is read at most, so that a cut can be seen.
pub(super) fn waiting(
    connection: &mut Connection,
    source: &Source,
) -> Result<Reading<Vec<Waiting>>, ConnectionError> {
    let Columns { id, state, seconds, command, table } = match source.columns() {
        Ok(columns) => columns,
        Err(why) => return Ok(Reading::absent(why)),
    };
    let limit = WAITERS_MAX + 1;
    let (others, idle) =
        (list(other_waiting_states().map(quoted)), list(idle_states().map(quoted)));
    let rows = connection.rows(&format!(
        "SELECT {id} AS {MARK}, {state}, {seconds}, {command} FROM {table} \
         WHERE ({state} LIKE 'Waiting %' OR {state} IN ({others})) AND {state} NOT IN ({idle}) \
           AND {id} IS NOT NULL \
         ORDER BY {seconds} DESC LIMIT {limit}"
    ))?;
    let waiting = rows.iter().filter_map(|row| {
        let state = text(row, 1);
        let waits_for = WaitsFor::of(&state)?;
        // A thread of the background that waits in a way that is not known here waits for work.
        let is_idle = waits_for == WaitsFor::Unknown && text(row, 3) == DAEMON;
        Some(Waiting {
            connection: text(row, 0).parse().ok().filter(|_| !is_idle)?,
            waits_for,
            state,
            seconds: optional_text(row, 2).and_then(|seconds| seconds.parse().ok()),
        })
    });
    Ok(Reading::Value(waiting.collect()))
}
