//! Applies changes, a few rows at a time.

use std::time::{Duration, Instant};

use waggle_mysql::{Connection, ConnectionError};

use crate::change::Change;
use crate::class::class_of;
use crate::state::rows;
use crate::statements::{Batch, batches};
use crate::table::Table;

/// A statement should not take longer: each row of `setup_instruments` that is written walks over
/// every instance of its kind (`update_*_derived_flags` in `storage/perfschema/pfs_instr_class.cc`),
/// and there can be millions of mutexes.
const STATEMENT_TIME: Duration = Duration::from_millis(2);
/// Rows in one statement at most.
pub const ROWS_MAX: usize = 64;

/// The same for what is switched again and again: it has shown what it costs.
const SWITCH_TIME: Duration = Duration::from_millis(20);
const SWITCH_ROWS_MAX: usize = 1024;

/// How many rows a statement may write: more while statements are quick, fewer when they are slow.
#[derive(Debug)]
pub struct Pace {
    rows: usize,
    rows_max: usize,
    statement_time: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: 1, rows_max: ROWS_MAX, statement_time: STATEMENT_TIME }
    }
}

impl Pace {
    /// For what is switched again and again.
    pub(crate) fn of_switches() -> Pace {
        Pace { rows: ROWS_MAX, rows_max: SWITCH_ROWS_MAX, statement_time: SWITCH_TIME }
    }

    fn heed(&mut self, took: Duration) {
        self.rows = if took > self.statement_time {
            (self.rows / 2).max(1)
        } else {
            (self.rows * 2).min(self.rows_max)
        };
    }

    /// Rests as long as the statement took, so that the server is busy with it for at most half of
    /// the time.
    fn rest(&self, took: Duration) {
        if took > self.statement_time {
            std::thread::sleep(took);
        }
    }
}

/// Changes of one class that were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The table, and of instruments the class.
    pub what: String,
    /// Rows that were written.
    pub rows: usize,
    /// The number of statements.
    pub statements: usize,
    /// The total time, including the rests.
    pub took: Duration,
    /// The longest statement.
    pub longest: Duration,
    /// Rows that read back differently than written: `before` is what they hold, `after` what was
    /// written.
    pub refused: Vec<Change>,
}

/// Writes changes class by class and reads every row back.
///
/// # Errors
/// The connection is broken, or the server refuses a statement.
pub fn write(
    connection: &mut Connection,
    changes: &[Change],
    pace: &mut Pace,
    tell: &mut dyn FnMut(&Made),
) -> Result<(), ConnectionError> {
    for of_class in changes.chunk_by(are_of_one_class) {
        let made = write_class(connection, of_class, pace)?;
        tell(&made);
    }
    Ok(())
}

/// The statements that [`write`] sends if the server is quick, in order. Somebody who makes the
/// changes by hand should send these too.
pub fn statements(changes: &[Change]) -> impl Iterator<Item = Batch<'_>> {
    changes.chunk_by(are_of_one_class).flat_map(|of_class| batches(of_class, ROWS_MAX))
}

fn are_of_one_class(one: &Change, other: &Change) -> bool {
    what(one) == what(other)
}

/// The table of a change, and of instruments the class.
pub fn what(change: &Change) -> &str {
    match change.table {
        Table::Instruments => class_of(&change.key[0]),
        other => other.name(),
    }
}

fn write_class(
    connection: &mut Connection,
    changes: &[Change],
    pace: &mut Pace,
) -> Result<Made, ConnectionError> {
    let begin = Instant::now();
    let (statements, longest) = send(connection, changes, pace)?;
    Ok(Made {
        what: what(&changes[0]).to_owned(),
        rows: changes.len(),
        statements,
        took: begin.elapsed(),
        longest,
        refused: refused(connection, changes)?,
    })
}

/// Writes changes without reading any row back. Returns the number of statements and the time of the longest.
///
/// # Errors
/// As [`write`].
pub(crate) fn send(
    connection: &mut Connection,
    changes: &[Change],
    pace: &mut Pace,
) -> Result<(usize, Duration), ConnectionError> {
    let (mut statements, mut longest) = (0, Duration::ZERO);
    let mut rest = changes;
    while !rest.is_empty() {
        let Some(batch) = batches(rest, pace.rows).next() else { break };
        rest = &rest[batch.changes().len()..];
        let Some(sql) = batch.sql() else { continue };
        let sent = Instant::now();
        connection.rows(&sql)?;
        let took = sent.elapsed();
        statements += 1;
        longest = longest.max(took);
        pace.heed(took);
        pace.rest(took);
    }
    Ok((statements, longest))
}

/// The rows that do not hold what was written. The server silently ignores some settings.
pub fn refused(
    connection: &mut Connection,
    changes: &[Change],
) -> Result<Vec<Change>, ConnectionError> {
    let mut refused = Vec::new();
    for of_table in changes.chunk_by(|one, other| one.table == other.table) {
        let rows = rows(connection, of_table[0].table)?;
        for change in of_table {
            let holds = rows.get(&change.key);
            // A thread that ended is no refusal.
            let is_gone = holds.is_none() && !change.table.shape().grows;
            if holds != change.after.as_ref() && !is_gone {
                refused.push(Change { before: holds.cloned(), ..change.clone() });
            }
        }
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yes_no;

    #[test]
    fn a_switch_writes_more_rows_while_it_is_quick_and_fewer_when_it_is_slow() {
        let mut pace = Pace::of_switches();
        (0..9).for_each(|_| pace.heed(SWITCH_TIME));
        assert_eq!(pace.rows, SWITCH_ROWS_MAX);
        (0..20).for_each(|_| pace.heed(2 * SWITCH_TIME));
        assert_eq!(pace.rows, 1);
        let mut first = Pace::default();
        (0..9).for_each(|_| first.heed(STATEMENT_TIME));
        assert_eq!(first.rows, ROWS_MAX);
    }

    #[test]
    fn a_statement_has_rows_of_one_class_and_not_too_many() {
        let on = |name: String| Change {
            table: Table::Instruments,
            key: vec![name],
            before: Some(yes_no(false, false)),
            after: Some(yes_no(true, true)),
        };
        let files = (0..=ROWS_MAX).map(|row| on(format!("wait/io/file/sql/{row}")));
        let socket = on("wait/io/socket/sql/client_connection".to_owned());
        let changes: Vec<Change> = files.chain([socket]).collect();
        let rows: Vec<usize> = statements(&changes).map(|one| one.changes().len()).collect();
        assert_eq!(rows, [ROWS_MAX, 1, 1]);
    }
}
