//! Polls the statements that ended from the ring of Performance Schema
//! (`events_statements_history_long`). It lists each row once, and reports every loss.
//!
//! The server writes every event to the ring before it counts it by name (`pfs_end_statement` in
//! `storage/perfschema/pfs.cc`). So an event that was counted but not seen is one that the ring
//! overwrote between two polls.

mod accounts;
mod clock;
mod counts;
mod prepared;
mod recorded;
mod sessions;
mod unseen;

use std::collections::{BTreeMap, HashSet};

use crate::connection::{Connection, ConnectionError, MARK, Row, optional_text, text};
use accounts::Accounts;
use clock::Clock;
use counts::Counts;
pub use prepared::PreparedStatement;
use recorded::Recorded;
pub use sessions::{Session, Sessions};
use unseen::{LeftOut, Lost};

/// Readings of the ring at the beginning, until none ends between two readings of the counters.
const BASELINE_TRIES: usize = 20;
/// An event is written to the ring at once after its end is noted, picoseconds. One that takes
/// longer is counted as missing.
const LATE_PS: u64 = 10_000_000_000_000;

/// A statement that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `THREAD_ID`: unique as long as the server lives.
    pub thread: u64,
    /// `EVENT_ID`: with the thread it names one event.
    pub id: u64,
    /// `EVENT_NAME`, such as `statement/sql/drop_table`.
    pub name: String,
    /// When it began, microseconds since 1970 by the server's clock; `None` if it was not timed.
    pub started_us: Option<i64>,
    /// `TIMER_WAIT`, nanoseconds; `None` if it was not timed.
    pub duration_ns: Option<u64>,
    /// `SQL_TEXT`; where the server cut it, it ends in three points.
    pub text: Option<Vec<u8>>,
    /// `CURRENT_SCHEMA`.
    pub schema: Option<String>,
    /// `MYSQL_ERRNO`.
    pub error: u32,
    /// `ROWS_SENT`.
    pub rows_sent: u64,
    /// Whether it ran inside another statement.
    pub nested: bool,
    /// `TIMER_START`, picoseconds since a start that the server does not reveal.
    pub timer_start_ps: Option<u64>,
}

/// What one poll found.
#[derive(Debug, Default)]
pub struct Polled {
    /// Statements that ended since the previous poll, in order within each session.
    pub events: Vec<Event>,
    /// Events that the ring lost since the previous poll, by name.
    pub missing: BTreeMap<String, u64>,
    /// What found no room and was not recorded since the previous poll, by the name of the server's
    /// counter: sessions, and statements nested too deeply.
    pub lost: BTreeMap<String, u64>,
    /// What runs now in which session.
    pub sessions: Sessions,
    /// The current prepared statements; empty if no event needs them.
    pub prepared: Vec<PreparedStatement>,
    /// Sessions that somebody excluded since the previous poll, in words with the remedy.
    pub not_shown: Vec<String>,
    /// What somebody switched off since the start: a consumer, an instrument, or its timing.
    /// Nothing that needs it is recorded from then on.
    pub switched_off: Option<String>,
}

/// Why the ring cannot be polled.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The ring has no room.
    #[error(
        "performance_schema_events_statements_history_long_size is 0: no statement is kept; start \
         the server with another size"
    )]
    NoRing,
    /// The server.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// The ring of a server, from one poll to the next.
#[derive(Debug)]
pub struct History {
    own_thread: u64,
    /// What was on at the beginning.
    recorded: Recorded,
    not_shown: Vec<String>,
    /// Whom the settings left out at the last poll.
    left_out: LeftOut,
    /// What had found no room at the last poll.
    lost: Lost,
    /// Rows of the last reading.
    known: HashSet<(u64, u64)>,
    /// Rows that ended before it need not be read again.
    read_up_to_ps: u64,
    counts: Counts,
    accounts: Accounts,
    clock: Clock,
    sessions: Sessions,
}

impl History {
    /// Begins after what the ring holds now. What shall be recorded is on already.
    ///
    /// # Errors
    /// The ring has no room, a table cannot be read, or the connection is broken.
    pub fn begin(connection: &mut Connection) -> Result<History, HistoryError> {
        let rows = connection.rows(&format!(
            "SELECT THREAD_ID AS {MARK}, @@performance_schema_events_statements_history_long_size \
             FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()"
        ))?;
        let number = |at| rows.first().and_then(|row| text(row, at).parse::<u64>().ok());
        if number(1) == Some(0) {
            return Err(HistoryError::NoRing);
        }
        let own_thread = number(0).unwrap_or(0);
        let lost = unseen::lost(connection)?;
        let left_out = unseen::left_out(connection, own_thread)?;
        let mut history = History {
            own_thread,
            recorded: Recorded::read(connection)?.with_what_is_needed(),
            not_shown: unseen::in_words(connection.server_identity(), left_out, &lost),
            left_out,
            lost,
            known: HashSet::new(),
            read_up_to_ps: 0,
            counts: Counts::default(),
            accounts: Accounts::default(),
            clock: Clock::begin(connection, own_thread)?,
            sessions: Sessions::default(),
        };
        for _ in 0..BASELINE_TRIES {
            let before = counts::read(connection)?;
            history.read_ring(connection)?;
            let after = counts::read(connection)?;
            let is_quiet = before == after;
            history.counts = Counts::begin(after);
            if is_quiet {
                break;
            }
        }
        history.accounts = Accounts::begin(connection)?;
        history.sessions = sessions::read(connection, history.own_thread)?;
        Ok(history)
    }

    /// What was not shown when it began though all that is needed was on, each in words with its remedy:
    /// what the server cannot show, and whom its settings leave out.
    pub fn not_shown(&self) -> &[String] {
        &self.not_shown
    }

    /// Reads what ended since the last call, even if somebody has switched off something needed
    /// meanwhile.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn poll(&mut self, connection: &mut Connection) -> Result<Polled, HistoryError> {
        let switched_off = self.recorded.switched_off(&Recorded::read(connection)?);
        let counted = counts::read(connection)?;
        let mut events = self.read_ring(connection)?;
        // Those of waggle are counted when they are made: the ring may lose them, too.
        events.retain(|event| event.thread != self.own_thread);
        self.counts.see(events.iter().map(|event| event.name.as_str()));
        let missing = self.counts.missing(&counted);
        events.sort_by_key(|event| (event.thread, event.id));
        let now = sessions::read(connection, self.own_thread)?;
        let sessions = now.with_earlier(&self.sessions);
        self.sessions = now;
        let needs_text = events.iter().any(|event| event.name.ends_with("/execute_sql"));
        let prepared = if needs_text { prepared::read(connection)? } else { Vec::new() };
        let sessions = self.accounts.complete(connection, &events, sessions)?;
        if !events.is_empty() {
            self.clock.read(connection, self.own_thread)?;
            self.counts.see([clock::EVENT].into_iter().filter(|_| !self.left_out.own_uncounted));
        }
        for event in &mut events {
            event.started_us = event.timer_start_ps.and_then(|started| self.clock.wall_us(started));
        }
        let before = std::mem::replace(&mut self.lost, unseen::lost(connection)?);
        let lost = unseen::grown(&before, &self.lost);
        let left_out = unseen::left_out(connection, self.own_thread)?;
        let not_shown = left_out.since(std::mem::replace(&mut self.left_out, left_out)).in_words();
        Ok(Polled { events, missing, lost, sessions, prepared, not_shown, switched_off })
    }

    /// Rows of the ring that were not there at the last reading.
    fn read_ring(&mut self, connection: &mut Connection) -> Result<Vec<Event>, ConnectionError> {
        let since = self.read_up_to_ps.saturating_sub(LATE_PS);
        let rows = connection.rows(&format!(
            "SELECT THREAD_ID AS {MARK}, EVENT_ID, EVENT_NAME, TIMER_START, TIMER_END, TIMER_WAIT, \
             SQL_TEXT, CURRENT_SCHEMA, MYSQL_ERRNO, NESTING_EVENT_LEVEL, ROWS_SENT \
             FROM performance_schema.events_statements_history_long \
             WHERE TIMER_END IS NULL OR TIMER_END >= {since}"
        ))?;
        let mut read = HashSet::with_capacity(rows.len());
        let mut events = Vec::new();
        for row in rows {
            let event = event_of(row);
            let key = (event.thread, event.id);
            if let (Some(start), Some(wait)) = (event.timer_start_ps, event.duration_ns) {
                let end = start.saturating_add(wait.saturating_mul(1000));
                self.read_up_to_ps = self.read_up_to_ps.max(end);
            }
            if read.insert(key) && !self.known.contains(&key) {
                events.push(event);
            }
        }
        self.known = read;
        Ok(events)
    }
}

fn event_of(mut row: Row) -> Event {
    let number = |row: &Row, at| optional_text(row, at)?.parse::<u64>().ok();
    Event {
        thread: number(&row, 0).unwrap_or(0),
        id: number(&row, 1).unwrap_or(0),
        name: text(&row, 2),
        started_us: None,
        timer_start_ps: number(&row, 3),
        duration_ns: number(&row, 5).map(|picoseconds| picoseconds / 1000),
        schema: optional_text(&row, 7),
        error: number(&row, 8).and_then(|error| u32::try_from(error).ok()).unwrap_or(0),
        rows_sent: number(&row, 10).unwrap_or(0),
        // Where the statement around it is not recorded, its level is 0.
        nested: number(&row, 9).is_some_and(|level| level > 0)
            || text(&row, 2).starts_with("statement/sp/"),
        text: row.get_mut(6).and_then(Option::take),
    }
}
