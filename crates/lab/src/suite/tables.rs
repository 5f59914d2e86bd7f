//! Tables of a source, from the rows of the file to cells.

use serde::Deserialize;
use toml::Spanned;

use super::check::must;
use super::error::Mistake;
use super::published::{Entry, Figure, Printed};

/// Bytes in a MB of the sources.
const MB: f64 = 1e6;
/// Percent in a ratio.
const PERCENT: f64 = 100.0;

/// A table of the source. Its columns are the scenarios of `columns`, in that order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) table: String,
    pub(super) workload: String,
    pub(super) rows: Vec<Row>,
}

/// A row: a number per column. `nan` stands where the source has none. Changes leave out the
/// baseline, ratios have it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) threads: u32,
    #[serde(default)]
    qps: Numbers,
    #[serde(default)]
    qps_change: Numbers,
    #[serde(default)]
    tps: Numbers,
    #[serde(default)]
    tps_change: Numbers,
    #[serde(default)]
    tps_ratio: Numbers,
    #[serde(default)]
    latency_ms: Numbers,
    #[serde(default)]
    latency_change: Numbers,
    #[serde(default)]
    cpu_percent: Numbers,
    #[serde(default)]
    cpu_change: Numbers,
    #[serde(default)]
    memory_mb: Numbers,
}

type Numbers = Vec<Spanned<f64>>;

/// Where the tables stand.
pub(super) struct Sheet<'a> {
    /// The text of the file.
    pub(super) text: &'a str,
    /// The scenarios, in the order of the columns.
    pub(super) columns: &'a [String],
    pub(super) baseline: &'a str,
}

impl Sheet<'_> {
    /// Every cell of the tables.
    pub(super) fn entries(&self, tables: &[Table]) -> Result<Vec<Entry>, Mistake> {
        let mut entries = Vec::new();
        for table in tables {
            for row in &table.rows {
                entries.extend(self.row(table, row)?);
            }
        }
        Ok(entries)
    }

    fn row(&self, table: &Table, row: &Row) -> Result<Vec<Entry>, Mistake> {
        let Table { table: title, workload, .. } = table;
        let place = format!("published, {title}: {workload}, {} threads", row.threads);
        let cells = self.columns.iter().map(|name| empty(table, row, name));
        let mut cells: Vec<Entry> = cells.collect();
        for (name, figure, what, numbers) in row.figures() {
            let has = |scenario: &str| what != What::Change || scenario != self.baseline;
            let columns: Vec<&str> =
                self.columns.iter().map(String::as_str).filter(|name| has(name)).collect();
            count(&place, name, numbers, &columns)?;
            let least = if what == What::Change { -PERCENT } else { 0.0 };
            for (cell, number) in cells.iter_mut().filter(|cell| has(&cell.scenario)).zip(numbers) {
                let Some(printed) = self.number(&place, name, number, least)? else { continue };
                match what {
                    What::Value(unit) => cell.figures.insert(figure, printed.times(unit)),
                    What::Change => cell.changes.insert(figure, printed),
                    What::Ratio => cell.changes.insert(figure, change_of(printed)),
                };
            }
        }
        Ok(cells)
    }

    /// A number of the file; `None` where the source has none.
    fn number(
        &self,
        place: &str,
        name: &str,
        number: &Spanned<f64>,
        least: f64,
    ) -> Result<Option<Printed>, Mistake> {
        let printed = Printed::read(self.text, number);
        if printed.value.is_nan() {
            return Ok(None);
        }
        if !printed.value.is_finite() || printed.value < least {
            let reason = format!("{} cannot have been printed", printed.value);
            let remedy = format!("write a number from {least}, or nan where the source has none");
            return Err(Mistake::new(format!("{place}: {name}"), reason, remedy));
        }
        Ok(Some(printed))
    }
}

/// What the numbers of a key are.
#[derive(Clone, Copy, PartialEq)]
enum What {
    /// The figure itself, and what a unit of the file is in that of the figure.
    Value(f64),
    /// Its change against the baseline, %.
    Change,
    /// Its ratio to that of the baseline.
    Ratio,
}

impl Row {
    /// Every key, and what its numbers are.
    fn figures(&self) -> [(&'static str, Figure, What, &Numbers); 10] {
        use Figure::{Cpu, Latency, Memory, Qps, Tps};
        use What::{Change, Ratio, Value};
        [
            ("qps", Qps, Value(1.0), &self.qps),
            ("tps", Tps, Value(1.0), &self.tps),
            ("latency_ms", Latency, Value(1.0), &self.latency_ms),
            ("cpu_percent", Cpu, Value(1.0), &self.cpu_percent),
            ("memory_mb", Memory, Value(MB), &self.memory_mb),
            ("qps_change", Qps, Change, &self.qps_change),
            ("tps_change", Tps, Change, &self.tps_change),
            ("latency_change", Latency, Change, &self.latency_change),
            ("cpu_change", Cpu, Change, &self.cpu_change),
            ("tps_ratio", Tps, Ratio, &self.tps_ratio),
        ]
    }
}

fn empty(table: &Table, row: &Row, scenario: &str) -> Entry {
    Entry {
        table: table.table.clone(),
        workload: table.workload.clone(),
        threads: row.threads,
        scenario: scenario.to_owned(),
        figures: [].into(),
        changes: [].into(),
    }
}

fn count(
    place: &str,
    name: &str,
    numbers: &[Spanned<f64>],
    columns: &[&str],
) -> Result<(), Mistake> {
    let is_right = numbers.is_empty() || numbers.len() == columns.len();
    let reason = format!("{} numbers for {} columns", numbers.len(), columns.len());
    let remedy = format!("give one for each of {}", columns.join(", "));
    must(is_right, format!("{place}: {name}"), reason, remedy)
}

/// The change in percent that a ratio is, as exactly as the ratio was printed.
fn change_of(ratio: Printed) -> Printed {
    let unit = 2.0 * ratio.half * PERCENT;
    let value = ((ratio.value - 1.0) * PERCENT / unit).round() * unit;
    Printed { value, half: ratio.half * PERCENT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_becomes_a_change_with_the_digits_that_it_has() {
        for (ratio, half, change) in
            [(1.031, 0.0005, 3.1), (0.855, 0.0005, -14.5), (1.0, 0.005, 0.0)]
        {
            let change_of = change_of(Printed { value: ratio, half });
            assert!((change_of.value - change).abs() < 1e-9, "{change_of:?}");
            assert!((change_of.half - 100.0 * half).abs() < 1e-9, "{change_of:?}");
        }
    }
}
