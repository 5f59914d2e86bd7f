//! The events that each class has counted.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::class::class_of;
use crate::plan::is_on;
use crate::state::State;
use crate::table::Table;

/// The tables that count events by the name of the instrument, with the column that counts.
const TABLES: [(&str, &str); 6] = [
    ("events_waits_summary_global_by_event_name", "COUNT_STAR"),
    ("events_stages_summary_global_by_event_name", "COUNT_STAR"),
    ("events_statements_summary_global_by_event_name", "COUNT_STAR"),
    ("events_transactions_summary_global_by_event_name", "COUNT_STAR"),
    ("memory_summary_global_by_event_name", "COUNT_ALLOC"),
    ("events_errors_summary_global_by_error", "SUM_ERROR_RAISED"),
];

/// Events so far, by the name of the instrument. Errors count under `error`.
pub type Events = BTreeMap<String, u64>;

/// Reads how many events each instrument has counted since the server started or its tables were
/// truncated. A table that this server lacks adds nothing.
///
/// # Errors
/// The connection is broken, or the account may not read the tables: then with the `GRANT` to run.
pub fn read(connection: &mut Connection) -> Result<Reading<Events>, ConnectionError> {
    let mut events = Events::new();
    for (table, column) in TABLES {
        let name = if column == "SUM_ERROR_RAISED" { "'error'" } else { "EVENT_NAME" };
        let rows = connection.rows(&format!(
            "SELECT {name} AS {MARK}, {column} FROM performance_schema.{table} WHERE {column} > 0"
        ));
        let is_denied = rows.as_ref().is_err_and(ConnectionError::is_access_denied);
        let rows = match absent_or(connection, &format!("performance_schema.{table}"), rows)? {
            Reading::Value(rows) => rows,
            Reading::Absent(why) if is_denied || table == TABLES[0].0 => {
                return Ok(Reading::Absent(why));
            }
            Reading::Absent(_) => continue,
        };
        for row in &rows {
            let sum = events.entry(text(row, 0)).or_default();
            *sum = sum.saturating_add(text(row, 1).parse().unwrap_or(0));
        }
    }
    Ok(Reading::Value(events))
}

/// Events between two readings, by the name of the instrument. If a table was truncated meanwhile,
/// its instruments restart from 0.
pub fn difference(earlier: &Events, later: &Events) -> Events {
    let since = |(name, count): (&String, &u64)| {
        let since = earlier.get(name).map_or(*count, |before| count.saturating_sub(*before));
        (name.clone(), since)
    };
    later.iter().map(since).collect()
}

/// The same by class.
pub fn by_class(earlier: &Events, later: &Events) -> BTreeMap<String, u64> {
    let mut classes = BTreeMap::new();
    for (name, count) in difference(earlier, later) {
        let sum: &mut u64 = classes.entry(class_of(&name).to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
    classes
}

/// What a class of instruments does while changes hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Proof {
    /// The class.
    pub class: String,
    /// How many of its instruments are on.
    pub enabled: u64,
    /// Events that it counted meanwhile.
    pub events: u64,
    /// Whether that is as it should be.
    pub verdict: Verdict,
}

/// Whether a class does what was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is on, and counts.
    Counts,
    /// It is on, but no event happened.
    Silent,
    /// It is off, and counts nothing but what had begun before in a thread.
    Still,
    /// It, or one of its instruments, is off but counts.
    CountsThoughOff,
}

/// Whether every class does what is set, by its events between two readings.
pub fn prove(state: &State, earlier: &Events, later: &Events) -> Vec<Proof> {
    let counted = by_class(earlier, later);
    let by_name = difference(earlier, later);
    let threads = state.rows(Table::Threads).count() as u64;
    let mut enabled: BTreeMap<&str, u64> = BTreeMap::new();
    // Classes of which one part is on, and a part that is off counts.
    let mut wrong: BTreeSet<&str> = BTreeSet::new();
    for (key, settings) in state.rows(Table::Instruments) {
        let (class, is_on) = (class_of(&key[0]), is_on(&settings[0]));
        *enabled.entry(class).or_default() += u64::from(is_on);
        if !is_on && by_name.get(&key[0]).is_some_and(|events| *events > threads) {
            wrong.insert(class);
        }
    }
    let proof = |(class, enabled): (&str, u64)| {
        let events = counted.get(class).copied().unwrap_or(0);
        let verdict = match enabled {
            0 if events > threads => Verdict::CountsThoughOff,
            _ if wrong.contains(class) => Verdict::CountsThoughOff,
            0 => Verdict::Still,
            _ if events > 0 => Verdict::Counts,
            _ => Verdict::Silent,
        };
        Proof { class: class.to_owned(), enabled, events, verdict }
    };
    enabled.into_iter().map(proof).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_judged_by_what_is_set_and_what_it_counts() {
        let setting = |on: &str| vec![Some(on.to_owned()), Some(on.to_owned())];
        let row = |name: &str, on| (vec![name.to_owned()], setting(on));
        let state = State::of([
            (
                Table::Instruments,
                [
                    row("idle", "YES"),
                    row("stage/sql/a", "YES"),
                    row("stage/sql/b", "NO"),
                    row("statement/sql/select", "NO"),
                    row("transaction", "NO"),
                    row("wait/io/file/sql/x", "NO"),
                ]
                .into(),
            ),
            (Table::Threads, [row("1", "YES"), row("2", "YES")].into()),
        ]);
        let events = |counts: &[(&str, u64)]| -> Events {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let earlier =
            events(&[("stage/sql/a", 5), ("statement/sql/select", 7), ("transaction", 9)]);
        let later = events(&[
            ("stage/sql/a", 6),
            ("statement/sql/select", 9),
            ("transaction", 9),
            ("wait/io/file/sql/x", 3),
        ]);
        let proofs = prove(&state, &earlier, &later);
        let verdicts: Vec<_> = proofs.iter().map(|p| (p.class.as_str(), p.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                ("idle", Verdict::Silent),
                ("stage", Verdict::Counts),
                ("statement", Verdict::Still),
                ("transaction", Verdict::Still),
                ("wait/io/file", Verdict::CountsThoughOff),
            ]
        );
    }
}
