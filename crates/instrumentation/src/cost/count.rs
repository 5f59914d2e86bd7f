//! How many events there are, and how many statements.

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
    /// Sessions that were at work, the mean of both ends, without our own (`Threads_running`).
    pub running: f64,
    /// Processor time that the server used, ns; absent where it cannot be read.
    pub server_ns: Reading<u64>,
    /// By class.
    pub classes: BTreeMap<String, Count>,
}

/// One reading of everything.
struct Look {
    at: Instant,
    questions: u64,
    ours: u64,
    running: u64,
    server_ns: Reading<u64>,
    events: Reading<Events>,
}

impl Look {
    fn take(
        connection: &mut Connection,
        server_ns: &mut dyn FnMut() -> Reading<u64>,
    ) -> Result<Look, ConnectionError> {
        let events = activity::read(connection)?;
        let status = connection
            .rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Threads_running')")?;
        let of = |name: &str| {
            let row = status.iter().find(|row| text(row, 0) == name);
            row.and_then(|row| text(row, 1).parse().ok()).unwrap_or(0)
        };
        Ok(Look {
            at: Instant::now(),
            questions: of("Questions"),
            ours: connection.statements(),
            running: of("Threads_running"),
            server_ns: server_ns(),
            events,
        })
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
        let (before, after) = match (earlier.events, later.events) {
            (Reading::Value(before), Reading::Value(after)) => (before, after),
            (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
                return Ok(Reading::Absent(why));
            }
        };
        let ours = later.ours - earlier.ours;
        // Our own session is at work when it asks.
        let others = |running: u64| running.saturating_sub(1) as f64;
        Ok(Reading::Value(Counted {
            seconds: (later.at - earlier.at).as_secs_f64(),
            statements: later.questions.saturating_sub(earlier.questions).saturating_sub(ours),
            running: (others(earlier.running) + others(later.running)) / 2.0,
            server_ns: match (earlier.server_ns, later.server_ns) {
                (Reading::Value(before), Reading::Value(after)) => {
                    Reading::Value(after.saturating_sub(before))
                }
                (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
            },
            classes: classes(state, &before, &after),
        }))
    }
}

/// Events by class, and those of timed instruments. Errors have no instrument by which they count.
fn classes(state: &State, before: &Events, after: &Events) -> BTreeMap<String, Count> {
    let mut classes: BTreeMap<String, Count> = BTreeMap::new();
    let mut timed: BTreeSet<&str> = BTreeSet::new();
    for (key, settings) in state.rows(Table::Instruments) {
        let class = classes.entry(class_of(&key[0]).to_owned()).or_default();
        class.enabled += u64::from(is_on(&settings[0]));
        if is_on(&settings[1]) {
            timed.insert(&key[0]);
        }
    }
    let of_timed = |events: &Events| -> Events {
        let timed = events.iter().filter(|(name, _)| timed.contains(name.as_str()));
        timed.map(|(name, count)| (name.clone(), *count)).collect()
    };
    for (name, events) in activity::by_class(before, after) {
        classes.entry(name).or_default().events = events;
    }
    for (name, events) in activity::by_class(&of_timed(before), &of_timed(after)) {
        classes.entry(name).or_default().timed = events;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let events = |a, b| {
            Events::from([
                ("wait/io/file/sql/a".to_owned(), a),
                ("wait/io/file/sql/b".to_owned(), b),
            ])
        };
        let classes = classes(&state, &events(10, 100), &events(15, 107));
        assert_eq!(classes["wait/io/file"], Count { enabled: 2, events: 12, timed: 5 });
        assert_eq!(classes["stage"], Count::default());
    }
}
