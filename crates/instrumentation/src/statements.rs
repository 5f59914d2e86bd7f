//! The SQL statements that make changes.

use crate::change::Change;
use crate::table::{PAGE_COUNTERS, Shape, Table};

/// Changes that one statement can make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    changes: &'a [Change],
}

/// Splits changes into runs that one statement can make, each of `rows_max` at most. The order stays.
pub fn batches(changes: &[Change], rows_max: usize) -> impl Iterator<Item = Batch<'_>> {
    let rows_max = move |alike: &[Change]| match is_page_counter(&alike[0]) {
        // Never in parts.
        true => alike.len(),
        false => rows_max.max(1),
    };
    changes
        .chunk_by(are_alike)
        .flat_map(move |alike| alike.chunks(rows_max(alike)))
        .map(|changes| Batch { changes })
}

/// Whether the counter belongs to a group with one common switch.
fn is_page_counter(change: &Change) -> bool {
    change.table == Table::Metrics && change.key[0] == PAGE_COUNTERS
}

fn are_alike(one: &Change, other: &Change) -> bool {
    let is_update = one.before.is_some() && one.after.is_some();
    is_update
        && one.table == other.table
        && one.table != Table::Variables
        && (one.key.len() == 1 || is_page_counter(one) && is_page_counter(other))
        && assignments(one) == assignments(other)
}

/// The columns that an update writes. A setting that does not apply to a row cannot be written.
fn assignments(change: &Change) -> Vec<(&'static str, &str)> {
    let Shape { settings, .. } = change.table.shape();
    let after = change.after.iter().flatten();
    let before = change.before.iter().flatten();
    settings
        .iter()
        .zip(before.zip(after))
        .filter(|(_, (before, after))| before != after)
        .filter_map(|(column, (_, after))| Some((*column, after.as_deref()?)))
        .collect()
}

impl<'a> Batch<'a> {
    /// The changes.
    pub fn changes(&self) -> &'a [Change] {
        self.changes
    }

    /// The statement; `None` if nothing can be written.
    pub fn sql(&self) -> Option<String> {
        self.sql_of(self.changes.len())
    }

    /// The statement for people: at most `keys_max` of its keys are named.
    pub fn shortened(&self, keys_max: usize) -> Option<String> {
        self.sql_of(keys_max)
    }

    fn sql_of(&self, keys_max: usize) -> Option<String> {
        let first = self.changes.first()?;
        if first.table == Table::Metrics {
            return switch(first);
        }
        if first.table == Table::Variables {
            return set(first);
        }
        let shape = first.table.shape();
        let table = format!("performance_schema.{}", shape.name);
        match (&first.before, &first.after) {
            (None, Some(after)) => {
                let columns = [shape.key, shape.settings].concat().join(", ");
                let values = first.key.iter().map(Some).chain(after.iter().map(Option::as_ref));
                let values: Vec<String> =
                    values.map(|value| value.map_or("NULL".into(), |text| quoted(text))).collect();
                Some(format!("INSERT INTO {table} ({columns}) VALUES ({})", values.join(", ")))
            }
            (Some(_), None) => Some(format!("DELETE FROM {table} WHERE {}", self.keys(keys_max))),
            (Some(_), Some(_)) => {
                let assignments: Vec<String> = assignments(first)
                    .iter()
                    .map(|(column, value)| format!("{column} = {}", quoted(value)))
                    .collect();
                let is_empty = assignments.is_empty();
                let set = assignments.join(", ");
                let keys = self.keys(keys_max);
                (!is_empty).then(|| format!("UPDATE {table} SET {set} WHERE {keys}"))
            }
            (None, None) => None,
        }
    }

    /// The condition that names the rows.
    fn keys(&self, keys_max: usize) -> String {
        let first = &self.changes[0];
        let columns = first.table.shape().key;
        if let [column] = columns {
            // MySQL 8.0.12 does not find any `wait/synch/sxlock` by the index on the name: an
            // expression keeps it from looking there.
            let column = match first.table {
                Table::Instruments => "CONCAT(NAME)",
                _ => column,
            };
            let value = |change: &Change| match change.table {
                Table::Threads => change.key[0].clone(),
                _ => quoted(&change.key[0]),
            };
            if let [only] = self.changes {
                return format!("{column} = {}", value(only));
            }
            let mut values: Vec<String> = self.changes.iter().take(keys_max).map(value).collect();
            let hidden = self.changes.len() - values.len();
            if hidden > 0 {
                values.push(format!("/* and {hidden} more */"));
            }
            return format!("{column} IN ({})", values.join(", "));
        }
        let equal = |(column, value): (&&str, &String)| format!("{column} = {}", quoted(value));
        columns.iter().zip(&first.key).map(equal).collect::<Vec<_>>().join(" AND ")
    }
}

/// Switches a counter of InnoDB, or the page counters.
fn switch(change: &Change) -> Option<String> {
    let [(_, value)] = assignments(change)[..] else { return None };
    let verb = if value == "YES" { "enable" } else { "disable" };
    let name = switch_of(&change.key[0], &change.key[1]);
    Some(format!("SET GLOBAL innodb_monitor_{verb} = {}", quoted(name)))
}

/// Sets a global variable.
fn set(change: &Change) -> Option<String> {
    let [(_, value)] = assignments(change)[..] else { return None };
    // A number in quotes is refused.
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let value = if is_number { value.to_owned() } else { quoted(value) };
    Some(format!("SET GLOBAL {} = {value}", change.key[0]))
}

/// By what name a counter is switched.
pub fn switch_of<'a>(subsystem: &str, name: &'a str) -> &'a str {
    if subsystem == PAGE_COUNTERS { "module_buffer_page" } else { name }
}

/// A string as a literal, under a `sql_mode` in which backslashes escape.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Settings;

    fn settings(values: &[&str]) -> Settings {
        values.iter().map(|value| (*value != "-").then(|| (*value).to_owned())).collect()
    }

    fn change(
        table: Table,
        key: &[&str],
        before: Option<&[&str]>,
        after: Option<&[&str]>,
    ) -> Change {
        Change {
            table,
            key: key.iter().map(|part| (*part).to_owned()).collect(),
            before: before.map(settings),
            after: after.map(settings),
        }
    }

    fn sql(changes: &[Change]) -> Vec<String> {
        batches(changes, 2).filter_map(|batch| batch.sql()).collect()
    }

    #[test]
    fn rows_that_change_alike_are_written_together_and_in_order() {
        let on =
            |name| change(Table::Instruments, &[name], Some(&["NO", "NO"]), Some(&["YES", "YES"]));
        let counted =
            change(Table::Instruments, &["memory/x"], Some(&["NO", "-"]), Some(&["YES", "-"]));
        assert_eq!(
            sql(&[on("a"), on("b"), on("c"), counted]),
            [
                "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' \
                 WHERE CONCAT(NAME) IN ('a', 'b')",
                "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' \
                 WHERE CONCAT(NAME) = 'c'",
                "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE CONCAT(NAME) \
                 = 'memory/x'",
            ]
        );
    }

    #[test]
    fn rows_come_and_go_one_by_one() {
        let all = change(Table::Actors, &["%", "%", "%"], Some(&["YES", "YES"]), None);
        let one = change(Table::Actors, &["%", "o'x\\", "%"], None, Some(&["YES", "YES"]));
        assert_eq!(
            sql(&[all, one]),
            [
                "DELETE FROM performance_schema.setup_actors WHERE HOST = '%' AND USER = '%' AND \
                 ROLE = '%'",
                "INSERT INTO performance_schema.setup_actors (HOST, USER, ROLE, ENABLED, HISTORY) \
                 VALUES ('%', 'o''x\\\\', '%', 'YES', 'YES')",
            ]
        );
    }

    #[test]
    fn a_thread_is_named_by_its_number() {
        let off = change(Table::Threads, &["7"], Some(&["YES", "YES"]), Some(&["NO", "YES"]));
        assert_eq!(
            sql(&[off]),
            ["UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' WHERE THREAD_ID = 7"]
        );
    }

    #[test]
    fn counters_are_switched_one_by_one_and_page_counters_together() {
        let on = |key: &[&str]| change(Table::Metrics, key, Some(&["NO"]), Some(&["YES"]));
        let off = change(Table::Metrics, &["lock", "lock_timeouts"], Some(&["YES"]), Some(&["NO"]));
        let pages: Vec<Change> = ["a", "b", "c"].map(|name| on(&["buffer_page_io", name])).into();
        let changes = [vec![on(&["buffer", "x"]), on(&["buffer", "y"])], pages, vec![off]].concat();
        assert_eq!(
            sql(&changes),
            [
                "SET GLOBAL innodb_monitor_enable = 'x'",
                "SET GLOBAL innodb_monitor_enable = 'y'",
                "SET GLOBAL innodb_monitor_enable = 'module_buffer_page'",
                "SET GLOBAL innodb_monitor_disable = 'lock_timeouts'",
            ]
        );
    }

    #[test]
    fn variables_are_set_one_by_one() {
        let set = |name, before, after| {
            change(Table::Variables, &[name], Some(&[before]), Some(&[after]))
        };
        let changes = [
            set("general_log", "OFF", "ON"),
            set("slow_query_log", "OFF", "ON"),
            set("innodb_sync_spin_loops", "30", "0"),
        ];
        assert_eq!(
            sql(&changes),
            [
                "SET GLOBAL general_log = 'ON'",
                "SET GLOBAL slow_query_log = 'ON'",
                "SET GLOBAL innodb_sync_spin_loops = 0",
            ]
        );
    }

    #[test]
    fn what_does_not_apply_is_not_written() {
        let nothing = change(Table::Instruments, &["x"], Some(&["NO", "NO"]), Some(&["NO", "-"]));
        assert_eq!(sql(&[nothing]), [""; 0]);
    }
}
