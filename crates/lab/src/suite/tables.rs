//! Tables of a source, from the rows of the file to cells.

use serde::Deserialize;
use toml::Spanned;

use super::error::Mistake;
use super::published::{Entry, Figure, Printed};

/// Bytes in a MB of the sources.
const MB: f64 = 1e6;
/// Percent in a ratio.
const PERCENT: f64 = 100.0;

/// A table of the source. Its columns are the scenarios of `columns`, in that order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) table: String,
    pub(super) workload: String,
    pub(super) rows: Vec<Row>,
}

/// A row: a number per column. `nan` stands where the source has none. Changes leave out the
/// baseline, ratios have it.
#[derive(Debug, Deserialize)]
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
        for (name, figure, factor, numbers) in row.figures() {
            count(&place, name, numbers, self.columns)?;
            for (cell, number) in cells.iter_mut().zip(numbers) {
                if let Some(printed) = self.number(&place, name, number, 0.0)? {
                    cell.figures.insert(figure, printed.times(factor));
                }
            }
        }
        let compared: Vec<String> =
            self.columns.iter().filter(|name| *name != self.baseline).cloned().collect();
        for (name, figure, numbers) in row.changes() {
            count(&place, name, numbers, &compared)?;
            let others = cells.iter_mut().filter(|cell| cell.scenario != self.baseline);
            for (cell, number) in others.zip(numbers) {
                if let Some(printed) = self.number(&place, name, number, -PERCENT)? {
                    cell.changes.insert(figure, printed);
                }
            }
        }
        count(&place, "tps_ratio", &row.tps_ratio, self.columns)?;
        for (cell, number) in cells.iter_mut().zip(&row.tps_ratio) {
            if let Some(printed) = self.number(&place, "tps_ratio", number, 0.0)? {
                cell.changes.insert(Figure::Tps, change_of(printed));
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

impl Row {
    /// Key, figure, and what a unit of the file is in that of the figure.
    fn figures(&self) -> [(&'static str, Figure, f64, &Numbers); 5] {
        [
            ("qps", Figure::Qps, 1.0, &self.qps),
            ("tps", Figure::Tps, 1.0, &self.tps),
            ("latency_ms", Figure::Latency, 1.0, &self.latency_ms),
            ("cpu_percent", Figure::Cpu, 1.0, &self.cpu_percent),
            ("memory_mb", Figure::Memory, MB, &self.memory_mb),
        ]
    }

    fn changes(&self) -> [(&'static str, Figure, &Numbers); 4] {
        [
            ("qps_change", Figure::Qps, &self.qps_change),
            ("tps_change", Figure::Tps, &self.tps_change),
            ("latency_change", Figure::Latency, &self.latency_change),
            ("cpu_change", Figure::Cpu, &self.cpu_change),
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
    columns: &[String],
) -> Result<(), Mistake> {
    if numbers.is_empty() || numbers.len() == columns.len() {
        return Ok(());
    }
    let reason = format!("{} numbers for {} columns", numbers.len(), columns.len());
    let remedy = format!("give one for each of {}", columns.join(", "));
    Err(Mistake::new(format!("{place}: {name}"), reason, remedy))
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
