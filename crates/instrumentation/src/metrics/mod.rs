//! The counters of InnoDB (`information_schema.INNODB_METRICS`).
//!
//! The table says whether a counter is on. The variables `innodb_monitor_*` do not: they show the
//! last value written to them. Counts are differences of `COUNT`. The server's own reset is only for
//! users who ask for it ([`reset`]).

pub mod gauge;
pub mod modules;
pub mod reset;
pub mod sample;
pub mod selection;

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, Row, absent_without, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::table::{Table, enabled_of_metrics};

/// A counter as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// `NAME`.
    pub name: String,
    /// `SUBSYSTEM`, in small letters: some servers write `Buffer` in two rows.
    pub subsystem: String,
    /// What switches it together with its kind; `None` if no module does.
    pub module: Option<&'static str>,
    /// Whether it counts.
    pub enabled: bool,
    /// `TYPE`: `counter`, `value`, `status_counter`, `set_owner` or `set_member`.
    pub kind: String,
    /// `COUNT`. It can be negative.
    pub count: i64,
    /// `COUNT_RESET`: since somebody reset it. It can be negative.
    pub count_reset: i64,
    /// `COMMENT`.
    pub comment: String,
}

/// Reads every counter, in the order of the table.
///
/// # Errors
/// The connection is broken. Where the right is missing the counters are absent with the `GRANT`.
pub fn read(connection: &mut Connection) -> Result<Reading<Vec<Counter>>, ConnectionError> {
    let enabled = enabled_of_metrics(connection.server_identity());
    let rows = connection.rows(&format!(
        "SELECT NAME AS {MARK}, SUBSYSTEM, {enabled}, TYPE, COUNT, COUNT_RESET, COMMENT \
         FROM information_schema.INNODB_METRICS"
    ));
    let (name, right) = (Table::Metrics.name(), Table::Metrics.right_to_read());
    let counter = |row: &Row| {
        let (name, subsystem) = (text(row, 0), text(row, 1).to_ascii_lowercase());
        Counter {
            module: modules::module_of(&subsystem, &name),
            name,
            subsystem,
            enabled: text(row, 2) == "YES",
            kind: text(row, 3),
            count: text(row, 4).parse().unwrap_or(0),
            count_reset: text(row, 5).parse().unwrap_or(0),
            comment: text(row, 6),
        }
    };
    Ok(match absent_without(connection, name, right, rows)? {
        Reading::Value(rows) => Reading::Value(rows.iter().map(counter).collect()),
        Reading::Absent(why) => Reading::Absent(why),
    })
}
