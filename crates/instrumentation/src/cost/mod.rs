//! What the instrumentation costs the server: the number of events times the price of each.
//!
//! The price of an event is twice the overhead of the timer, as the server reports it, plus a rest
//! from the [`calibration`]. Some costs end only with a restart: memory, and the code that checks
//! whether to record. They are kept apart from the costs that can be switched off.

pub mod calibration;
mod class;
mod count;
mod forecast;
mod memory;
pub mod proven;
mod span;
mod statement;
pub mod stored;
mod timer;
mod total;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::Connection;

pub use calibration::Calibration;
pub use class::ClassCost;
pub use count::{Count, Counted};
pub use forecast::{Expected, Forecast, Origin};
pub use span::Span;
pub use statement::StatementTime;
pub use timer::{TimerPrice, are_known, price_of};
pub use total::Total;

use crate::plan::{dead_consumers, is_on};
use crate::state::State;
use crate::status::{self, StatusError};
use crate::table::Table;

use calibration::Storage;
use class::Prices;

/// What the instrumentation of a server costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// `VERSION()`.
    pub version: String,
    /// Over how many seconds events were counted.
    pub interval_s: f64,
    /// Statements of clients per second, without our own.
    pub statements_per_s: f64,
    /// Sessions that were at work.
    pub running: f64,
    /// Processors that the server kept busy; `None` if that cannot be read.
    pub server_cores: Option<f64>,
    /// Why not.
    pub server_cores_unknown: Option<String>,
    /// How long statements take here, and took in the calibration.
    pub statement_time: StatementTime,
    /// What can be switched off at run time: the classes that are on or have events.
    pub classes: Vec<ClassCost>,
    /// All classes together.
    pub total: Total,
    /// What only a restart removes.
    pub fixed: Fixed,
}

/// What only a restart removes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fixed {
    /// Bytes that Performance Schema has taken, by the kind of event that they serve; empty if that
    /// cannot be read.
    pub memory_bytes: BTreeMap<&'static str, u64>,
    /// The whole of it, as the server gives it.
    pub memory_bytes_total: Option<u64>,
    /// Why it is not known, where it is not.
    pub memory_missing: Option<String>,
    /// Processor time of the code that is run and records nothing. It is not measured: for that the
    /// server would have to be started without Performance Schema.
    pub cores: Option<f64>,
}

/// What is needed to read the cost of a server.
pub struct Question<'a> {
    /// For how long events are counted.
    pub interval: Duration,
    /// The prices that were measured for it; `None` if there are none.
    pub calibration: Option<&'a Calibration>,
    /// Gives the processor time that the server has used so far, ns.
    pub server_ns: &'a mut dyn FnMut() -> Reading<u64>,
}

impl Cost {
    /// Counts the events of a server and prices them.
    ///
    /// # Errors
    /// Performance Schema is off or may not be read, or the connection is broken.
    pub fn read(connection: &mut Connection, question: Question<'_>) -> Result<Cost, StatusError> {
        if !connection.server_identity().performance_schema {
            return Err(StatusError::Off);
        }
        let state = State::read(connection)?;
        let Question { interval, calibration, server_ns } = question;
        let counted = count_events(connection, &state, interval, server_ns)?;
        let timers = status::timers(connection)?;
        let chosen = status::class_timers(&state);
        let prices = Prices { timers: &timers, chosen: &chosen, calibration };
        let version = connection.server_identity().version.clone();
        let buffers = status::memory(connection)?;
        Ok(Cost::of(version, &counted, &kept(&state), &prices, memory::fixed(&buffers)))
    }

    /// The arithmetic. `kept` says where events of a kind are kept.
    fn of(
        version: String,
        counted: &Counted,
        kept: &dyn Fn(&str) -> Storage,
        prices: &Prices<'_>,
        fixed: Fixed,
    ) -> Cost {
        let classes: Vec<ClassCost> = counted
            .classes
            .iter()
            .filter(|(_, count)| count.enabled > 0 || count.events > 0)
            .map(|(class, count)| prices.cost(class, *count, kept(class), counted))
            .collect();
        let statement_time = prices.statement_time(counted);
        let with_events = classes.iter().filter(|class| class.events_per_s > 0.0);
        Cost {
            version,
            interval_s: counted.seconds,
            statements_per_s: counted.statements_per_s(),
            running: counted.running,
            server_cores: counted.server_cores(),
            server_cores_unknown: counted.server_ns.why().map(str::to_owned),
            total: Total::of(
                counted,
                statement_time,
                with_events.map(|class| (&class.total, true)),
            ),
            statement_time,
            classes,
            fixed,
        }
    }
}

/// Counts the events of a server.
fn count_events(
    connection: &mut Connection,
    state: &State,
    interval: Duration,
    server_ns: &mut dyn FnMut() -> Reading<u64>,
) -> Result<Counted, StatusError> {
    if let Some(why) = state.why_incomplete() {
        return Err(StatusError::Unreadable(why.to_owned()));
    }
    match Counted::read(connection, state, interval, server_ns)? {
        Reading::Value(counted) => Ok(counted),
        Reading::Absent(why) => Err(StatusError::Unreadable(why)),
    }
}

/// Where the events of a class are kept, by the consumers that are on.
fn kept(state: &State) -> impl Fn(&str) -> Storage {
    let dead: BTreeMap<String, String> = dead_consumers(state).into_iter().collect();
    let on: Vec<String> = state
        .rows(Table::Consumers)
        .filter(|(key, settings)| is_on(&settings[0]) && !dead.contains_key(&key[0]))
        .map(|(key, _)| key[0].clone())
        .collect();
    move |class| {
        let is_on = |place: &str| {
            let name = format!("events_{}s_{place}", crate::class::kind_of(class));
            on.contains(&name)
        };
        match (is_on("history_long"), is_on("history") || is_on("current")) {
            (true, _) => Storage::HistoryLong,
            (false, true) => Storage::History,
            (false, false) => Storage::Sums,
        }
    }
}

#[cfg(test)]
mod tests;
