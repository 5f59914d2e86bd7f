//! What a source printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::SourceMetric;

/// What the tables of sources have columns for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Statements per second.
    Qps,
    /// Transactions per second.
    Tps,
    /// Mean latency of a transaction, ms.
    Latency,
    /// Use of the processors, %.
    Cpu,
    /// Memory beyond that of the baseline, bytes.
    Memory,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 5] =
        [Figure::Qps, Figure::Tps, Figure::Latency, Figure::Cpu, Figure::Memory];
}

/// A cell of a table of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Which table of the source it stands in.
    pub table: String,
    /// The workload.
    pub workload: String,
    /// Sessions.
    pub threads: u32,
    /// The scenario.
    pub scenario: String,
    /// The figures that were printed.
    pub figures: BTreeMap<Figure, f64>,
    /// Changes of figures against the baseline as they were printed, %; negative is less.
    pub changes: BTreeMap<Figure, f64>,
    /// Why a figure or its change contradicts something else in the source; it is out of the verdict then.
    pub contradictions: BTreeMap<Figure, String>,
}

/// What a source says of a scenario without figures: a change against the baseline, from one end to the
/// other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRange {
    /// The workload.
    pub workload: String,
    /// The scenario.
    pub scenario: String,
    /// What changes. Not memory, of which sources print amounts.
    pub figure: Figure,
    /// Lower end of the change, %; negative is less.
    pub low_percent: f64,
    /// Upper end, %.
    pub high_percent: f64,
    /// What the source says, in a sentence.
    pub says: String,
}

impl Published {
    /// The change of a figure against the baseline that follows from what was printed, %:
    /// `100 (x / baseline - 1)`. `None` where one of them was not printed.
    pub fn recomputed_percent(&self, baseline: &Published, figure: Figure) -> Option<f64> {
        let (value, base) = (self.figures.get(&figure)?, baseline.figures.get(&figure)?);
        (*base > 0.0).then(|| 100.0 * (value / base - 1.0))
    }
}

impl SourceMetric {
    /// As a figure.
    pub fn figure(self) -> Figure {
        match self {
            SourceMetric::Qps => Figure::Qps,
            SourceMetric::Tps => Figure::Tps,
        }
    }
}

/// A number as it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Printed {
    pub(super) value: f64,
    /// Half a unit of its last digit: as much as rounding can have taken or added.
    pub(super) half: f64,
}

impl Printed {
    /// `text` is the file that the number stands in: only there are the zeros at its end.
    pub(super) fn read(text: &str, number: &Spanned<f64>) -> Printed {
        let literal = text.get(number.span()).unwrap_or_default();
        let digits = literal.split_once('.').map_or("", |(_, digits)| digits);
        let places = digits.chars().take_while(char::is_ascii_digit).count();
        Printed { value: *number.get_ref(), half: 0.5 * 0.1_f64.powi(places as i32) }
    }

    pub(super) fn times(self, factor: f64) -> Printed {
        Printed { value: self.value * factor, half: self.half * factor }
    }

    pub(super) fn low(self) -> f64 {
        self.value - self.half
    }

    pub(super) fn high(self) -> f64 {
        self.value + self.half
    }

    /// Whether both can be the same number, rounded.
    pub(super) fn fits(self, other: Printed) -> bool {
        (self.value - other.value).abs() <= (self.half + other.half) * (1.0 + 1e-9)
    }
}

/// A cell as it was read, with what rounding can have done to its numbers.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) table: String,
    pub(super) workload: String,
    pub(super) threads: u32,
    pub(super) scenario: String,
    pub(super) figures: BTreeMap<Figure, Printed>,
    /// Changes against the baseline, %.
    pub(super) changes: BTreeMap<Figure, Printed>,
}

impl Entry {
    /// Whether both are of the same cell and scenario.
    pub(super) fn is_of(&self, workload: &str, threads: u32, scenario: &str) -> bool {
        self.workload == workload && self.threads == threads && self.scenario == scenario
    }

    /// How a person names it.
    pub(super) fn key(&self) -> String {
        let Entry { table, workload, threads, scenario, .. } = self;
        format!("published, {table}: {workload}, {threads} threads, {scenario}")
    }

    pub(super) fn published(self, contradictions: BTreeMap<Figure, String>) -> Published {
        let values = |all: BTreeMap<Figure, Printed>| {
            all.into_iter().map(|(figure, printed)| (figure, printed.value)).collect()
        };
        Published {
            figures: values(self.figures),
            changes: values(self.changes),
            contradictions,
            table: self.table,
            workload: self.workload,
            threads: self.threads,
            scenario: self.scenario,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Numbers {
        numbers: Vec<Spanned<f64>>,
    }

    #[test]
    fn the_zeros_at_the_end_of_a_printed_number_tell_how_it_was_rounded() {
        let text = "numbers = [ -21.30, 8.1, 47176, +0.855 ]";
        let numbers: Numbers = toml::from_str(text).unwrap();
        let printed: Vec<Printed> =
            numbers.numbers.iter().map(|number| Printed::read(text, number)).collect();
        let expected = [(-21.3, 0.005), (8.1, 0.05), (47176.0, 0.5), (0.855, 0.0005)];
        for (printed, (value, half)) in printed.iter().zip(expected) {
            assert_eq!(printed.value, value);
            assert!((printed.half - half).abs() < 1e-12, "{printed:?}");
        }
        assert!(!printed[0].fits(Printed { value: -21.31, half: 0.004 }));
        assert!(printed[0].fits(Printed { value: -21.31, half: 0.005 }));
    }
}
