//! One effect of a scenario from all its cells.
//!
//! Every cell counts alike. Its error would be a poor weight: of eight blocks it is itself uncertain by a
//! quarter. Two cells are pooled already: Student's interval of two is long, and holds the mean as often
//! as that of thirty-three, on noise with heavy tails too (`tests/coverage.rs`).
//!
//! The interval rests on how cells differ from each other. What the starts of servers do by chance is no
//! part of it, where the cells of a block are measured on the same ones: that is common to all of them,
//! and shows in the intervals of the cells only.

use serde::Serialize;
use waggle_stats::{Estimate, percent, random_effects};

use crate::window::{Cell, Load};

use super::compare::Compared;
use super::interval::Interval;
use super::metric::Metric;

/// The mean effect of a scenario over cells, which are allowed to differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledEffect {
    /// The scenario, or the second arm of the baseline.
    pub arm: String,
    /// The scenario that it is compared with.
    pub baseline: String,
    /// By what.
    pub metric: Metric,
    /// Over the cells of this workload; over all where absent.
    pub workload: Option<String>,
    /// The order of the scenarios in all of these cells; absent where the suite has only one.
    pub order: Option<String>,
    /// Whether over the cells with a fixed rate of arrival; else over those with a closed load. Times and
    /// rates mean different things in the two.
    pub is_open: bool,
    /// How many cells.
    pub cells: usize,
    /// The mean change in %, of which each cell has the same weight, with Student's interval over the
    /// cells, 95 %.
    pub percent: Interval,
    /// How far the true changes of cells are from each other: their standard deviation, %.
    pub between_percent: f64,
    /// The share of their spread that noise does not explain (I²), 0 to 1.
    pub heterogeneity: f64,
}

impl PooledEffect {
    /// Over all cells of an order and over those of each workload, wherever there are two or more.
    pub(super) fn all(compared: &[Compared], confidence: f64) -> Vec<PooledEffect> {
        let mut pooled = Vec::new();
        let mut known: Vec<Group<'_>> = Vec::new();
        for group in compared.iter().flat_map(Group::of) {
            if !known.contains(&group) {
                pooled.extend(group.pool(compared, confidence));
                known.push(group);
            }
        }
        pooled
    }
}

/// What is pooled.
#[derive(PartialEq)]
struct Group<'a> {
    arm: &'a str,
    baseline: &'a str,
    metric: Metric,
    is_open: bool,
    order: Option<&'a str>,
    workload: Option<&'a str>,
}

impl<'a> Group<'a> {
    fn of(compared: &'a Compared) -> [Group<'a>; 2] {
        let it = &compared.comparison;
        [None, Some(it.cell.workload.as_str())].map(|workload| Group {
            arm: &it.arm,
            baseline: &it.baseline,
            metric: it.metric,
            is_open: is_open(&it.cell),
            order: it.cell.order.as_deref(),
            workload,
        })
    }

    fn holds(&self, compared: &Compared) -> bool {
        Group::of(compared).contains(self)
    }

    fn pool(&self, compared: &[Compared], confidence: f64) -> Option<PooledEffect> {
        let effects: Vec<Estimate> =
            compared.iter().filter(|one| self.holds(one)).filter_map(|one| one.log_ratio).collect();
        let pooled = random_effects(&effects, confidence)?;
        let Estimate { low, value, high, .. } = pooled.effect;
        Some(PooledEffect {
            arm: self.arm.to_owned(),
            baseline: self.baseline.to_owned(),
            metric: self.metric,
            workload: self.workload.map(str::to_owned),
            order: self.order.map(str::to_owned),
            is_open: self.is_open,
            cells: effects.len(),
            percent: Interval { low, value, high }.map(percent),
            between_percent: percent(pooled.between),
            heterogeneity: pooled.heterogeneity,
        })
    }
}

fn is_open(cell: &Cell) -> bool {
    matches!(cell.load, Load::Open { .. })
}
