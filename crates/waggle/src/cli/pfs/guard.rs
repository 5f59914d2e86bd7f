//! Whether the server has become slower since its instrumentation was changed.

use std::time::{Duration, Instant};

use anyhow::bail;
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, ConnectionError};
use waggle_stats::{Watch, mean_interval};

use super::process::{cpu_of, process_of};

/// How long the server is counted for one value.
const WINDOW: Duration = Duration::from_secs(1);
/// In a window with fewer statements nothing is concluded.
const STATEMENTS_MIN: u64 = 50;
/// Windows before the change, and how many of them may be void.
const BASELINE: usize = 15;
const VOID_MAX: usize = 15;
/// How sure the level before the change has to be, and the chance of a false alarm after it, however
/// long it takes.
const CONFIDENCE: f64 = 0.99;
const ERROR: f64 = 0.005;
/// A window counts at most as so many times the level before.
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
            Measure::Cpu => "processor time per statement",
            Measure::Latency => "time per statement",
        }
    }
}

/// Sums since the start of the server.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    questions: u64,
    cpu_ns: Option<u64>,
    timed: u64,
    time_ns: u64,
}

/// Watches over a server.
pub(super) struct Guard {
    pid: Option<u32>,
    share: f64,
    before: Sums,
    at: Instant,
    watches: Vec<(Measure, f64, Watch)>,
}

impl Guard {
    /// Measures the server for some seconds as it is.
    ///
    /// # Errors
    /// It runs too few statements, or nothing that is compared can be read.
    pub(super) fn begin(connection: &mut Connection, share: f64) -> anyhow::Result<Guard> {
        let pid = process_of(connection)?;
        let before = read(connection, pid)?;
        let mut guard = Guard { pid, share, before, at: Instant::now(), watches: Vec::new() };
        let (mut values, mut void) = (Vec::new(), 0);
        while values.len() < BASELINE {
            std::thread::sleep(WINDOW);
            match guard.window(connection)? {
                Some(window) => values.push(window),
                None if void == VOID_MAX => bail!(
                    "the server runs fewer than {STATEMENTS_MIN} statements a second: too few to \
                     notice that it becomes slower; leave --guard out"
                ),
                None => void += 1,
            }
        }
        for (at, measure) in [Measure::Cpu, Measure::Latency].into_iter().enumerate() {
            let of_measure: Option<Vec<f64>> = values.iter().map(|window| window[at]).collect();
            let level = of_measure.and_then(|values| mean_interval(&values, CONFIDENCE));
            let Some(level) = level.map(|level| level.high).filter(|level| *level > 0.0) else {
                continue;
            };
            let watch = Watch::new(1.0 + share, TOP, ERROR);
            guard.watches.extend(watch.map(|watch| (measure, level, watch)));
        }
        if guard.watches.is_empty() {
            bail!(
                "neither the processor time of the server nor the times of its statements can be \
                 read: --guard has nothing to compare; run waggle on the server's host"
            );
        }
        Ok(guard)
    }

    /// The values of the window since the last call, in the order of [`Measure`]; `None` where too
    /// little happened.
    fn window(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<[Option<f64>; 2]>, ConnectionError> {
        let now = read(connection, self.pid)?;
        let before = std::mem::replace(&mut self.before, now);
        self.at = Instant::now();
        let statements = now.questions.saturating_sub(before.questions);
        if statements < STATEMENTS_MIN {
            return Ok(None);
        }
        let per = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
        let cpu = now.cpu_ns.zip(before.cpu_ns);
        let cpu = cpu.and_then(|(now, before)| per(now.saturating_sub(before), statements));
        let timed = now.timed.saturating_sub(before.timed);
        let latency = per(now.time_ns.saturating_sub(before.time_ns), timed);
        Ok(Some([cpu, latency.filter(|_| timed >= STATEMENTS_MIN)]))
    }

    /// Looks at the server, where a window is over. Says what became slower, where that is sure.
    pub(super) fn look(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<String>, ConnectionError> {
        if self.at.elapsed() < WINDOW {
            return Ok(None);
        }
        let Some(values) = self.window(connection)? else { return Ok(None) };
        for (measure, level, watch) in &mut self.watches {
            let Some(value) = values[*measure as usize] else { continue };
            if watch.heed(value / *level) {
                return Ok(Some(format!(
                    "the {} is more than {:.1} % above what it was before ({:.1} µs at most)",
                    measure.name(),
                    self.share * 100.0,
                    *level / 1e3
                )));
            }
        }
        Ok(None)
    }
}

fn read(connection: &mut Connection, pid: Option<u32>) -> Result<Sums, ConnectionError> {
    let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Questions'")?;
    let questions = rows.first().map_or(0, |row| text(row, 1).parse().unwrap_or(0));
    let rows = connection.rows(&format!(
        "SELECT SUM(COUNT_STAR) AS {MARK}, SUM(SUM_TIMER_WAIT) DIV 1000 FROM \
         performance_schema.events_statements_summary_global_by_event_name WHERE SUM_TIMER_WAIT > 0"
    ))?;
    let number = |at| rows.first().map_or(0, |row| text(row, at).parse().unwrap_or(0));
    Ok(Sums { questions, cpu_ns: pid.and_then(|pid| cpu_of(pid).ok()), timed: number(0), time_ns: number(1) })
}
