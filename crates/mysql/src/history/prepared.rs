//! Prepared statements that are there now.

use waggle_model::Reading;

use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, optional_text, text};

/// A row of `prepared_statements_instances`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedStatement {
    /// The thread that prepared it.
    pub thread: u64,
    /// The event that prepared it: with the thread it names one statement, also where its name was
    /// used again.
    pub event: u64,
    /// The name, in lower case.
    pub name: String,
    /// The text.
    pub text: Option<Vec<u8>>,
}

/// Reads those that have a name. Where the table cannot be read there are none.
pub(super) fn read(connection: &mut Connection) -> Result<Vec<PreparedStatement>, ConnectionError> {
    let table = "performance_schema.prepared_statements_instances";
    let rows = connection.rows(&format!(
        "SELECT OWNER_THREAD_ID AS {MARK}, OWNER_EVENT_ID, STATEMENT_NAME, SQL_TEXT FROM {table} \
         WHERE STATEMENT_NAME IS NOT NULL"
    ));
    let Reading::Value(rows) = absent_or(connection, table, rows)? else { return Ok(Vec::new()) };
    let statement = |row: &Row| PreparedStatement {
        thread: text(row, 0).parse().unwrap_or(0),
        event: optional_text(row, 1).and_then(|id| id.parse().ok()).unwrap_or(0),
        name: text(row, 2).to_lowercase(),
        text: row.get(3).cloned().flatten(),
    };
    Ok(rows.iter().map(statement).collect())
}
