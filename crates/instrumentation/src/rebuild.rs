//! Rebuilds `setup_objects` on servers that cannot remove one of its rows.
//!
//! MySQL 5.7 and MariaDB remove the row of the *table* with that schema and name, whatever
//! `OBJECT_TYPE` a `DELETE` names, and report success (seen on 5.7.22, 10.11.19 and 11.4.5;
//! `table_setup_objects::delete_row_values` always passes on `OBJECT_TYPE_TABLE`). The row of
//! anything but a table can only be removed together with all others, by `TRUNCATE`.

use waggle_model::Flavour;
use waggle_mysql::{Connection, ServerIdentity, rights};

use crate::change::Change;
use crate::hold::HoldError;
use crate::state::State;
use crate::table::Table;

/// Removes every row. No server writes it to its binary log.
pub(crate) const EMPTY: &str = "TRUNCATE TABLE performance_schema.setup_objects";
/// The first MySQL that removes the named row.
const MENDED_IN_MYSQL: [u32; 3] = [8, 0, 0];

/// Whether rows are added or removed that cannot be removed alone.
pub(crate) fn is_needed(changes: &[Change], server: &ServerIdentity) -> bool {
    let number = server.server_version().number;
    let comes_or_goes = |change: &Change| {
        let is_update = change.before.is_some() && change.after.is_some();
        change.table == Table::Objects && change.key[0] != "TABLE" && !is_update
    };
    (server.flavour == Flavour::Mariadb || number < MENDED_IN_MYSQL)
        && changes.iter().any(comes_or_goes)
}

/// Refuses changes that this account could make and not take back.
///
/// # Errors
/// It may not empty the table, or the connection is broken.
pub(crate) fn check(connection: &mut Connection, changes: &[Change]) -> Result<(), HoldError> {
    if !is_needed(changes, connection.server_identity()) {
        return Ok(());
    }
    // What TRUNCATE needs.
    let (right, table) = ("DROP", "performance_schema.setup_objects");
    match rights::has(connection, right, &["*.*", "performance_schema.*", table])? {
        true => Ok(()),
        false => {
            let grant = connection.server_identity().grant(&format!("{right} ON {table}"));
            Err(HoldError::NoWayBack { grant })
        }
    }
}

/// The rows that are to be there, as if each came: `now` with what leads back.
pub(crate) fn rows(now: &State, back: &[Change]) -> Vec<Change> {
    let after = now.with(back);
    let comes = |(key, settings): (&Vec<String>, &Vec<Option<String>>)| Change {
        table: Table::Objects,
        key: key.clone(),
        before: None,
        after: Some(settings.clone()),
    };
    after.rows(Table::Objects).map(comes).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::plan::yes_no;

    fn server(flavour: Flavour, version: &str) -> ServerIdentity {
        ServerIdentity {
            version: version.to_owned(),
            flavour,
            port: None,
            connection_id: 1,
            account: "a@b".to_owned(),
            performance_schema: true,
            thread_per_connection: true,
        }
    }

    fn change(kind: &str, before: Option<bool>, after: Option<bool>) -> Change {
        Change {
            table: Table::Objects,
            key: [kind, "one", "%"].map(str::to_owned).to_vec(),
            before: before.map(|on| yes_no(on, on)),
            after: after.map(|on| yes_no(on, on)),
        }
    }

    #[test]
    fn only_programs_that_come_or_go_on_old_servers_need_it() {
        let old = server(Flavour::Mysql, "5.7.22");
        let comes = change("EVENT", None, Some(true));
        assert!(is_needed(from_ref(&comes), &old) && is_needed(&[comes.inverse()], &old));
        assert!(is_needed(from_ref(&comes), &server(Flavour::Mariadb, "11.4.5-MariaDB")));
        assert!(!is_needed(&[comes], &server(Flavour::Mysql, "8.0.12")));
        let others = [change("TABLE", None, Some(true)), change("EVENT", Some(true), Some(false))];
        assert!(!is_needed(&others, &old));
    }

    #[test]
    fn what_is_to_be_is_what_is_with_what_leads_back() {
        let key = |kind: &str| [kind, "one", "%"].map(str::to_owned).to_vec();
        let now = State::of([(
            Table::Objects,
            [(key("EVENT"), yes_no(true, true)), (key("TABLE"), yes_no(false, false))].into(),
        )]);
        let back = [change("EVENT", Some(true), None), change("TABLE", Some(false), Some(true))];
        assert_eq!(rows(&now, &back), [change("TABLE", None, Some(true))]);
    }
}
