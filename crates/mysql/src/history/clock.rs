//! Converts the timer of Performance Schema to the time of day.
//!
//! The timer counts picoseconds from its own start, which no function returns. A recorded statement
//! that reads the time shows both: the time of day lies between its start and its end. An `EXECUTE`
//! of a prepared `SELECT` is recorded if `execute_sql` is on.

use crate::connection::{Connection, ConnectionError, MARK, text};

/// The event of an `EXECUTE`.
pub(super) const EVENT: &str = "statement/sql/execute_sql";

/// How far two clocks may drift apart, µs per second: what the kernel slews by at most (`MAXFREQ` in
/// `include/linux/timex.h`).
const DRIFT_US_PER_S: i64 = 500;
/// Comparisons at the beginning, so that the first statement is not told by one that was kept waiting.
const BEGINNING: usize = 3;

/// The difference of the two clocks.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The best comparison so far.
    best: Option<Comparison>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// On the timer, microseconds.
    at_us: i64,
    /// Microseconds since 1970 at the beginning of the timer.
    begin_us: i64,
    /// By how much that can be wrong.
    error_us: i64,
}

impl Clock {
    /// Begins; the statements of this connection, which has this thread, are recorded already, and not yet
    /// counted.
    pub(super) fn begin(
        connection: &mut Connection,
        thread: u64,
    ) -> Result<Clock, ConnectionError> {
        connection.rows(&format!(
            "PREPARE {MARK} FROM 'SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)'"
        ))?;
        let mut clock = Clock::default();
        for _ in 0..BEGINNING {
            clock.read(connection, thread)?;
        }
        Ok(clock)
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
        let us = |at| ps(at).and_then(|ps| i64::try_from(ps / 1_000_000).ok());
        if let (Some(now_us), Some(start_us), Some(end_us)) = (now_us, us(0), us(1)) {
            self.take(Comparison::new(now_us, start_us, end_us));
        }
        Ok(())
    }

    /// Keeps the better of two comparisons: a statement that was kept waiting tells little.
    fn take(&mut self, new: Comparison) {
        if self.best.is_none_or(|best| new.is_better_than(&best)) {
            self.best = Some(new);
        }
    }

    /// The time of day of a moment, microseconds since 1970.
    pub(super) fn wall_us(&self, timer_ps: u64) -> Option<i64> {
        let us = i64::try_from(timer_ps / 1_000_000).ok()?;
        self.best?.begin_us.checked_add(us)
    }
}

impl Comparison {
    /// It was `now_us` at some moment from `start_us` to `end_us` on the timer.
    fn new(now_us: i64, start_us: i64, end_us: i64) -> Comparison {
        let middle_us = start_us.midpoint(end_us);
        Comparison {
            at_us: end_us,
            begin_us: now_us.saturating_sub(middle_us),
            error_us: end_us.saturating_sub(middle_us),
        }
    }

    /// Whether it is more certain than an earlier one is by now, or shows that somebody has set the clock.
    fn is_better_than(&self, earlier: &Comparison) -> bool {
        let seconds = self.at_us.saturating_sub(earlier.at_us) / 1_000_000;
        let drift_us = seconds.saturating_mul(DRIFT_US_PER_S);
        let error_us = earlier.error_us.saturating_add(drift_us);
        let apart_us = self.begin_us.abs_diff(earlier.begin_us);
        self.error_us <= error_us
            || apart_us > self.error_us.saturating_add(error_us).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    /// The timer began 1000 s after 1970, and the comparisons say when a moment at 60 s was.
    fn at_60_s(comparisons: &[(i64, i64, i64)]) -> i64 {
        let mut clock = Clock::default();
        for (now, start, end) in comparisons {
            clock.take(Comparison::new(*now, *start, *end));
        }
        clock.wall_us(60 * S as u64 * 1_000_000).unwrap()
    }

    #[test]
    fn a_statement_that_was_kept_waiting_does_not_move_the_clock() {
        let first = (1010 * S, 10 * S - 50, 10 * S + 50);
        let late = (1020 * S + 900_000, 20 * S, 21 * S);
        assert_eq!(at_60_s(&[first]), 1060 * S);
        assert_eq!(at_60_s(&[first, late]), 1060 * S);
        // It is all there is.
        assert_eq!(at_60_s(&[late]), 1060 * S + 400_000);
        assert_eq!(at_60_s(&[late, (1022 * S, 22 * S - 50, 22 * S + 50)]), 1060 * S);
    }

    #[test]
    fn a_clock_that_drifts_or_is_set_is_followed() {
        let first = (1010 * S, 10 * S - 50, 10 * S + 50);
        // A little less certain, but ten seconds later.
        assert_eq!(at_60_s(&[first, (1020 * S + 300, 20 * S - 80, 20 * S + 80)]), 1060 * S + 300);
        // An hour was added meanwhile, and the statement kept waiting.
        let set = (1012 * S + 3600 * S, 11 * S, 13 * S);
        assert_eq!(at_60_s(&[first, set]), 4660 * S);
    }
}
