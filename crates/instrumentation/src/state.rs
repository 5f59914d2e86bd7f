//! The current settings, as read from the server.

use std::collections::BTreeMap;

use waggle_model::Reading;
use waggle_mysql::connection::{Row, absent_without, optional_text, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::change::Change;
use crate::table::Table;

/// What tells a row of a table from the others: the values of its key columns.
pub type Key = Vec<String>;
/// The values of the columns of a row that may be written; `None` is NULL, where a setting does not
/// apply to the row.
pub type Settings = Vec<Option<String>>;
/// The rows of one table.
pub type Rows = BTreeMap<Key, Settings>;

/// The rows of every table of [`Table`], each as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    tables: BTreeMap<Table, Reading<Rows>>,
}

impl State {
    /// Reads the tables of [`Table::of_instrumentation`].
    ///
    /// # Errors
    /// The connection is broken. A table that this server lacks or that this account may not read is
    /// absent with its reason.
    pub fn read(connection: &mut Connection) -> Result<State, ConnectionError> {
        State::read_of(connection, Table::of_instrumentation())
    }

    /// Reads some tables; the others have no rows.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn read_of(
        connection: &mut Connection,
        tables: impl IntoIterator<Item = Table>,
    ) -> Result<State, ConnectionError> {
        let tables = tables.into_iter().map(|table| Ok((table, read(connection, table)?)));
        Ok(State { tables: tables.collect::<Result<_, ConnectionError>>()? })
    }

    /// The rows of a table; none where it is absent.
    pub fn rows(&self, table: Table) -> impl Iterator<Item = (&Key, &Settings)> {
        self.tables.get(&table).and_then(Reading::value).into_iter().flatten()
    }

    /// One row.
    pub fn row(&self, table: Table, key: &Key) -> Option<&Settings> {
        self.tables.get(&table)?.value()?.get(key)
    }

    /// The state once changes are made.
    #[must_use]
    pub fn with(&self, changes: &[Change]) -> State {
        let mut state = self.clone();
        for Change { table, key, after, .. } in changes {
            let Some(rows) = state.rows_mut(*table) else { continue };
            match after {
                Some(after) => drop(rows.insert(key.clone(), after.clone())),
                None => drop(rows.remove(key)),
            }
        }
        state
    }

    /// Why a table is absent.
    pub fn why_absent(&self, table: Table) -> Option<&str> {
        self.tables.get(&table)?.why()
    }

    /// Why a table is absent that every server has; `None` if all are there.
    pub fn why_incomplete(&self) -> Option<&str> {
        [Table::Instruments, Table::Consumers, Table::Actors, Table::Objects, Table::Threads]
            .into_iter()
            .find_map(|table| self.why_absent(table))
    }

    /// The rows of a table, to be changed; `None` if it is absent.
    pub(crate) fn rows_mut(&mut self, table: Table) -> Option<&mut Rows> {
        match self.tables.get_mut(&table)? {
            Reading::Value(rows) => Some(rows),
            Reading::Absent(_) => None,
        }
    }

    /// A state of the rows that are given.
    #[cfg(test)]
    pub(crate) fn of(tables: impl IntoIterator<Item = (Table, Rows)>) -> State {
        let present = |(table, rows)| (table, Reading::Value(rows));
        State { tables: tables.into_iter().map(present).collect() }
    }
}

/// Reads one table.
///
/// # Errors
/// The connection is broken.
pub(crate) fn read(
    connection: &mut Connection,
    table: Table,
) -> Result<Reading<Rows>, ConnectionError> {
    let rows = connection.rows(&table.select(connection.server_identity()));
    let rows = absent_without(connection, table.name(), table.right_to_read(), rows)?;
    Ok(rows.map(|rows| split(table, rows)))
}

/// Reads one table that has to be there.
///
/// # Errors
/// It may not be read, it is not there, or the connection is broken.
pub(crate) fn rows(connection: &mut Connection, table: Table) -> Result<Rows, ConnectionError> {
    Ok(split(table, connection.rows(&table.select(connection.server_identity()))?))
}

fn split(table: Table, rows: Vec<Row>) -> Rows {
    let shape = table.shape();
    let split = |row: Row| {
        let key = (0..shape.key.len()).map(|at| text(&row, at)).collect();
        // As many as the table has, whatever was answered.
        let of_settings = shape.key.len()..shape.key.len() + shape.settings.len();
        (key, of_settings.map(|at| optional_text(&row, at)).collect())
    };
    rows.into_iter().map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_too_short_or_too_long_has_a_value_for_each_setting() {
        let yes = || Some(b"YES".to_vec());
        for table in Table::ALL {
            let shape = table.shape();
            for length in 0..8 {
                let rows = split(table, vec![vec![yes(); length]]);
                let (key, settings) = rows.first_key_value().unwrap();
                assert_eq!((key.len(), settings.len()), (shape.key.len(), shape.settings.len()));
            }
        }
    }
}
