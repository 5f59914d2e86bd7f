//! From the timer of Performance Schema to the time of day.
//!
//! The timer counts picoseconds from a beginning of its own, and no function tells it. A statement
//! that asks for the time and is itself recorded shows both: the time of day lies between its start
//! and its end. `EXECUTE` of a prepared `SELECT` is recorded wherever `execute_sql` is on.

use crate::connection::{Connection, ConnectionError, MARK, text};

/// The event of an `EXECUTE`.
pub(super) const EVENT: &str = "statement/sql/execute_sql";

/// The difference of the two clocks.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Microseconds since 1970 at the beginning of the timer; `None` where it is not known.
    begin_us: Option<i64>,
}

impl Clock {
    pub(super) fn begin(connection: &mut Connection) -> Result<Clock, ConnectionError> {
        connection.rows(&format!(
            "PREPARE {MARK} FROM 'SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)'"
        ))?;
        Ok(Clock::default())
    }

    /// Compares the clocks again: they drift apart.
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        thread: u64,
    ) -> Result<(), ConnectionError> {
        let now = connection.rows(&format!("EXECUTE {MARK}"))?;
        let now_us = now.first().and_then(|row| text(row, 0).parse::<i64>().ok());
        let rows = connection.rows(&format!(
            "SELECT TIMER_START AS {MARK}, TIMER_END \
             FROM performance_schema.events_statements_history_long \
             WHERE THREAD_ID = {thread} AND EVENT_NAME = '{EVENT}' \
             ORDER BY EVENT_ID DESC LIMIT 1"
        ))?;
        let ps = |at| rows.first().and_then(|row| text(row, at).parse::<u64>().ok());
        if let (Some(now_us), Some(start), Some(end)) = (now_us, ps(0), ps(1)) {
            let middle_us = i64::try_from(start.midpoint(end) / 1_000_000).unwrap_or(0);
            self.begin_us = Some(now_us - middle_us);
        }
        Ok(())
    }

    /// The time of day of a moment, microseconds since 1970.
    pub(super) fn wall_us(&self, timer_ps: u64) -> Option<i64> {
        let us = i64::try_from(timer_ps / 1_000_000).ok()?;
        self.begin_us?.checked_add(us)
    }
}
