//! The settings and their effect.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, Row, absent_or, absent_without, optional_text, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::activity;
use crate::changeable::{Changeable, changeable};
use crate::class::class_of;
use crate::plan::{dead_consumers, is_on, parent_of};
use crate::state::State;
use crate::table::Table;

/// The complete status of a server's instrumentation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// `VERSION()`.
    pub version: String,
    /// By class, in the order of their names.
    pub classes: BTreeMap<String, Class>,
    /// By every part of the names, as directories, such as `wait/io/file/innodb`.
    pub tree: BTreeMap<String, Class>,
    /// In the order of the table.
    pub consumers: Vec<Consumer>,
    /// Rows of `setup_actors`.
    pub actors: Vec<Actor>,
    /// Rows of `setup_objects`.
    pub objects: Vec<Object>,
    /// Rows of `setup_threads` that are on, and how many there are; `None` if the server has none.
    pub setup_threads: Option<Part>,
    /// Threads that run now.
    pub threads: Threads,
    /// The timers.
    pub timers: Vec<Timer>,
    /// Which timer a class uses, where that can be chosen.
    pub class_timers: BTreeMap<String, String>,
    /// Bytes that Performance Schema has taken, by buffer; empty if that may not be read.
    pub memory: BTreeMap<String, u64>,
    /// The sum of `memory`, as the server gives it, bytes.
    pub memory_bytes: Option<u64>,
    /// Why the memory is not known, where it is not.
    pub memory_missing: Option<String>,
    /// `Performance_schema_*_lost` that are not zero.
    pub lost: BTreeMap<String, u64>,
    /// Rows of the digest table; absent if it cannot be read.
    pub digests: Option<Part>,
    /// Over how many seconds events were counted.
    pub interval_s: f64,
}

/// The instruments of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Class {
    /// How many there are.
    pub total: u64,
    /// How many are on.
    pub enabled: u64,
    /// How many are timed.
    pub timed: u64,
    /// How many can be changed while the server runs.
    pub at_run_time: u64,
    /// How many can be changed at the start of the server only.
    pub only_at_start: u64,
    /// How many the server counts whatever is set: its own memory for Performance Schema.
    pub always_on: u64,
    /// Events per second over the interval; `None` if they cannot be read.
    pub events_per_s: Option<f64>,
}

/// A consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// Whether it is on.
    pub enabled: bool,
    /// The one that feeds it.
    pub parent: Option<&'static str>,
    /// It is on but gets nothing, because this consumer above it is off.
    pub dead_because: Option<String>,
}

/// A row of `setup_actors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// The host; `%` is any.
    pub host: String,
    /// The user; `%` is any.
    pub user: String,
    /// Whether its new sessions are instrumented.
    pub enabled: bool,
    /// Whether they have a history.
    pub history: bool,
}

/// A row of `setup_objects`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Object {
    /// `EVENT`, `FUNCTION`, `PROCEDURE`, `TABLE` or `TRIGGER`.
    pub kind: String,
    /// Its schema; `%` is any.
    pub schema: String,
    /// Its name; `%` is any.
    pub name: String,
    /// Whether its events are recorded.
    pub enabled: bool,
    /// Whether they are timed.
    pub timed: bool,
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The part.
    pub used: u64,
    /// The whole.
    pub total: u64,
}

/// The threads that run now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// How many there are.
    pub total: u64,
    /// How many are instrumented.
    pub instrumented: u64,
    /// How many have a history.
    pub history: u64,
}

/// A row of `performance_timers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// Units per second; `None` if the host lacks it.
    pub frequency: Option<u64>,
    /// The step of the timer, in its units.
    pub resolution: Option<u64>,
    /// Processor cycles of one reading, the least of some.
    pub overhead_cycles: Option<u64>,
}

impl Status {
    /// Reads everything, and counts events for `interval`.
    ///
    /// # Errors
    /// The connection is broken, or the setup tables may not be read.
    pub fn read(connection: &mut Connection, interval: Duration) -> Result<Status, StatusError> {
        if !connection.server_identity().performance_schema {
            return Err(StatusError::Off);
        }
        let state = State::read(connection)?;
        if let Some(why) = state.why_incomplete() {
            return Err(StatusError::Unreadable(why.to_owned()));
        }
        let (instruments, interval_s) = instruments(connection, &state, interval)?;
        let (memory, memory_missing) = match memory(connection)? {
            Reading::Value(buffers) => (buffers, None),
            Reading::Absent(why) => (BTreeMap::new(), Some(why)),
        };
        Ok(Status {
            version: connection.server_identity().version.clone(),
            classes: grouped(&instruments, |name| vec![class_of(name)]),
            tree: grouped(&instruments, directories),
            consumers: consumers(&state),
            actors: actors(&state),
            objects: objects(&state),
            setup_threads: state.why_absent(Table::SetupThreads).is_none().then(|| Part {
                used: count(&state, Table::SetupThreads, 0),
                total: state.rows(Table::SetupThreads).count() as u64,
            }),
            threads: Threads {
                total: state.rows(Table::Threads).count() as u64,
                instrumented: count(&state, Table::Threads, 0),
                history: count(&state, Table::Threads, 1),
            },
            timers: timers(connection)?,
            class_timers: class_timers(&state),
            memory_bytes: memory.get("performance_schema").copied(),
            memory: memory.into_iter().filter(|(name, _)| name != "performance_schema").collect(),
            memory_missing,
            lost: lost(connection)?,
            digests: digests(connection)?,
            interval_s,
        })
    }
}

/// Why the status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Performance Schema is off.
    #[error(
        "Performance Schema is off on this server, and cannot be switched on while it runs; start \
         the server with performance_schema=ON. Published figures for that alone run from 1 to 15 % \
         of the throughput; `waggle watch` needs none of it"
    )]
    Off,
    /// The account may not read it.
    #[error("{0}")]
    Unreadable(String),
    /// The connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

fn count(state: &State, table: Table, setting: usize) -> u64 {
    state.rows(table).filter(|(_, settings)| is_on(&settings[setting])).count() as u64
}

/// Every instrument as a class of its own, and over how many seconds its events were counted.
fn instruments(
    connection: &mut Connection,
    state: &State,
    interval: Duration,
) -> Result<(BTreeMap<String, Class>, f64), ConnectionError> {
    let earlier = activity::read(connection)?;
    let begin = Instant::now();
    sleep(interval);
    let later = activity::read(connection)?;
    let seconds = begin.elapsed().as_secs_f64();
    let events = match (earlier, later) {
        (Reading::Value(earlier), Reading::Value(later)) => {
            Some(activity::difference(&earlier, &later))
        }
        _ => None,
    };
    let version = connection.server_identity().server_version();
    let is = |name: &str, when| u64::from(changeable(name, version) == when);
    let of_one = |(key, settings): (&Vec<String>, &Vec<Option<String>>)| {
        let counted = |events: &activity::Events| events.get(&key[0]).copied().unwrap_or(0);
        let class = Class {
            total: 1,
            enabled: u64::from(is_on(&settings[0])),
            timed: u64::from(is_on(&settings[1])),
            at_run_time: is(&key[0], Changeable::AtRunTime),
            only_at_start: is(&key[0], Changeable::OnlyAtStart),
            always_on: is(&key[0], Changeable::Never),
            events_per_s: events.as_ref().map(|events| counted(events) as f64 / seconds),
        };
        (key[0].clone(), class)
    };
    Ok((state.rows(Table::Instruments).map(of_one).collect(), seconds))
}

/// Sums over the groups that each instrument is in.
fn grouped(
    instruments: &BTreeMap<String, Class>,
    groups_of: impl Fn(&str) -> Vec<&str>,
) -> BTreeMap<String, Class> {
    let mut groups: BTreeMap<String, Class> = BTreeMap::new();
    for (name, one) in instruments {
        for group in groups_of(name) {
            groups.entry(group.to_owned()).or_default().add(one);
        }
    }
    groups
}

/// The part before each `/` of a name; a name without one is its own.
fn directories(name: &str) -> Vec<&str> {
    let parts: Vec<&str> = name.match_indices('/').map(|(at, _)| &name[..at]).collect();
    if parts.is_empty() { vec![name] } else { parts }
}

impl Class {
    fn add(&mut self, other: &Class) {
        self.total += other.total;
        self.enabled += other.enabled;
        self.timed += other.timed;
        self.at_run_time += other.at_run_time;
        self.only_at_start += other.only_at_start;
        self.always_on += other.always_on;
        let (ours, theirs) = (self.events_per_s.unwrap_or(0.0), other.events_per_s);
        self.events_per_s = theirs.map(|theirs| ours + theirs);
    }
}

fn consumers(state: &State) -> Vec<Consumer> {
    let dead: BTreeMap<String, String> = dead_consumers(state).into_iter().collect();
    let rows = state.rows(Table::Consumers);
    let consumers = rows.map(|(key, settings)| Consumer {
        name: key[0].clone(),
        enabled: is_on(&settings[0]),
        parent: parent_of(&key[0]),
        dead_because: dead.get(&key[0]).cloned(),
    });
    consumers.collect()
}

fn actors(state: &State) -> Vec<Actor> {
    let actors = state.rows(Table::Actors).map(|(key, settings)| Actor {
        host: key[0].clone(),
        user: key[1].clone(),
        enabled: is_on(&settings[0]),
        history: is_on(&settings[1]),
    });
    actors.collect()
}

fn objects(state: &State) -> Vec<Object> {
    let objects = state.rows(Table::Objects).map(|(key, settings)| Object {
        kind: key[0].clone(),
        schema: key[1].clone(),
        name: key[2].clone(),
        enabled: is_on(&settings[0]),
        timed: is_on(&settings[1]),
    });
    objects.collect()
}

/// Which timer a class uses, where that can be chosen.
pub fn class_timers(state: &State) -> BTreeMap<String, String> {
    let rows = state.rows(Table::Timers);
    rows.map(|(key, settings)| (key[0].clone(), settings[0].clone().unwrap_or_default())).collect()
}

/// The timers that the server knows.
///
/// # Errors
/// The connection is broken, or they may not be read.
pub fn timers(connection: &mut Connection) -> Result<Vec<Timer>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT TIMER_NAME AS {MARK}, TIMER_FREQUENCY, TIMER_RESOLUTION, TIMER_OVERHEAD \
         FROM performance_schema.performance_timers"
    ))?;
    // MariaDB gives the largest number where it could not measure the overhead, and a frequency of 0.
    let number = |row: &Row, at| {
        let number = optional_text(row, at)?.parse().ok();
        number.filter(|number| *number != i64::MAX as u64)
    };
    let timer = |row: &Row| Timer {
        name: text(row, 0),
        frequency: number(row, 1).filter(|frequency| *frequency > 0),
        resolution: number(row, 2),
        overhead_cycles: number(row, 3),
    };
    Ok(rows.iter().map(timer).collect())
}

/// The rows of `SHOW ENGINE PERFORMANCE_SCHEMA STATUS` that tell bytes, by their buffer; absent if they may not be
/// read.
pub(crate) fn memory(
    connection: &mut Connection,
) -> Result<Reading<BTreeMap<String, u64>>, ConnectionError> {
    let rows = connection.rows("SHOW ENGINE PERFORMANCE_SCHEMA STATUS");
    let what = "how much memory Performance Schema has taken";
    let rows = match absent_without(connection, what, "PROCESS ON *.*", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    let buffer = |row: &Row| {
        let name = text(row, 1);
        let buffer = name.strip_suffix(".memory")?;
        Some((buffer.to_owned(), text(row, 2).parse().ok()?))
    };
    Ok(Reading::Value(rows.iter().filter_map(buffer).filter(|(_, bytes)| *bytes > 0).collect()))
}

fn lost(connection: &mut Connection) -> Result<BTreeMap<String, u64>, ConnectionError> {
    let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Performance\\_schema\\_%lost'")?;
    let lost = rows.iter().map(|row| (text(row, 0), text(row, 1).parse().unwrap_or(0)));
    Ok(lost.filter(|(_, lost)| *lost > 0).collect())
}

fn digests(connection: &mut Connection) -> Result<Option<Part>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT COUNT(*) AS {MARK}, @@performance_schema_digests_size \
         FROM performance_schema.events_statements_summary_by_digest"
    ));
    let Reading::Value(rows) = absent_or(connection, "the digest table", rows)? else {
        return Ok(None);
    };
    let number = |at| rows.first().and_then(|row| text(row, at).parse().ok());
    Ok(number(0).zip(number(1)).map(|(used, total)| Part { used, total }))
}
