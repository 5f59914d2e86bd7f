//! The schema of the load on a server in use.
//!
//! A table in it says which run made it. A run that uses it holds a lock of the same name (`GET_LOCK`), which ends with its
//! session. So a schema with that table and without the lock was left by a run that was killed.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, ConnectionError};

use super::denied;
use crate::error::LabError;

/// Its name, and that of the lock.
pub(crate) const SCHEMA: &str = "waggle_lab";
/// How long a server may take to notice that the run before was killed, s.
const LOCK_S: u32 = 10;
/// The table that says which run made it.
const MARK_TABLE: &str = "waggle_run";
/// The beginning of the names of the tables of sysbench.
const TABLES: &str = "sbtest";

/// Takes the lock, and drops the schema of a run that was killed. Gives the name of that run.
pub(super) fn claim(connection: &mut Connection) -> Result<Option<String>, LabError> {
    let locked = connection.rows(&format!("SELECT GET_LOCK('{SCHEMA}', {LOCK_S}) AS {MARK}"))?;
    if locked.first().map(|row| text(row, 0)).as_deref() != Some("1") {
        let other =
            format!("another waggle lab run loads this server in schema {SCHEMA}: wait for it");
        return Err(LabError::Cannot(other));
    }
    let there = connection.rows(&format!(
        "SELECT SCHEMA_NAME AS {MARK} FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{SCHEMA}'"
    ))?;
    if there.is_empty() {
        return Ok(None);
    }
    let tables = connection.rows(&format!(
        "SELECT TABLE_NAME AS {MARK} FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'"
    ))?;
    let tables: Vec<String> = tables.iter().map(|row| text(row, 0)).collect();
    if tables.is_empty() {
        return Err(LabError::Cannot(format!(
            "there is an empty schema {SCHEMA}; nothing was changed: drop it (a run that was killed at its begin may have left it)"
        )));
    }
    if !are_ours(&tables) {
        return Err(LabError::Cannot(format!(
            "there is a schema {SCHEMA} that waggle did not make, or in which there is more than \
             waggle made; nothing was changed: move its tables elsewhere and drop it"
        )));
    }
    let run = connection.rows(&format!("SELECT run AS {MARK} FROM {SCHEMA}.{MARK_TABLE}"))?;
    drop_it(connection)?;
    Ok(Some(run.first().map(|row| text(row, 0)).unwrap_or_default()))
}

/// Makes it.
pub(super) fn create(connection: &mut Connection) -> Result<(), LabError> {
    let made = connection.rows(&format!("CREATE DATABASE {SCHEMA}"));
    made.map(drop).map_err(|error| refused(connection, error))
}

/// Writes into it which run made it.
pub(super) fn mark(connection: &mut Connection, run: &Path) -> Result<(), LabError> {
    let mut name = String::new();
    for byte in run.as_os_str().as_bytes() {
        // Writing to memory cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    for statement in [
        format!("CREATE TABLE {SCHEMA}.{MARK_TABLE} (id INT PRIMARY KEY, run BLOB)"),
        format!("INSERT INTO {SCHEMA}.{MARK_TABLE} VALUES (1, X'{name}')"),
    ] {
        let made = connection.rows(&statement);
        made.map(drop).map_err(|error| refused(connection, error))?;
    }
    Ok(())
}

fn refused(connection: &Connection, error: ConnectionError) -> LabError {
    let (what, right) = (format!("make schema {SCHEMA}"), format!("ALL ON {SCHEMA}.*"));
    denied(connection, &what, &right, error)
}

/// Drops it. It was made by this run, or by one that was killed.
pub(super) fn drop_it(connection: &mut Connection) -> Result<(), LabError> {
    connection.rows(&format!("DROP DATABASE {SCHEMA}"))?;
    Ok(())
}

/// Whether tables are those of a load and its mark, and nothing else.
fn are_ours(tables: &[String]) -> bool {
    let is_of_load = |name: &str| {
        let number = name.strip_prefix(TABLES).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    tables.iter().any(|name| name == MARK_TABLE)
        && tables.iter().all(|name| name == MARK_TABLE || is_of_load(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_ours_with_the_mark_and_without_a_table_of_somebody_else() {
        let are =
            |names: &[&str]| are_ours(&names.iter().map(|&name| name.into()).collect::<Vec<_>>());
        assert!(are(&["waggle_run"]) && are(&["sbtest1", "waggle_run", "sbtest10"]));
        assert!(!are(&[]) && !are(&["sbtest1"]));
        assert!(!are(&["waggle_run", "orders"]) && !are(&["waggle_run", "sbtest"]));
        assert!(!are(&["waggle_run", "sbtest1_old"]));
    }
}
