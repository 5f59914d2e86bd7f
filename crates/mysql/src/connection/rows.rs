//! Reads the rows of a result.

use waggle_model::Reading;

use super::{Connection, ConnectionError, Row};

/// `ER_NO_SUCH_TABLE` and `ER_UNKNOWN_TABLE`.
const NO_SUCH_TABLE: [u16; 2] = [1146, 1109];

/// A column as text; empty if it is NULL.
pub fn text(row: &Row, at: usize) -> String {
    optional_text(row, at).unwrap_or_default()
}

/// A column as text; `None` if it is NULL.
pub fn optional_text(row: &Row, at: usize) -> Option<String> {
    row.get(at)?.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Turns a missing table of Performance Schema, or the right to read it, into an absence that says
/// what to do.
///
/// # Errors
/// Every other error stays one.
pub fn absent_or(
    connection: &Connection,
    what: &str,
    rows: Result<Vec<Row>, ConnectionError>,
) -> Result<Reading<Vec<Row>>, ConnectionError> {
    absent_without(connection, what, "SELECT ON performance_schema.*", rows)
}

/// Turns a missing table or right into an absence that says what to do. `right` is what `GRANT` needs
/// to be told, such as `PROCESS ON *.*`.
///
/// # Errors
/// Every other error stays one.
pub fn absent_without(
    connection: &Connection,
    what: &str,
    right: &str,
    rows: Result<Vec<Row>, ConnectionError>,
) -> Result<Reading<Vec<Row>>, ConnectionError> {
    match rows {
        Ok(rows) => Ok(Reading::Value(rows)),
        Err(error) if error.is_access_denied() => {
            let server = connection.server_identity();
            let (account, grant) = (&server.account, server.grant(right));
            Ok(Reading::Absent(format!("account {account} may not read {what}; run {grant}")))
        }
        Err(error) if error.number().is_some_and(|number| NO_SUCH_TABLE.contains(&number)) => {
            Ok(Reading::Absent(format!("this server does not have {what}")))
        }
        Err(error) => Err(error),
    }
}
