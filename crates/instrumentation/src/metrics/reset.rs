//! Giving counters a new baseline, which cannot be taken back.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, ConnectionError};

use super::Counter;
use crate::hold::{HoldError, begun};
use crate::journal::{Journal, Undoer, Undone};
use crate::statements::{quoted, switch_of};

/// A statement that somebody reads the counters with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its digest text.
    pub statement: String,
    /// How often it ran since the server counts statements.
    pub times: u64,
    /// When last, by the server's clock.
    pub last: String,
}

/// Who reads the counters, as far as Performance Schema has seen it; waggle itself is left out. Absent
/// where it is off or may not be read.
///
/// # Errors
/// The connection is broken.
pub fn readers(connection: &mut Connection) -> Result<Reading<Vec<Reader>>, ConnectionError> {
    if !connection.server_identity().performance_schema {
        return Ok(Reading::Absent("Performance Schema is off".to_owned()));
    }
    let rows = connection.rows(&format!(
        "SELECT DIGEST_TEXT AS {MARK}, COUNT_STAR, LAST_SEEN \
         FROM performance_schema.events_statements_summary_by_digest \
         WHERE LOWER(DIGEST_TEXT) LIKE '%innodb_metrics%' \
         AND LOWER(DIGEST_TEXT) NOT LIKE '%{MARK}%' \
         ORDER BY LAST_SEEN DESC"
    ));
    let reader = |row: &Vec<Option<Vec<u8>>>| Reader {
        statement: text(row, 0),
        times: text(row, 1).parse().unwrap_or(0),
        last: text(row, 2),
    };
    Ok(match absent_or(connection, "the statement table by digest", rows)? {
        Reading::Value(rows) => Reading::Value(rows.iter().map(reader).collect()),
        Reading::Absent(why) => Reading::Absent(why),
    })
}

/// Resets counters: `COUNT_RESET` and what belongs to it begin anew, `COUNT` stays. What each
/// `COUNT_RESET` held is in the journal before; where the server refuses the first, it is closed.
///
/// # Errors
/// The journal cannot be written, the server refuses, or the connection is broken.
pub fn reset(
    directory: &Path,
    connection: &mut Connection,
    command: &str,
    counters: &[Counter],
) -> Result<(), HoldError> {
    let mut journal = Journal::begin(directory, begun(connection, command)?)?;
    let held = counters.iter().map(|counter| (counter.name.clone(), counter.count_reset));
    journal.reset(held.collect::<BTreeMap<_, _>>())?;
    let mut names: Vec<&str> =
        counters.iter().map(|counter| switch_of(&counter.subsystem, &counter.name)).collect();
    names.dedup();
    for (done, name) in names.into_iter().enumerate() {
        let sent = connection.rows(&format!("SET GLOBAL innodb_monitor_reset = {}", quoted(name)));
        if let Err(error) = sent {
            if done == 0 {
                let (by, at, left_alone) = (Undoer::Command, Timestamp::now(), Vec::new());
                journal.close(Undone { by, at, left_alone })?;
            }
            return Err(error.into());
        }
    }
    Ok(())
}
