//! The existing threads.

use waggle_mysql::connection::{MARK, optional_text, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::filter::Session;

/// Reads every thread of the server. Those of clients that are about to leave may be missing.
///
/// # Errors
/// The connection is broken, or the table may not be read.
pub fn read(connection: &mut Connection) -> Result<Vec<Session>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT THREAD_ID AS {MARK}, NAME, PROCESSLIST_USER, PROCESSLIST_HOST, TYPE \
         FROM performance_schema.threads"
    ))?;
    let session = |row: &Vec<Option<Vec<u8>>>| {
        let is_client = text(row, 4) == "FOREGROUND" && optional_text(row, 2).is_some();
        Some(Session {
            thread: text(row, 0).parse().ok()?,
            name: text(row, 1),
            user: optional_text(row, 2).filter(|_| is_client),
            host: optional_text(row, 3).filter(|_| is_client),
        })
    };
    Ok(rows.iter().filter_map(session).collect())
}
