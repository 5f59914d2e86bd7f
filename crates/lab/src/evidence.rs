//! What a server counted of its own work, as evidence that an arm was set while it was measured.

use std::collections::BTreeMap;

use waggle_instrumentation::activity::{Events, difference};
use waggle_instrumentation::metrics::Counter;

use crate::error::LabError;
use crate::life::Life;
use crate::suite::{Scenario, Under, counter_disproof};

/// What was counted so far.
pub(crate) struct Counted {
    /// `None` where Performance Schema is off.
    events: Option<Events>,
    counters: Vec<Counter>,
    /// Sessions, those of others among them: what began before a class was off counts in them, too.
    sessions: u32,
}

/// What was counted in all turns of a window.
#[derive(Default)]
pub(crate) struct Evidence {
    events: Events,
    /// Whether a counter was on, and what it changed by.
    counters: BTreeMap<String, (bool, u64)>,
    sessions: u32,
    turns: u32,
}

impl Counted {
    /// Reads it: Performance Schema, and the counters of InnoDB of these names.
    pub(crate) fn so_far(life: &mut Life<'_>, counters: &[String]) -> Result<Counted, LabError> {
        Ok(Counted {
            sessions: life.sessions()?,
            events: life.events()?,
            counters: life.counters(counters)?,
        })
    }
}

impl Evidence {
    /// Adds a turn.
    pub(crate) fn add(&mut self, earlier: &Counted, later: &Counted) {
        if let (Some(earlier), Some(later)) = (&earlier.events, &later.events) {
            for (name, events) in difference(earlier, later) {
                *self.events.entry(name).or_default() += events;
            }
        }
        for (before, counter) in earlier.counters.iter().zip(&later.counters) {
            let (is_on, change) = self.counters.entry(counter.name.clone()).or_default();
            *is_on = counter.enabled;
            *change += counter.count.abs_diff(before.count);
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
        // Without events Performance Schema is off, and that is read back when a server starts.
        let events = (!self.events.is_empty()).then(|| scenario.disproof(&self.events, under));
        let counter = |(name, (is_on, change)): (&String, &(bool, u64))| {
            counter_disproof(name, *is_on, *change, Under { threads, ..under })
        };
        events.flatten().or_else(|| self.counters.iter().find_map(counter))
    }
}
