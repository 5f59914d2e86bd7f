//! The prepared statements that exist now.

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
    /// The text; where the server may have cut it, it ends in three points, as that of an event does.
    pub text: Option<Vec<u8>>,
}

/// Bytes of a text that the table keeps, whatever is set (`m_sqltext` in
/// `storage/perfschema/pfs_prepared_stmt.h`; `COL_INFO_SIZE`).
const TEXT_MAX: usize = 1024;
/// The part of a letter at its end is left out, bytes at most.
const LETTER_PART_MAX: usize = 3;

/// Reads the named ones; none if the table cannot be read.
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
        text: row.get(3).cloned().flatten().map(with_points),
    };
    Ok(rows.iter().map(statement).collect())
}

/// A text that may have been cut gets the points that the server writes in the tables of events only.
fn with_points(mut text: Vec<u8>) -> Vec<u8> {
    if text.len() + LETTER_PART_MAX >= TEXT_MAX {
        text.extend_from_slice(b"...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fills_its_place_may_be_cut() {
        let kept = |text: &str| String::from_utf8(with_points(text.into())).unwrap();
        assert_eq!(kept("DROP TABLE t"), "DROP TABLE t");
        assert_eq!(kept(&"x".repeat(TEXT_MAX)), "x".repeat(TEXT_MAX) + "...");
        // Of three bytes each: 341 of them and a part of the next.
        assert_eq!(kept(&"語".repeat(341)), "語".repeat(341) + "...");
        assert_eq!(kept(&"語".repeat(340)), "語".repeat(340));
    }
}
