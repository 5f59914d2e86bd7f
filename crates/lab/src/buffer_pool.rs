//! The buffer pool of a server that has just been started.
//!
//! It is empty, and sysbench reaches most pages of 2.4 GB only after minutes. Until then every arm reads from the disk,
//! which a server in use does not, and slower arms do it for longer. So every index is read once, from end to end.

use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

/// Every index of a schema with its first column. Those of a load are numbers from 1.
const INDEXES: &str = "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
                       WHERE SEQ_IN_INDEX = 1 AND TABLE_SCHEMA = ";

/// Reads every index of a schema, so that its pages are in the buffer pool, as far as they fit.
///
/// # Errors
/// The connection is broken, or the server refuses something.
pub fn fill(connection: &mut Connection, schema: &str) -> Result<(), ConnectionError> {
    for row in connection.rows(&format!("{INDEXES}'{schema}'"))? {
        let [table, index, column] = [0, 1, 2].map(|at| text(&row, at));
        // With a condition: without one some versions count by another index.
        connection.rows(&format!(
            "SELECT COUNT(*) FROM `{schema}`.`{table}` FORCE INDEX (`{index}`) WHERE `{column}` >= 0"
        ))?;
    }
    Ok(())
}
