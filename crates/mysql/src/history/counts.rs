//! Compares what the server counted with what was seen.

use std::collections::BTreeMap;

use crate::connection::{Connection, ConnectionError, MARK, text};

/// Events by name since the server was started.
pub(super) type Counted = BTreeMap<String, u64>;

/// Reads how many statements of each name have ended.
pub(super) fn read(connection: &mut Connection) -> Result<Counted, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT EVENT_NAME AS {MARK}, COUNT_STAR \
         FROM performance_schema.events_statements_summary_global_by_event_name \
         WHERE COUNT_STAR > 0"
    ))?;
    Ok(rows.iter().map(|row| (text(row, 0), text(row, 1).parse().unwrap_or(0))).collect())
}

/// What was counted less what was seen.
#[derive(Debug, Default)]
pub(super) struct Counts {
    before: Counted,
    /// What was counted at the last look.
    last: Counted,
    seen: Counted,
    /// What was told to be missing.
    told: Counted,
}

impl Counts {
    pub(super) fn begin(before: Counted) -> Counts {
        Counts { last: before.clone(), before, ..Counts::default() }
    }

    /// Takes the names of events that were seen.
    pub(super) fn see<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            *self.seen.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// What was counted before the ring was read and has not been seen by now, without what was told
    /// before.
    pub(super) fn missing(&mut self, counted: &Counted) -> Counted {
        let of = |counts: &Counted, name: &str| counts.get(name).copied().unwrap_or(0);
        // If the table was truncated it restarts from 0; what has not been counted since then has
        // no row.
        let last = std::mem::replace(&mut self.last, counted.clone());
        for (name, last) in last {
            if of(counted, &name) < last {
                self.before.insert(name.clone(), of(counted, &name));
                self.seen.remove(&name);
                self.told.remove(&name);
            }
        }
        let mut missing = Counted::new();
        for (name, count) in counted {
            let counted = [&self.before, &self.seen, &self.told].map(|counts| of(counts, name));
            let known = counted.into_iter().fold(0, u64::saturating_add);
            let lost = count.saturating_sub(known);
            if lost > 0 {
                *self.told.entry(name.clone()).or_default() += lost;
                missing.insert(name.clone(), lost);
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(create: u64, drop: u64) -> Counted {
        [("create".to_owned(), create), ("drop".to_owned(), drop)].into()
    }

    #[test]
    fn what_was_counted_and_not_seen_is_missing_once() {
        let mut counts = Counts::begin(counted(5, 1));
        counts.see(["create"; 2]);
        assert_eq!(counts.missing(&counted(7, 1)), Counted::new());
        counts.see(["create"; 3]);
        assert_eq!(counts.missing(&counted(12, 4)), counted_only(2, 3));
        assert_eq!(counts.missing(&counted(12, 4)), Counted::new());
        // What ended between the counters and the ring is seen before it is counted.
        counts.see(["drop"; 1]);
        assert_eq!(counts.missing(&counted(12, 4)), Counted::new());
        assert_eq!(counts.missing(&counted(12, 5)), Counted::new());
    }

    fn counted_only(create: u64, drop: u64) -> Counted {
        counted(create, drop).into_iter().filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn a_table_that_was_emptied_begins_anew() {
        let mut counts = Counts::begin(counted(5, 5));
        assert_eq!(counts.missing(&counted(0, 5)), Counted::new());
        counts.see(["create"; 1]);
        assert_eq!(counts.missing(&counted(3, 5)), counted_only(2, 0));
    }

    #[test]
    fn what_was_seen_before_a_table_was_emptied_hides_no_later_loss() {
        let mut counts = Counts::begin(counted(0, 0));
        counts.see(["create"; 1000]);
        assert_eq!(counts.missing(&counted(1000, 0)), Counted::new());
        assert_eq!(counts.missing(&Counted::new()), Counted::new(), "it was emptied");
        assert_eq!(counts.missing(&counted(7, 0)), counted_only(7, 0));
    }
}
