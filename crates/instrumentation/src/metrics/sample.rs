//! The server's counters in one list: the global status, the InnoDB counters, and the memory counted
//! by Performance Schema. MySQL joins the same three in `sys.metrics`. That view drops a counter
//! that is also in the status; this list keeps it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, optional_text, text};
use waggle_mysql::{Connection, ConnectionError};

use super::Counter;
use super::gauge::{growth, is_gauge_of_status};
use super::selection::means;

/// Where a metric stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `SHOW GLOBAL STATUS`.
    Status,
    /// `INNODB_METRICS`.
    Innodb,
    /// `memory_summary_global_by_event_name`.
    Memory,
}

/// Every metric at one moment. Values that are no whole numbers are left out.
#[derive(Clone, Debug)]
pub struct Sample {
    at: Instant,
    metrics: BTreeMap<(Source, String), Metric>,
    /// What could not be read, with the reason.
    pub absent: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Metric {
    subsystem: Option<String>,
    kind: Option<String>,
    is_gauge: bool,
    /// `None`: it does not count now.
    value: Option<i64>,
}

/// A metric and its change in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Where it stands.
    pub source: Source,
    /// Its name.
    pub name: String,
    /// The subsystem of a counter of InnoDB.
    pub subsystem: Option<String>,
    /// The `TYPE` of a counter of InnoDB.
    pub kind: Option<String>,
    /// Whether it shows a state and counts nothing.
    pub is_gauge: bool,
    /// At the end of the interval; `None`: it does not count.
    pub value: Option<i64>,
    /// The difference to the beginning; `None` if it did not count at both ends, or if a counter
    /// was set back.
    pub change: Option<i64>,
    /// The difference by the seconds between the two readings; `None` of a gauge.
    pub per_s: Option<f64>,
}

impl Sample {
    /// Reads everything.
    ///
    /// # Errors
    /// The connection is broken, or the status cannot be read.
    pub fn read(connection: &mut Connection) -> Result<Sample, ConnectionError> {
        let at = Instant::now();
        let mut metrics = BTreeMap::new();
        for row in connection.rows("SHOW GLOBAL STATUS")? {
            if let Ok(value) = text(&row, 1).parse() {
                let (name, value) = (text(&row, 0), Some(value));
                let is_gauge = is_gauge_of_status(&name);
                let metric = Metric { subsystem: None, kind: None, is_gauge, value };
                metrics.insert((Source::Status, name), metric);
            }
        }
        let mut absent = Vec::new();
        match super::read(connection)? {
            Reading::Value(counters) => metrics.extend(counters.into_iter().map(of_counter)),
            Reading::Absent(why) => absent.push(why),
        }
        match memory(connection)? {
            Reading::Value(memory) => metrics.extend(memory),
            Reading::Absent(why) => absent.push(why),
        }
        Ok(Sample { at, metrics, absent })
    }

    /// The time from an earlier reading to this one.
    pub fn since(&self, earlier: &Sample) -> Duration {
        self.at.duration_since(earlier.at)
    }

    /// Whether a word means any metric of it.
    pub fn has(&self, word: &str) -> bool {
        self.metrics.iter().any(|((_, name), metric)| is_meant(word, name, metric))
    }

    /// The change of the selected metrics since an earlier reading; of all metrics without a
    /// selection.
    pub fn moved_since(&self, earlier: &Sample, words: &[String]) -> Vec<Moved> {
        let seconds = self.since(earlier).as_secs_f64();
        let moved = |((source, name), metric): (&(Source, String), &Metric)| {
            let before = earlier.metrics.get(&(*source, name.clone())).and_then(|m| m.value);
            let change = metric.value.zip(before).and_then(|(now, before)| match metric.is_gauge {
                true => now.checked_sub(before),
                false => growth(before, now),
            });
            Moved {
                source: *source,
                name: name.clone(),
                subsystem: metric.subsystem.clone(),
                kind: metric.kind.clone(),
                is_gauge: metric.is_gauge,
                value: metric.value,
                change,
                per_s: change.filter(|_| !metric.is_gauge).map(|change| change as f64 / seconds),
            }
        };
        let is_wanted = |((_, name), metric): &(&(Source, String), &Metric)| {
            words.is_empty() || words.iter().any(|word| is_meant(word, name, metric))
        };
        self.metrics.iter().filter(is_wanted).map(moved).collect()
    }
}

fn is_meant(word: &str, name: &str, metric: &Metric) -> bool {
    means(word, metric.subsystem.as_deref().unwrap_or_default(), name)
}

fn of_counter(counter: Counter) -> ((Source, String), Metric) {
    let is_gauge = counter.is_gauge();
    let Counter { name, subsystem, kind, enabled, count, .. } = counter;
    // One that is off keeps what it counted before.
    let value = enabled.then_some(count);
    let (subsystem, kind) = (Some(subsystem), Some(kind));
    ((Source::Innodb, name), Metric { subsystem, kind, is_gauge, value })
}

type Metrics = BTreeMap<(Source, String), Metric>;

/// The names are those of `sys.metrics`.
fn memory(connection: &mut Connection) -> Result<Reading<Metrics>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT SUM(CURRENT_NUMBER_OF_BYTES_USED) AS {MARK}, SUM(SUM_NUMBER_OF_BYTES_ALLOC) \
         FROM performance_schema.memory_summary_global_by_event_name"
    ));
    let rows = match absent_or(connection, "the memory tables", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    // NULL with Performance Schema off.
    let number = |at| rows.first().and_then(|row| optional_text(row, at)?.parse().ok());
    let metrics = [("memory_current_allocated", true), ("memory_total_allocated", false)];
    let metric = |(at, (name, is_gauge)): (usize, (&str, bool))| {
        let metric = Metric { subsystem: None, kind: None, is_gauge, value: number(at) };
        ((Source::Memory, name.to_owned()), metric)
    };
    Ok(Reading::Value(metrics.into_iter().enumerate().map(metric).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A metric by its source and name, whether it is a gauge, and its value.
    type Row<'a> = (Source, &'a str, bool, Option<i64>);

    fn sample(at: Instant, rows: &[Row<'_>]) -> Sample {
        let metric = |(source, name, is_gauge, value): &Row<'_>| {
            let is_innodb = *source == Source::Innodb;
            let metric = Metric {
                subsystem: is_innodb.then(|| "lock".to_owned()),
                kind: is_innodb.then(|| "counter".to_owned()),
                is_gauge: *is_gauge,
                value: *value,
            };
            ((*source, (*name).to_owned()), metric)
        };
        Sample { at, metrics: rows.iter().map(metric).collect(), absent: vec![] }
    }

    #[test]
    fn rates_are_differences_by_time_and_what_does_not_count_was_set_back_or_is_a_gauge_has_none() {
        let begin = Instant::now();
        let earlier = sample(
            begin,
            &[
                (Source::Status, "Questions", false, Some(10)),
                (Source::Status, "Com_select", false, Some(100)),
                (Source::Status, "Threads_running", true, Some(3)),
                (Source::Innodb, "up", false, Some(-3)),
                (Source::Innodb, "down", true, Some(3)),
                (Source::Innodb, "off", false, None),
                (Source::Innodb, "begins", false, None),
            ],
        );
        let later = sample(
            begin + Duration::from_secs(2),
            &[
                (Source::Status, "Questions", false, Some(15)),
                (Source::Status, "Com_select", false, Some(4)),
                (Source::Status, "Threads_running", true, Some(5)),
                (Source::Innodb, "up", false, Some(-2)),
                (Source::Innodb, "down", true, Some(-1)),
                (Source::Innodb, "off", false, None),
                (Source::Innodb, "begins", false, Some(4)),
            ],
        );
        let moved = later.moved_since(&earlier, &[]);
        let of = |name: &str| {
            let moved = moved.iter().find(|moved| moved.name == name).unwrap();
            (moved.value, moved.change, moved.per_s)
        };
        assert_eq!(of("Questions"), (Some(15), Some(5), Some(2.5)));
        assert_eq!(of("Com_select"), (Some(4), None, None));
        assert_eq!(of("Threads_running"), (Some(5), Some(2), None));
        assert_eq!(of("up"), (Some(-2), Some(1), Some(0.5)));
        assert_eq!(of("down"), (Some(-1), Some(-4), None));
        assert_eq!(of("off"), (None, None, None));
        assert_eq!(of("begins"), (Some(4), None, None));
        assert_eq!(later.moved_since(&earlier, &["lock".to_owned()]).len(), 4);
        assert!(later.has("Quest%") && !later.has("x"));
    }
}
