//! The expected cost of a plan on a server, before it is applied.
//!
//! Events of instruments that are on are counted. Events of instruments that are off cannot be
//! counted: the forecast takes their number per statement from the calibration with point selects,
//! and multiplies it by the server's current rate of statements.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::calibration::Storage;
use super::class::{Price, Prices};
use super::{
    ClassCost, Count, Counted, Question, Span, StatementTime, Total, count, count_events, kept,
    memory,
};
use crate::class::class_of;
use crate::plan::{Plan, is_abstract, is_on};
use crate::state::State;
use crate::status::{self, StatusError};
use crate::table::Table;

/// What the instrumentation of a server is expected to cost once a plan is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// `VERSION()`.
    pub version: String,
    /// Statements of clients per second, without our own.
    pub statements_per_s: f64,
    /// Sessions that were at work.
    pub running: f64,
    /// Processors that the server kept busy; `None` where that cannot be read.
    pub server_cores: Option<f64>,
    /// Why not.
    pub server_cores_unknown: Option<String>,
    /// How long statements take here, and took in the calibration.
    pub statement_time: StatementTime,
    /// The classes that will be on.
    pub classes: Vec<Expected>,
    /// All classes together.
    pub total: Total,
    /// What is on now, all classes together.
    pub now: Total,
    /// Bytes that Performance Schema has taken; `None` where that cannot be read.
    pub memory_bytes_total: Option<u64>,
    /// Why not.
    pub memory_missing: Option<String>,
    /// The buffers that grow with the plan, and their current size, bytes; `None` if that cannot be
    /// read. They keep what they take until a restart.
    pub memory_grows: BTreeMap<&'static str, Option<u64>>,
}

/// What one class is expected to cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// The class.
    pub class: String,
    /// Its instruments that will be on.
    pub enabled: u64,
    /// From where the number of events is.
    pub events_from: Origin,
    /// Events per second, at the statements that the server runs now; `None` where that is not known, or
    /// it runs none to go by.
    pub events_per_s: Option<f64>,
    /// Events per statement; `None` where that is not known, or there were no statements to count by.
    pub events_per_statement: Option<f64>,
    /// Where its events will be kept.
    pub kept: Storage,
    /// Nanoseconds per event; `None` where nothing of it is known.
    pub ns_per_event: Option<Span>,
    /// What it will cost in all.
    #[serde(flatten)]
    pub total: Total,
}

/// From where the number of events of a class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Counted on this server: what will be on is on already.
    Counted,
    /// The calibration counted them under point selects, with all of the class on: some of it is off
    /// here.
    PointSelects,
    /// Some of it is off here and no calibration has it. The ones that are on are counted, if any.
    Unknown,
}

/// How many events there will be.
struct Events {
    from: Origin,
    per_statement: Option<f64>,
    per_s: Option<f64>,
    timed_share: f64,
}

/// What a forecast is made from.
struct Sources<'a> {
    counted: &'a Counted,
    prices: Prices<'a>,
    after: &'a State,
}

/// The instruments of one class that will be on.
#[derive(Default)]
struct Class {
    enabled: u64,
    /// Instruments that are off now.
    coming: u64,
}

impl Forecast {
    /// Counts the events of what is on, and prices what will be.
    ///
    /// # Errors
    /// Performance Schema is off or may not be read, or the connection is broken.
    pub fn read(
        connection: &mut Connection,
        plan: &Plan,
        question: Question<'_>,
    ) -> Result<Forecast, StatusError> {
        let now = State::read(connection)?;
        let Question { interval, calibration, server_ns } = question;
        let counted = count_events(connection, &now, interval, server_ns)?;
        let after = now.with(&plan.changes);
        let (timers, chosen) = (status::timers(connection)?, status::class_timers(&after));
        let prices = Prices { timers: &timers, chosen: &chosen, calibration };
        let buffers = status::memory(connection)?;
        let version = connection.server_identity().version.clone();
        let sources = Sources { counted: &counted, prices, after: &after };
        Ok(sources.forecast(version, &now, &buffers))
    }
}

impl Sources<'_> {
    /// The arithmetic.
    fn forecast(
        &self,
        version: String,
        now: &State,
        buffers: &Reading<BTreeMap<String, u64>>,
    ) -> Forecast {
        let (on_now, on_after) = (recording(now), recording(self.after));
        let mut coming: BTreeMap<&str, Class> = BTreeMap::new();
        for name in &on_after {
            let class = coming.entry(class_of(name)).or_default();
            class.enabled += 1;
            class.coming += u64::from(!on_now.contains(name));
        }
        // Without those of what will be off.
        let stay = |name: &str| on_now.contains(name) && on_after.contains(name);
        let events = self.counted.events.iter().filter(|(name, _)| stay(name));
        let events = events.map(|(name, count)| (name.clone(), *count)).collect();
        let staying = count::classes(self.after, &events);
        let counted = |class: &str| staying.get(class).copied().unwrap_or_default();
        let classes: Vec<Expected> =
            coming.iter().map(|(class, one)| self.expected(class, one, counted(class))).collect();
        let grows = coming.iter().filter(|(_, one)| one.coming > 0);
        let with_events = classes.iter().filter(|class| class.has_events());
        Forecast {
            version,
            statements_per_s: self.counted.statements_per_s(),
            running: self.counted.running,
            server_cores: self.counted.server_cores(),
            server_cores_unknown: self.counted.server_ns.why().map(str::to_owned),
            statement_time: self.prices.statement_time(self.counted),
            total: Total::of(
                self.counted,
                self.prices.statement_time(self.counted),
                with_events.map(|class| (&class.total, class.events_from == Origin::Counted)),
            ),
            classes,
            now: self.now(now),
            memory_bytes_total: memory::total(buffers),
            memory_missing: buffers.why().map(str::to_owned),
            memory_grows: grows.flat_map(|(class, _)| memory::growing(class, buffers)).collect(),
        }
    }

    /// What is on now.
    fn now(&self, now: &State) -> Total {
        let kept = kept(now);
        let with_events = self.counted.classes.iter().filter(|(_, count)| count.events > 0);
        let costs: Vec<ClassCost> = with_events
            .map(|(class, count)| self.prices.cost(class, *count, kept(class), self.counted))
            .collect();
        Total::of(
            self.counted,
            self.prices.statement_time(self.counted),
            costs.iter().map(|class| (&class.total, true)),
        )
    }

    fn expected(&self, class: &str, one: &Class, staying: Count) -> Expected {
        let counted = self.counted;
        let events = self.events(class, one, staying);
        let kept = kept(self.after)(class);
        let price = self.prices.price(class, events.timed_share, kept, counted.running);
        // Rows of one scan are timed together; point selects have one each.
        let calls = counted.calls(class).filter(|_| events.from == Origin::Counted);
        let (priced_per_statement, priced_per_s) = match calls {
            Some(calls) => (counted.per_statement(calls), Some(calls as f64 / counted.seconds)),
            None => (events.per_statement, events.per_s),
        };
        let Price { ns_per_event, is_at_least, .. } = price;
        let is_at_least = is_at_least
            || calls.is_some()
            || events.from == Origin::Unknown
            || class == "statement" && drops_statements(self.after);
        let paid = [priced_per_statement, priced_per_s];
        Expected {
            class: class.to_owned(),
            enabled: one.enabled,
            events_from: events.from,
            events_per_s: events.per_s,
            events_per_statement: events.per_statement,
            kept,
            ns_per_event,
            total: self.prices.total(ns_per_event, paid, is_at_least, counted),
        }
    }

    /// How many events a class will have, given the count of its instruments that stay on.
    fn events(&self, class: &str, one: &Class, staying: Count) -> Events {
        let counted = self.counted;
        let seen_per_statement = counted.per_statement(staying.events);
        let seen_timed = (staying.events > 0).then(|| staying.timed as f64 / staying.events as f64);
        let timed_part = self.timed_part(class);
        if one.coming == 0 {
            return Events {
                from: Origin::Counted,
                per_statement: seen_per_statement,
                per_s: Some(staying.events as f64 / counted.seconds),
                timed_share: seen_timed.unwrap_or(timed_part),
            };
        }
        let calibration = self.prices.calibration;
        match calibration.and_then(|all| all.events_per_statement(class, counted.running)) {
            Some([events, timed]) => {
                // What is on already may have more of them here than point selects have of all.
                let per_statement = events.max(seen_per_statement.unwrap_or(0.0));
                let statements_per_s = counted.statements_per_s();
                Events {
                    from: Origin::PointSelects,
                    per_statement: Some(per_statement),
                    per_s: (counted.statements > 0).then_some(per_statement * statements_per_s),
                    timed_share: timed_part * timed / events,
                }
            }
            None => Events {
                from: Origin::Unknown,
                per_statement: seen_per_statement.filter(|events| *events > 0.0),
                per_s: (staying.events > 0).then(|| staying.events as f64 / counted.seconds),
                timed_share: seen_timed.unwrap_or(timed_part),
            },
        }
    }

    /// Share of a class's instruments to be on that will be timed.
    fn timed_part(&self, class: &str) -> f64 {
        let rows = self.after.rows(Table::Instruments);
        let on = rows.filter(|(key, row)| class_of(&key[0]) == class && is_on(&row[0]));
        let (on, timed) = on.fold((0_u32, 0_u32), |(on, timed), (_, row)| {
            (on + 1, timed + u32::from(is_on(&row[1])))
        });
        f64::from(timed) / f64::from(on.max(1))
    }
}

impl Expected {
    /// Whether there are events, or may be.
    fn has_events(&self) -> bool {
        self.events_from != Origin::Counted || self.events_per_s != Some(0.0)
    }
}

/// The instruments that are on: none where the consumer above all others is off.
fn recording(state: &State) -> BTreeSet<&str> {
    let above_all = vec!["global_instrumentation".to_owned()];
    if !state.row(Table::Consumers, &above_all).is_some_and(|row| is_on(&row[0])) {
        return BTreeSet::new();
    }
    let on = state.rows(Table::Instruments).filter(|(_, row)| is_on(&row[0]));
    on.map(|(key, _)| key[0].as_str()).collect()
}

/// Whether statements begin to be recorded, and are dropped when they turn out to be of a kind that is
/// off: they cost something and are no events. Those inside programs begin under their own names.
fn drops_statements(after: &State) -> bool {
    let (mut begin, mut are_dropped) = (false, false);
    for (key, row) in after.rows(Table::Instruments) {
        let name = &key[0];
        if class_of(name) == "statement" && !name.starts_with("statement/sp/") {
            begin |= is_abstract(name) && is_on(&row[0]);
            are_dropped |= !is_abstract(name) && !is_on(&row[0]);
        }
    }
    begin && are_dropped
}

#[cfg(test)]
mod tests;
