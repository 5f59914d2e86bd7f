//! How many events each class has counted.

use std::collections::BTreeMap;

use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::class::class_of;

/// The tables that count events by the name of the instrument, with the column that counts.
const TABLES: [(&str, &str); 6] = [
    ("events_waits_summary_global_by_event_name", "COUNT_STAR"),
    ("events_stages_summary_global_by_event_name", "COUNT_STAR"),
    ("events_statements_summary_global_by_event_name", "COUNT_STAR"),
    ("events_transactions_summary_global_by_event_name", "COUNT_STAR"),
    ("memory_summary_global_by_event_name", "COUNT_ALLOC"),
    ("events_errors_summary_global_by_error", "SUM_ERROR_RAISED"),
];

/// Events so far, by the name of the instrument. Errors count under `error`.
pub type Events = BTreeMap<String, u64>;

/// Reads how many events every instrument has counted since the server was started or its tables were
/// emptied. A table that this server lacks adds nothing.
///
/// # Errors
/// The connection is broken, or the account may not read the tables: then with the `GRANT` to run.
pub fn read(connection: &mut Connection) -> Result<Reading<Events>, ConnectionError> {
    let mut events = Events::new();
    for (table, column) in TABLES {
        let name = if column == "SUM_ERROR_RAISED" { "'error'" } else { "EVENT_NAME" };
        let rows = connection.rows(&format!(
            "SELECT {name} AS {MARK}, {column} FROM performance_schema.{table} WHERE {column} > 0"
        ));
        let rows = match absent_or(connection, &format!("performance_schema.{table}"), rows)? {
            Reading::Value(rows) => rows,
            Reading::Absent(_) if table != TABLES[0].0 => continue,
            Reading::Absent(why) => return Ok(Reading::Absent(why)),
        };
        for row in &rows {
            *events.entry(text(row, 0)).or_default() += text(row, 1).parse::<u64>().unwrap_or(0);
        }
    }
    Ok(Reading::Value(events))
}

/// Events between two readings, by class. Where a table was emptied meanwhile its classes begin anew.
pub fn by_class(earlier: &Events, later: &Events) -> BTreeMap<String, u64> {
    let mut classes = BTreeMap::new();
    for (name, count) in later {
        let since = earlier.get(name).map_or(*count, |before| count.saturating_sub(*before));
        *classes.entry(class_of(name).to_owned()).or_default() += since;
    }
    classes
}
