//! What a server counted of its own work: evidence that an arm was set while it was measured.

use std::collections::BTreeMap;

use waggle_instrumentation::activity::{Events, difference};
use waggle_instrumentation::metrics::Counter;

use crate::error::LabError;
use crate::measured_server::{Lost, MeasuredServer};
use crate::suite::{Scenario, Under, counter_disproof};

/// Objects that Performance Schema does not instrument for lack of room. They make no events as long as they exist: prepared
/// statements from the login of their session on, tables and indexes from when they are opened.
const OF_INSTANCES: [&str; 5] = [
    "_instances_lost",
    "_handles_lost",
    "_prepared_statements_lost",
    "_table_lock_stat_lost",
    "_index_stat_lost",
];
/// Counters that grow although there is room for all events. Attributes of a login are no events, and a digest without room
/// is counted among the others. A file of the redo log counts as lost if it got its next name while its class was off, as
/// turns switch it: with 141 of 4,096 places in use 24 were lost in half a minute (MySQL 9.7).
const NO_WANT_OF_ROOM: [&str; 3] = [
    "Performance_schema_session_connect_attrs_lost",
    "Performance_schema_digest_lost",
    "Performance_schema_file_instances_lost",
];

/// What was counted so far.
pub(crate) struct Counted {
    /// `None` where Performance Schema is off.
    events: Option<Events>,
    counters: Vec<Counter>,
    /// Sessions, those of others among them: an event that began before its class was off still counts.
    sessions: u32,
    /// What Performance Schema has lost.
    lost: Lost,
}

/// What was counted in all turns of a window.
#[derive(Default)]
pub(crate) struct Evidence {
    /// `None` where they cannot be read.
    events: Option<Events>,
    /// Whether a counter was on, and what it changed by.
    counters: BTreeMap<String, (bool, u64)>,
    sessions: u32,
    turns: u32,
    lost: Lost,
}

impl Counted {
    /// Reads it: Performance Schema, and the counters of InnoDB of these names.
    pub(crate) fn so_far(
        server: &mut MeasuredServer<'_>,
        counters: &[String],
    ) -> Result<Counted, LabError> {
        let (sessions, lost) = server.sessions_and_lost()?;
        Ok(Counted {
            sessions,
            lost,
            events: server.events()?,
            counters: server.counters(counters)?,
        })
    }
}

impl Evidence {
    /// Adds a turn. The server had lost `first` before the load logged in.
    pub(crate) fn add(&mut self, first: &Lost, earlier: &Counted, later: &Counted) {
        if let (Some(earlier), Some(later)) = (&earlier.events, &later.events) {
            let all = self.events.get_or_insert_default();
            for (name, events) in difference(earlier, later) {
                *all.entry(name).or_default() += events;
            }
        }
        for (before, counter) in earlier.counters.iter().zip(&later.counters) {
            let (is_on, change) = self.counters.entry(counter.name.clone()).or_default();
            *is_on = counter.enabled;
            *change += counter.count.abs_diff(before.count);
        }
        for (name, now) in lost(first, &earlier.lost, &later.lost) {
            let is_of_load = is_of_instances(&name);
            let all = self.lost.entry(name).or_default();
            *all = if is_of_load { now.max(*all) } else { *all + now };
        }
        self.sessions = self.sessions.max(later.sessions);
        self.turns += 1;
    }

    /// Why it cannot come from a scenario; `None` where it can.
    pub(crate) fn disproof(
        &self,
        scenario: &Scenario,
        threads: u32,
        transactions: Option<u64>,
    ) -> Option<String> {
        let under = Under { threads: self.sessions.max(threads), transactions, turns: self.turns };
        let events = self.events.as_ref().map(|events| scenario.disproof(events, under));
        let counter = |(name, (is_on, change)): (&String, &(bool, u64))| {
            counter_disproof(name, *is_on, *change, Under { threads, ..under })
        };
        let lost = || {
            let (name, count) = self.lost.first_key_value()?;
            Some(format!("Performance Schema had no room for all: {name} grew by {count}"))
        };
        events.flatten().or_else(|| self.counters.iter().find_map(counter)).or_else(lost)
    }
}

fn is_of_instances(name: &str) -> bool {
    OF_INSTANCES.iter().any(|end| name.ends_with(end))
}

/// What was lost in a turn; of objects, what was lost since the load began to log in.
fn lost(first: &Lost, earlier: &Lost, later: &Lost) -> Lost {
    let of_turn = |(name, now): (&String, &u64)| {
        let from = if is_of_instances(name) { first } else { earlier };
        let grown = now.saturating_sub(from.get(name).copied().unwrap_or(0));
        (grown > 0 && !NO_WANT_OF_ROOM.contains(&name.as_str())).then(|| (name.clone(), grown))
    };
    later.iter().filter_map(of_turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_instrumented_is_lost_in_every_turn_of_a_load_and_an_event_in_one() {
        let counts = |instances: u64, events: u64, others: u64| -> Lost {
            let mut counts = NO_WANT_OF_ROOM.map(|name| (name.to_owned(), others)).to_vec();
            counts.extend(
                [
                    ("Performance_schema_mutex_instances_lost", instances),
                    ("Performance_schema_locker_lost", events),
                ]
                .map(|(name, count)| (name.to_owned(), count)),
            );
            counts.into_iter().collect()
        };
        let before = counts(7, 5, 1);
        assert_eq!(lost(&before, &before, &before), Lost::new());
        let later = counts(9, 6, 4);
        let of_turn = lost(&before, &before, &later);
        assert_eq!(of_turn.values().copied().collect::<Vec<_>>(), [1, 2]);
        let of_next = lost(&before, &later, &later);
        assert_eq!(
            of_next.into_keys().collect::<Vec<_>>(),
            ["Performance_schema_mutex_instances_lost"]
        );
    }
}
