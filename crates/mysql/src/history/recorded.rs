//! What is recorded, and whether that still holds.

use std::collections::BTreeMap;

use crate::connection::{Connection, ConnectionError, MARK, text};

/// The consumers that feed the ring. `events_statements_history` feeds a table that is not read.
const CONSUMERS: [&str; 4] = [
    "global_instrumentation",
    "thread_instrumentation",
    "events_statements_current",
    "events_statements_history_long",
];
/// What an audit cannot be without, whatever else it records.
const INSTRUMENT: &str = "statement/sql/create_table";

/// The consumers and instruments that are on, and whether they are timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded(BTreeMap<String, bool>);

impl Recorded {
    /// Reads what is on.
    pub(super) fn read(connection: &mut Connection) -> Result<Recorded, ConnectionError> {
        let consumers = CONSUMERS.map(|name| format!("'{name}'")).join(", ");
        // A consumer has no timer.
        let rows = connection.rows(&format!(
            "SELECT NAME AS {MARK}, ENABLED FROM performance_schema.setup_consumers \
             WHERE ENABLED = 'YES' AND NAME IN ({consumers}) \
             UNION ALL SELECT NAME, TIMED FROM performance_schema.setup_instruments \
             WHERE ENABLED = 'YES' AND NAME LIKE 'statement/%'"
        ))?;
        Ok(Recorded(rows.iter().map(|row| (text(row, 0), text(row, 1) == "YES")).collect()))
    }

    /// With what is needed in any case: where that is off it is found at the next look.
    pub(super) fn with_what_is_needed(mut self) -> Recorded {
        for name in CONSUMERS.into_iter().chain([INSTRUMENT]) {
            self.0.entry(name.to_owned()).or_insert(true);
        }
        self
    }

    /// What is not on any more, or not timed, in words; `None` if all is as it was.
    pub(super) fn switched_off(&self, now: &Recorded) -> Option<String> {
        self.0.iter().find_map(|(name, is_timed)| match now.0.get(name) {
            None => Some(name.clone()),
            Some(false) if *is_timed => Some(format!("the timing of {name}")),
            Some(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(of: &[(&str, bool)]) -> Recorded {
        let all = of.iter().map(|(name, is_timed)| ((*name).to_owned(), *is_timed));
        Recorded(all.collect()).with_what_is_needed()
    }

    #[test]
    fn every_row_that_was_on_must_stay_so() {
        let begin =
            recorded(&[("statement/abstract/Query", true), ("statement/com/Execute", false)]);
        assert_eq!(begin.switched_off(&begin), None);
        let more = recorded(&[
            ("statement/abstract/Query", true),
            ("statement/com/Execute", true),
            ("statement/sql/select", true),
        ]);
        assert_eq!(begin.switched_off(&more), None);
        let off = recorded(&[("statement/com/Execute", true)]);
        assert_eq!(begin.switched_off(&off).as_deref(), Some("statement/abstract/Query"));
        let untimed =
            recorded(&[("statement/abstract/Query", false), ("statement/com/Execute", false)]);
        let timing = Some("the timing of statement/abstract/Query");
        assert_eq!(begin.switched_off(&untimed).as_deref(), timing);
    }

    #[test]
    fn what_was_off_at_the_beginning_is_found_too() {
        let off = Recorded(BTreeMap::new());
        let begin = off.clone().with_what_is_needed();
        assert_eq!(begin.switched_off(&off).as_deref(), Some("events_statements_current"));
    }
}
