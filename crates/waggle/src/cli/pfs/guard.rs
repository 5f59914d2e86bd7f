//! Whether the server has become slower since its instrumentation was changed.

use std::time::{Duration, Instant};

use anyhow::bail;
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, ConnectionError};
use waggle_stats::{Watch, mean_interval};

use super::process::{cpu_of, process_of};

/// How long the server is counted for one value, and how many values make a look.
const SLICE: Duration = Duration::from_millis(100);
const SLICES: usize = 10;
/// From a slice with fewer statements nothing is concluded.
const STATEMENTS_MIN: u64 = 5;
/// Looks before the change, and how many slices may be void meanwhile.
const BASELINE: usize = 30;
const VOID_MAX: usize = 100;
/// How sure the level before the change has to be, and the chance of a false alarm after it, however
/// long it takes, of each of the values that are watched.
const CONFIDENCE: f64 = 0.99;
const ERROR: f64 = 0.0025;
/// A look counts at most as so many times the level before.
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

/// What is watched of the slices of a look. Whatever else happens on a host makes statements slower for
/// moments, and their mean with them; instrumentation makes all of them slower, the quick ones too. So
/// the quicker slices show small changes, and the mean shows what happens now and then only.
const PARTS: [fn(&mut [f64]) -> f64; 2] = [quick, mean];

/// The second quickest of ten: their lowest fifth.
fn quick(slices: &mut [f64]) -> f64 {
    slices.sort_by(f64::total_cmp);
    slices.get(slices.len() / 5 - 1).copied().unwrap_or(f64::NAN)
}

fn mean(slices: &mut [f64]) -> f64 {
    slices.iter().sum::<f64>() / slices.len() as f64
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
    slices: Vec<[Option<f64>; 2]>,
    watched: Vec<Watched>,
}

/// One value that is watched: a measure, a part of its slices, and its level before the change.
struct Watched {
    measure: Measure,
    part: fn(&mut [f64]) -> f64,
    level: f64,
    watch: Watch,
}

impl Guard {
    /// Measures the server for half a minute as it is.
    ///
    /// # Errors
    /// It runs too few statements, or nothing that is compared can be read.
    pub(super) fn begin(connection: &mut Connection, share: f64) -> anyhow::Result<Guard> {
        let pid = process_of(connection)?;
        let before = read(connection, pid)?;
        let (at, slices) = (Instant::now(), Vec::new());
        let mut guard = Guard { pid, share, before, at, slices, watched: Vec::new() };
        let (mut looks, mut void) = (Vec::new(), 0);
        while looks.len() < BASELINE {
            std::thread::sleep(SLICE);
            match guard.slice(connection)? {
                true => looks.extend(guard.full()),
                false if void == VOID_MAX => bail!(
                    "the server runs fewer than {} statements a second: too few to notice that it \
                     becomes slower; leave --guard out",
                    STATEMENTS_MIN * 10
                ),
                false => void += 1,
            }
        }
        for measure in [Measure::Cpu, Measure::Latency] {
            guard.watched.extend(PARTS.into_iter().filter_map(|part| {
                let values: Option<Vec<f64>> =
                    looks.iter().map(|look| value(look, measure, part)).collect();
                let level = mean_interval(&values?, CONFIDENCE)?.high;
                let watch = Watch::new(1.0 + share, TOP, ERROR).filter(|_| level > 0.0)?;
                Some(Watched { measure, part, level, watch })
            }));
        }
        if guard.watched.is_empty() {
            bail!(
                "neither the processor time of the server nor the times of its statements can be \
                 read: --guard has nothing to compare; run waggle on the server's host"
            );
        }
        Ok(guard)
    }

    /// Takes the time since the last call as a slice; `false` where too little happened in it.
    fn slice(&mut self, connection: &mut Connection) -> Result<bool, ConnectionError> {
        let now = read(connection, self.pid)?;
        let before = std::mem::replace(&mut self.before, now);
        self.at = Instant::now();
        let statements = now.questions.saturating_sub(before.questions);
        if statements < STATEMENTS_MIN {
            return Ok(false);
        }
        let per = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
        let cpu = now.cpu_ns.zip(before.cpu_ns);
        let cpu = cpu.and_then(|(now, before)| per(now.saturating_sub(before), statements));
        let timed = now.timed.saturating_sub(before.timed);
        let latency = per(now.time_ns.saturating_sub(before.time_ns), timed);
        self.slices.push([cpu, latency.filter(|_| timed >= STATEMENTS_MIN)]);
        Ok(true)
    }

    /// The slices of a look, once they are all there.
    fn full(&mut self) -> Option<Vec<[Option<f64>; 2]>> {
        (self.slices.len() >= SLICES).then(|| std::mem::take(&mut self.slices))
    }

    /// Looks at the server, where a slice is over. Says what became slower, where that is sure.
    pub(super) fn look(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<String>, ConnectionError> {
        if self.at.elapsed() < SLICE {
            return Ok(None);
        }
        self.slice(connection)?;
        let Some(look) = self.full() else { return Ok(None) };
        for Watched { measure, part, level, watch } in &mut self.watched {
            let Some(value) = value(&look, *measure, *part) else { continue };
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

/// A part of a measure in the slices of a look; `None` where it was not measured in all of them.
fn value(look: &[[Option<f64>; 2]], measure: Measure, part: fn(&mut [f64]) -> f64) -> Option<f64> {
    let slices: Option<Vec<f64>> = look.iter().map(|slice| slice[measure as usize]).collect();
    slices.map(|mut slices| part(&mut slices))
}

fn read(connection: &mut Connection, pid: Option<u32>) -> Result<Sums, ConnectionError> {
    let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Questions'")?;
    let questions = rows.first().map_or(0, |row| text(row, 1).parse().unwrap_or(0));
    let rows = connection.rows(&format!(
        "SELECT SUM(COUNT_STAR) AS {MARK}, SUM(SUM_TIMER_WAIT) DIV 1000 FROM \
         performance_schema.events_statements_summary_global_by_event_name WHERE SUM_TIMER_WAIT > 0"
    ))?;
    let number = |at| rows.first().map_or(0, |row| text(row, at).parse().unwrap_or(0));
    Ok(Sums {
        questions,
        cpu_ns: pid.and_then(|pid| cpu_of(pid).ok()),
        timed: number(0),
        time_ns: number(1),
    })
}
