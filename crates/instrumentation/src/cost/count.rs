//! Counts events and statements.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use waggle_model::Reading;
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

use crate::activity::{self, Events};
use crate::class::class_of;
use crate::plan::is_on;
use crate::state::State;
use crate::table::Table;

/// Events of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Instruments that are on.
    pub enabled: u64,
    /// Events.
    pub events: u64,
    /// Those of instruments that are timed.
    pub timed: u64,
}

/// What happened in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// How long it was, seconds.
    pub seconds: f64,
    /// Statements that clients sent (`Questions`), without our own.
    pub statements: u64,
    /// Sessions that were at work, the mean of four looks, without our own (`Threads_running`).
    pub running: f64,
    /// Processor time that the server used, ns; absent if it cannot be read.
    pub server_ns: Reading<u64>,
    /// Processor time of the server per statement while we read nothing, ns; `None` if it cannot be read, or there
    /// were no statements.
    pub statement_ns: Option<f64>,
    /// Events by the name of the instrument.
    pub events: Events,
    /// The same by class.
    pub classes: BTreeMap<String, Count>,
}

/// The counters that are read at once.
struct Status {
    at: Instant,
    /// Without our own.
    questions: u64,
    running: u64,
    server_ns: Reading<u64>,
}

/// One reading of everything. The events take a while, so that the counters are read before and after.
struct Look {
    before: Status,
    events: Reading<Events>,
    after: Status,
}

impl Status {
    fn read(
        connection: &mut Connection,
        server_ns: &mut dyn FnMut() -> Reading<u64>,
    ) -> Result<Status, ConnectionError> {
        let rows = connection
            .rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Threads_running')")?;
        let of = |name: &str| {
            let row = rows.iter().find(|row| text(row, 0) == name);
            row.and_then(|row| text(row, 1).parse::<u64>().ok()).unwrap_or(0)
        };
        Ok(Status {
            at: Instant::now(),
            questions: of("Questions").saturating_sub(connection.statements()),
            // Our own session is at work when it asks.
            running: of("Threads_running").saturating_sub(1),
            server_ns: server_ns(),
        })
    }

    fn statement_ns_until(&self, later: &Status) -> Option<f64> {
        let ns = later.server_ns.value()?.saturating_sub(*self.server_ns.value()?);
        let statements = later.questions.saturating_sub(self.questions);
        (statements > 0).then(|| ns as f64 / statements as f64)
    }
}

/// The class that counts rows. The rows of one scan are timed together, once
/// (`handler::start_psi_batch_mode` in `sql/handler.cc`), and counted one by one (`numrows` in
/// `storage/perfschema/pfs.cc`).
const BY_ROWS: &str = "wait/io/table";
/// A statement that reads or writes a table locks it, once.
const BY_TABLES: &str = "wait/lock/table";
/// Up to this many rows of a locked table are read or written one by one: an update does both.
const ROWS_MAX: u64 = 2;

impl Counted {
    /// Statements per second.
    pub fn statements_per_s(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    /// Events, or anything else, per statement; `None` if there were no statements.
    pub fn per_statement(&self, count: u64) -> Option<f64> {
        (self.statements > 0).then(|| count as f64 / self.statements as f64)
    }

    /// Processors that the server kept busy; `None` if that cannot be read.
    pub fn server_cores(&self) -> Option<f64> {
        self.server_ns.value().map(|ns| *ns as f64 / 1e9 / self.seconds)
    }

    /// The same, to divide by: `None` if it kept none busy, too.
    pub(super) fn busy_cores(&self) -> Option<f64> {
        self.server_cores().filter(|cores| *cores > 0.0)
    }

    /// How many times the events of a class were timed together, at the least, where they may have been.
    pub fn calls(&self, class: &str) -> Option<u64> {
        let count = |class: &str| self.classes.get(class).map_or(0, |count| count.events);
        let (rows, tables) = (count(BY_ROWS), count(BY_TABLES));
        (class == BY_ROWS && tables > 0 && rows > ROWS_MAX * tables).then_some(tables)
    }
}

impl Look {
    fn take(
        connection: &mut Connection,
        server_ns: &mut dyn FnMut() -> Reading<u64>,
    ) -> Result<Look, ConnectionError> {
        let before = Status::read(connection, server_ns)?;
        let events = activity::read(connection)?;
        Ok(Look { before, events, after: Status::read(connection, server_ns)? })
    }
}

impl Counted {
    /// Counts for `interval`. `server_ns` gives the processor time that the server has used so far.
    ///
    /// # Errors
    /// The connection is broken, or the tables of events cannot be read: then with the reason.
    pub fn read(
        connection: &mut Connection,
        state: &State,
        interval: Duration,
        server_ns: &mut dyn FnMut() -> Reading<u64>,
    ) -> Result<Reading<Counted>, ConnectionError> {
        let earlier = Look::take(connection, server_ns)?;
        sleep(interval);
        let later = Look::take(connection, server_ns)?;
        let (before, after) = match (&earlier.events, &later.events) {
            (Reading::Value(before), Reading::Value(after)) => (before, after),
            (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
                return Ok(Reading::absent(why));
            }
        };
        // From the middle of one reading of the events to the middle of the other.
        let pairs = [(&earlier.before, &later.before), (&earlier.after, &later.after)];
        let mean = |part: &dyn Fn(&Status, &Status) -> f64| {
            pairs.iter().map(|(from, to)| part(from, to)).sum::<f64>() / pairs.len() as f64
        };
        let cpu = |(from, to): &(&Status, &Status)| match (&from.server_ns, &to.server_ns) {
            (Reading::Value(from), Reading::Value(to)) => Ok(to.saturating_sub(*from)),
            (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Err(why.clone()),
        };
        let server_ns = pairs.iter().map(cpu).sum::<Result<u64, String>>();
        let events = activity::difference(before, after);
        Ok(Reading::Value(Counted {
            seconds: mean(&|from, to| (to.at - from.at).as_secs_f64()),
            statements: mean(&|from, to| to.questions.saturating_sub(from.questions) as f64) as u64,
            running: mean(&|from, to| (from.running as f64 + to.running as f64) / 2.0),
            server_ns: server_ns
                .map_or_else(Reading::Absent, |ns| Reading::Value(ns / pairs.len() as u64)),
            statement_ns: earlier.after.statement_ns_until(&later.before),
            classes: classes(state, &events),
            events,
        }))
    }
}

/// Events by class, and the events of timed instruments. Errors have no instrument of their own.
pub(super) fn classes(state: &State, events: &Events) -> BTreeMap<String, Count> {
    let mut classes: BTreeMap<String, Count> = BTreeMap::new();
    let mut timed: BTreeSet<&str> = BTreeSet::new();
    for (key, settings) in state.rows(Table::Instruments) {
        let class = classes.entry(class_of(&key[0]).to_owned()).or_default();
        class.enabled += u64::from(is_on(&settings[0]));
        if is_on(&settings[1]) {
            timed.insert(&key[0]);
        }
    }
    for (name, count) in events {
        let class = classes.entry(class_of(name).to_owned()).or_default();
        class.events = class.events.saturating_add(*count);
        if timed.contains(name.as_str()) {
            class.timed = class.timed.saturating_add(*count);
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_statement_is_that_between_two_looks() {
        let status =
            |questions, server_ns| Status { at: Instant::now(), questions, running: 1, server_ns };
        let before = status(100, Reading::Value(1_000));
        let until = |after| before.statement_ns_until(&after);
        assert_eq!(until(status(110, Reading::Value(1_500))), Some(50.0));
        assert_eq!(until(status(100, Reading::Value(1_500))), None);
        assert_eq!(until(status(110, Reading::absent("another host"))), None);
    }

    #[test]
    fn only_events_of_timed_instruments_count_as_timed() {
        let row = |name: &str, on: &str, timed: &str| {
            (vec![name.to_owned()], vec![Some(on.to_owned()), Some(timed.to_owned())])
        };
        let instruments = [
            row("wait/io/file/sql/a", "YES", "YES"),
            row("wait/io/file/sql/b", "YES", "NO"),
            row("stage/sql/c", "NO", "NO"),
        ];
        let state = State::of([(Table::Instruments, instruments.into())]);
        let events = [("wait/io/file/sql/a", 5), ("wait/io/file/sql/b", 7)];
        let events = Events::from(events.map(|(name, count)| (name.to_owned(), count)));
        let classes = classes(&state, &events);
        assert_eq!(classes["wait/io/file"], Count { enabled: 2, events: 12, timed: 5 });
        assert_eq!(classes["stage"], Count::default());
    }
}
