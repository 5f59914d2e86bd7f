//! The difference between two states, row by row.

use serde::{Deserialize, Serialize};

use crate::state::{Key, Settings, State};
use crate::table::Table;

/// One row that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The table.
    pub table: Table,
    /// Which row.
    pub key: Key,
    /// Its value before; `None` for a new row.
    pub before: Option<Settings>,
    /// Its value after; `None` for a removed row.
    pub after: Option<Settings>,
}

impl Change {
    /// The change that takes this one back.
    #[must_use]
    pub fn inverse(&self) -> Change {
        Change { before: self.after.clone(), after: self.before.clone(), ..self.clone() }
    }
}

/// The changes that lead from one state to another, in the order of [`Table::ALL`]. In a table that
/// cannot grow, a row that only one state has is not a change: threads come and go.
pub fn difference(from: &State, to: &State) -> Vec<Change> {
    Table::ALL.into_iter().flat_map(|table| difference_of(table, from, to)).collect()
}

fn difference_of(table: Table, from: &State, to: &State) -> Vec<Change> {
    let change = |key: &Key, before: Option<&Settings>, after: Option<&Settings>| Change {
        table,
        key: key.clone(),
        before: before.cloned(),
        after: after.cloned(),
    };
    let grows = table.shape().grows;
    let mut changes = Vec::new();
    for (key, before) in from.rows(table) {
        let after = to.row(table, key);
        if after != Some(before) && (after.is_some() || grows) {
            changes.push(change(key, Some(before), after));
        }
    }
    for (key, after) in to.rows(table) {
        if grows && from.row(table, key).is_none() {
            changes.push(change(key, None, Some(after)));
        }
    }
    changes
}
