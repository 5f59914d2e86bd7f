//! Whether the server has become slower since its instrumentation changed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use waggle_instrumentation::{Change, Table};
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, ConnectionError};
use waggle_stats::{Estimate, Watch, mean_interval};

use super::process::{cpu_of, process_of};

/// How long the server is counted for one value, and how many values make a look. Measured on a virtual
/// machine with neighbours: of twenty such slices the second quickest differs by 3 to 5 % from look to
/// look, their mean by 8 %, a single slice by 12 %.
const SLICE: Duration = Duration::from_millis(100);
const SLICES: usize = 20;
/// From a slice with fewer statements nothing is concluded.
const STATEMENTS_MIN: u64 = 5;
/// Looks before the change: the minimum; more until the level is known to half of the guarded
/// change. And how many slices in a row may be void.
const BASELINE_MIN: usize = 15;
const BASELINE_MAX: usize = 60;
const VOID_MAX: usize = 100;
/// How sure the level before the change has to be, and the chance of a false alarm after it, however
/// long it takes, of each of the values that are watched.
const CONFIDENCE: f64 = 0.99;
const ERROR: f64 = 0.0025;
/// A look counts at most as this many times the level before.
const TOP: f64 = 3.0;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Processor time of the server process per statement, ns.
    Cpu,
    /// Time of a statement by Performance Schema, ns.
    Latency,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU time per statement",
            Measure::Latency => "time per statement",
        }
    }
}

/// What is watched of the slices of a look, and by how much more than is guarded for it may rise.
/// Whatever else happens on a host makes statements slower for moments, and their mean with them;
/// instrumentation makes all of them slower, the quick ones too. So the quicker slices show small
/// changes. The mean shows what happens now and then only: on a virtual machine with neighbours it
/// differed by up to a fifth from one minute to another while the quicker slices stayed within 3 %.
const PARTS: [Part; 2] = [
    Part { name: "in the quickest tenth of the time", of: quick, more: 0.0 },
    Part { name: "on average", of: mean, more: 0.25 },
];

#[derive(Clone, Copy, Debug)]
struct Part {
    name: &'static str,
    of: fn(&mut [f64]) -> f64,
    more: f64,
}

/// The second quickest of twenty: their lowest tenth.
fn quick(slices: &mut [f64]) -> f64 {
    slices.sort_by(f64::total_cmp);
    slices.get(slices.len() / 10 - 1).copied().unwrap_or(f64::NAN)
}

fn mean(slices: &mut [f64]) -> f64 {
    slices.iter().sum::<f64>() / slices.len() as f64
}

/// Every measure in one slice of time; `None` if it was not measured.
type Slice = [Option<f64>; 2];
/// The slices that are looked at together.
type Look = Vec<Slice>;

/// Sums since the start of the server.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Statements of others.
    questions: u64,
    cpu_ns: Option<u64>,
    timed: u64,
    time_ns: u64,
}

/// Watches over a server.
pub(super) struct Guard {
    pid: Option<u32>,
    /// Whether the times of statements before the change and after it are of the same statements.
    has_times: bool,
    share: f64,
    before: Sums,
    at: Instant,
    slices: Look,
    /// Slices in a row in which too little happened.
    void: usize,
    watched: Vec<Watched>,
}

/// One value that is watched: a measure, a part of its slices, and its level before the change.
struct Watched {
    measure: Measure,
    part: Part,
    level: f64,
    watch: Watch,
}

impl Guard {
    /// Measures the server as it is, before these changes are made: for half a minute, or up to two where its level is
    /// uncertain. `None` if somebody stopped it.
    ///
    /// # Errors
    /// It runs too few statements, or nothing that is compared can be read.
    pub(super) fn begin(
        connection: &mut Connection,
        changes: &[Change],
        share: f64,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<Guard>> {
        let has_times = !changes.iter().any(chooses_statements);
        let pid = process_of(connection)?;
        let before = read(connection, pid)?;
        if before.cpu_ns.is_none() && !has_times {
            bail!(
                "the CPU time of the server cannot be read, and after this change other statements are \
                 timed than before: --guard has nothing to compare; run waggle on the server's host"
            );
        }
        let (at, slices) = (Instant::now(), Vec::new());
        let watched = Vec::new();
        let mut guard = Guard { pid, has_times, share, before, at, slices, void: 0, watched };
        let mut looks = Vec::new();
        while looks.len() < BASELINE_MIN || (!guard.is_sure(&looks) && looks.len() < BASELINE_MAX) {
            std::thread::sleep(SLICE);
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match guard.slice(connection)? {
                true => looks.extend(guard.full()),
                false if guard.void > VOID_MAX => bail!("{}; leave --guard out", too_few()),
                false => {}
            }
        }
        for (measure, part, level) in levels(&looks) {
            let limit = 1.0 + share + part.more;
            let watch = Watch::new(limit, TOP, ERROR).filter(|_| level.high > 0.0);
            guard.watched.extend(watch.map(|watch| Watched {
                measure,
                part,
                level: level.high,
                watch,
            }));
        }
        if guard.watched.is_empty() {
            bail!(
                "neither the CPU time of the server nor the times of its statements can be \
                 read: --guard has nothing to compare; run waggle on the server's host"
            );
        }
        Ok(Some(guard))
    }

    /// What is watched, in words.
    pub(super) fn watched(&self) -> String {
        let names: BTreeSet<&str> = self.watched.iter().map(|it| it.measure.name()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Whether one of the levels is known to half of what is guarded for.
    fn is_sure(&self, looks: &[Look]) -> bool {
        levels(looks).iter().any(|(.., level)| level.high <= level.value * (1.0 + self.share / 2.0))
    }

    /// Takes the time since the last call as a slice; `false` if too little happened in it.
    fn slice(&mut self, connection: &mut Connection) -> Result<bool, ConnectionError> {
        let now = read(connection, self.pid)?;
        let before = std::mem::replace(&mut self.before, now);
        self.at = Instant::now();
        let statements = now.questions.saturating_sub(before.questions);
        if statements < STATEMENTS_MIN {
            self.void += 1;
            return Ok(false);
        }
        self.void = 0;
        let per = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
        let cpu = now.cpu_ns.zip(before.cpu_ns);
        let cpu = cpu.and_then(|(now, before)| per(now.saturating_sub(before), statements));
        let timed = now.timed.saturating_sub(before.timed);
        let latency = per(now.time_ns.saturating_sub(before.time_ns), timed);
        let latency = latency.filter(|_| self.has_times && timed >= STATEMENTS_MIN);
        self.slices.push([cpu, latency]);
        Ok(true)
    }

    /// The slices of a look, once they are all there.
    fn full(&mut self) -> Option<Look> {
        (self.slices.len() >= SLICES).then(|| std::mem::take(&mut self.slices))
    }

    /// Looks at the server, where a slice is over. Says what became slower, where that is sure, and why
    /// it cannot be told any longer: what nobody can guard is not to stay.
    pub(super) fn look(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<String>, ConnectionError> {
        if self.at.elapsed() < SLICE {
            return Ok(None);
        }
        self.slice(connection)?;
        if self.void > VOID_MAX {
            return Ok(Some(too_few()));
        }
        let Some(look) = self.full() else { return Ok(None) };
        if self.watched.iter().all(|it| value(&look, it.measure, it.part).is_none()) {
            return Ok(Some("nothing that is compared can be read any longer".to_owned()));
        }
        for Watched { measure, part, level, watch } in &mut self.watched {
            let Some(value) = value(&look, *measure, *part) else { continue };
            if watch.heed(value / *level) {
                return Ok(Some(format!(
                    "{}, the {} is more than {:.1} % above what it was before ({:.1} µs at most)",
                    part.name,
                    measure.name(),
                    (self.share + part.more) * 100.0,
                    *level / 1e3
                )));
            }
        }
        Ok(None)
    }
}

fn too_few() -> String {
    format!(
        "the server runs fewer than {} statements a second: too few to notice that it becomes slower",
        STATEMENTS_MIN * 10
    )
}

/// What is known of every value that can be watched, before the change.
fn levels(looks: &[Look]) -> Vec<(Measure, Part, Estimate)> {
    let each = [Measure::Cpu, Measure::Latency].into_iter();
    each.flat_map(|measure| PARTS.map(|part| (measure, part)))
        .filter_map(|(measure, part)| {
            let values: Option<Vec<f64>> =
                looks.iter().map(|look| value(look, measure, part)).collect();
            Some((measure, part, mean_interval(&values?, CONFIDENCE)?))
        })
        .collect()
}

/// A part of a measure in the slices of a look; `None` if it was not measured in all of them.
fn value(look: &[Slice], measure: Measure, part: Part) -> Option<f64> {
    let slices: Option<Vec<f64>> = look.iter().map(|slice| slice[measure as usize]).collect();
    slices.map(|mut slices| (part.of)(&mut slices))
}

/// Whether a change alters which statements are timed.
fn chooses_statements(change: &Change) -> bool {
    match change.table {
        Table::Actors | Table::SetupThreads | Table::Threads => true,
        Table::Instruments => change.key[0].starts_with("statement/"),
        Table::Consumers => {
            matches!(change.key[0].as_str(), "global_instrumentation" | "thread_instrumentation")
        }
        // Two timers differ, and what was counted by the one is shown by the other.
        Table::Timers => change.key[0] == "statement",
        Table::Objects | Table::Metrics | Table::Variables => false,
    }
}

fn read(connection: &mut Connection, pid: Option<u32>) -> Result<Sums, ConnectionError> {
    let questions = connection.global_status("Questions")?.unwrap_or(0);
    let rows = connection.rows(&format!(
        "SELECT SUM(COUNT_STAR) AS {MARK}, SUM(SUM_TIMER_WAIT) DIV 1000 FROM \
         performance_schema.events_statements_summary_global_by_event_name WHERE SUM_TIMER_WAIT > 0"
    ))?;
    let number = |at| rows.first().map_or(0, |row| text(row, at).parse().unwrap_or(0));
    Ok(Sums {
        questions: questions.saturating_sub(connection.statements()),
        cpu_ns: pid.and_then(|pid| cpu_of(pid).ok()),
        timed: number(0),
        time_ns: number(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_where_the_same_statements_are_timed() {
        let chooses = |table, key: &str| {
            let key = vec![key.to_owned()];
            chooses_statements(&Change { table, key, before: None, after: None })
        };
        assert!(chooses(Table::Actors, "%") && chooses(Table::Threads, "7"));
        assert!(chooses(Table::Instruments, "statement/sql/select"));
        assert!(chooses(Table::Consumers, "thread_instrumentation"));
        assert!(chooses(Table::Timers, "statement"));
        assert!(!chooses(Table::Timers, "wait") && !chooses(Table::Objects, "TABLE"));
        assert!(!chooses(Table::Instruments, "wait/io/file/sql/binlog"));
        assert!(!chooses(Table::Consumers, "events_waits_current"));
    }
}
