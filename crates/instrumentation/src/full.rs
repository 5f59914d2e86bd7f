//! Setup tables with fewer free rows than a plan needs.

use std::collections::BTreeMap;

use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

use crate::change::Change;
use crate::state::State;
use crate::table::Table;

/// The tables whose size a variable of the server's start limits.
const LIMITED: [Table; 2] = [Table::Actors, Table::Objects];

/// The tables that cannot hold the rows that changes leave in them, each with the reason.
///
/// # Errors
/// The connection is broken.
pub fn full(
    connection: &mut Connection,
    state: &State,
    changes: &[Change],
) -> Result<Vec<(String, String)>, ConnectionError> {
    if !changes.iter().any(|change| change.before.is_none()) {
        return Ok(Vec::new());
    }
    let sql = "SHOW GLOBAL VARIABLES LIKE 'performance\\_schema\\_setup\\_%\\_size'";
    let rows = connection.rows(sql)?;
    let sizes: Sizes = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
    Ok(too_small(state, changes, &sizes))
}

/// The variables, and what they hold.
type Sizes = BTreeMap<String, String>;

fn too_small(state: &State, changes: &[Change], sizes: &Sizes) -> Vec<(String, String)> {
    let after = state.with(changes);
    let is_too_small = |table: Table| {
        let variable = format!("performance_schema_{}_size", table.name());
        // -1: no limit.
        let size: usize = sizes.get(&variable)?.parse().ok()?;
        let rows = after.rows(table).count();
        let why = format!(
            "it would hold {rows} rows, and {variable} allows {size}; name fewer accounts or objects, \
             or raise that variable in the server's option file and restart it"
        );
        (rows > size).then(|| (table.name().to_owned(), why))
    };
    LIMITED.into_iter().filter_map(is_too_small).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yes_no;

    #[test]
    fn a_table_is_too_small_for_more_rows_than_its_variable_allows() {
        let key = |user: &str| ["%", user, "%"].map(str::to_owned).to_vec();
        let on = || Some(yes_no(true, true));
        let state = State::of([(Table::Actors, [(key("%"), yes_no(true, true))].into())]);
        let change = |user, before, after| {
            let key = key(user);
            Change { table: Table::Actors, key, before, after }
        };
        // One goes, and two come.
        let changes = [change("%", on(), None), change("a", None, on()), change("b", None, on())];
        let of = |size: &str| {
            let size = ("performance_schema_setup_actors_size".to_owned(), size.to_owned());
            too_small(&state, &changes, &Sizes::from([size]))
        };
        for enough in ["-1", "2", "100"] {
            assert!(of(enough).is_empty(), "{enough}: {:?}", of(enough));
        }
        let (table, why) = of("1").remove(0);
        assert_eq!(table, "setup_actors");
        assert!(why.contains("2 rows") && why.contains("setup_actors_size allows 1"), "{why}");
        assert!(too_small(&state, &changes, &Sizes::new()).is_empty(), "it is not known");
    }
}
