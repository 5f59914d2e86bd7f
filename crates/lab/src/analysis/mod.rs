//! From the windows that were kept to what they say.
//!
//! Each arm is compared with the baseline of its own block, so that what drifts from block to block
//! drops out. Which of the two is measured first is left to chance, so that what drifts within a block
//! favours neither. A block in which a window of the baseline is void counts for no arm; a void window of
//! an arm takes that pair away, and so does an interruption of the run between the two. The arm that is
//! set as the baseline is ([`Window::AGAIN`]) is compared like any other: what is found there is noise.

pub mod paired;

mod compare;
mod floor;
mod foreseen;
mod interval;
mod pair;
mod pooled;
mod runs;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeSet;

use crate::metric::Metric;
use crate::suite::{Order, Suite};
use crate::window::{Cell, Window};

pub use compare::Comparison;
pub use floor::Floor;
pub use foreseen::{Foreseen, NEIGHBOURS_DIFFER_BY_PERCENT};
pub use interval::Interval;
pub use paired::PAIRS_MIN;
pub use pooled::PooledEffect;
pub(crate) use pooled::change_over;
pub use runs::{RunDifference, RunDifferences, compare_runs, runs_apart};
pub use verdict::Verdict;

use compare::{CellWindows, Compared};

/// What the windows of a run say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// Every scenario in every cell by every metric, the second arm of the baseline among them.
    pub comparisons: Vec<Comparison>,
    /// The mean effect of each scenario over cells.
    pub pooled: Vec<PooledEffect>,
    /// What arms that are set alike say, by metric.
    pub floor: Vec<Floor>,
    /// Windows that do not count.
    pub void: usize,
    /// All windows.
    pub windows: usize,
}

impl Analysis {
    /// The comparison of an arm with another one in a cell by a metric.
    pub fn find(
        &self,
        baseline: &str,
        cell: &Cell,
        arm: &str,
        metric: Metric,
    ) -> Option<&Comparison> {
        let is_it = |it: &&Comparison| {
            it.metric == metric && it.arm == arm && it.baseline == baseline && it.cell == *cell
        };
        self.comparisons.iter().find(is_it)
    }

    /// The comparisons of arms with those that set the same: [`Window::AGAIN`], which tells the noise, and
    /// [`Window::ALONE`], which tells what sharing a server does. Not those of an order that is always the same: there the
    /// second arm of the baseline comes next to the first. And of what belongs to one server start only those of one cell:
    /// other cells have the same servers, and would say the same again.
    pub fn of_noise<'a>(&'a self, suite: &'a Suite) -> impl Iterator<Item = &'a Comparison> {
        let mut told = BTreeSet::new();
        let is_alike = |one: &&Comparison| match one.arm.as_str() {
            Window::AGAIN => true,
            Window::ALONE => one.baseline != suite.baseline,
            _ => false,
        };
        let told_at_random = self.comparisons.iter().filter(|one| !suite.is_as_listed(&one.cell));
        told_at_random.filter(is_alike).filter(move |one| {
            let mut is_first =
                || told.insert((one.metric, &one.arm, suite.keeps_servers(&one.cell)));
            !one.metric.is_per_server_start() || (one.verdict.is_known() && is_first())
        })
    }
}

/// Compares every scenario of a suite with one of them, such as the default of the server; without the noise floor.
pub(crate) fn analyse_against(suite: &Suite, baseline: &str, windows: &[Window]) -> Analysis {
    Matrix::of(suite, baseline).analyse(windows)
}

/// Compares what the orders of a suite ask for: every scenario with the suite's baseline, then with the
/// other scenarios that an order compares with, each pair once. What is compared with another scenario
/// than the baseline is a family of its own for each of them; so is the arm that is alone on a
/// server ([`Window::ALONE`]) with the baseline, and with its like that shares a server.
pub fn analyse_all(suite: &Suite, windows: &[Window]) -> Analysis {
    let mut analysis = analyse_against(suite, &suite.baseline, windows);
    let alone = suite.also_alone().into_iter().flat_map(|one| [&suite.baseline, &one.name]);
    let alone = alone.map(|baseline| Matrix::alone(suite, baseline));
    for matrix in Matrix::steps(suite).into_iter().chain(alone) {
        let further = matrix.analyse(windows);
        analysis.comparisons.extend(further.comparisons);
        analysis.pooled.extend(further.pooled);
    }
    analysis.floor = Floor::all(analysis.of_noise(suite));
    analysis
}

/// What is compared.
struct Matrix<'a> {
    /// Cells that have the baseline, with the other arms of each.
    cells: Vec<(Cell, Vec<&'a str>)>,
    baseline: &'a str,
    /// Smaller effects are of no interest, %.
    margin_percent: f64,
}

impl<'a> Matrix<'a> {
    fn of(suite: &'a Suite, baseline: &'a str) -> Matrix<'a> {
        let is_other = |name: &&str| *name != baseline;
        let again = (baseline == suite.baseline).then_some(Window::AGAIN);
        let names = suite.scenarios.iter().map(|scenario| scenario.name.as_str());
        let arms: Vec<&str> = names.filter(is_other).chain(again).collect();
        let with_arms = |cell: Cell| {
            let arms: Vec<&str> =
                arms.iter().copied().filter(|arm| suite.has(&cell, arm)).collect();
            (cell, arms)
        };
        let cells = suite.cells().into_iter().filter(|cell| suite.has(cell, baseline));
        Matrix {
            cells: cells.map(with_arms).collect(),
            baseline,
            margin_percent: suite.margin_percent,
        }
    }

    /// A matrix for each scenario but the baseline with which orders compare, over all of these. The arms before it in
    /// the list of an order were compared with it the other way round.
    fn steps(suite: &'a Suite) -> Vec<Matrix<'a>> {
        let before = |order: &'a Order, name: &str| {
            let mut against = order.against.iter();
            let at = against.position(|other| other == name)?;
            Some(&order.against[..at])
        };
        let step = |name: &'a str| {
            let mut matrix = Matrix::of(suite, name);
            matrix.cells.retain_mut(|(cell, arms)| {
                let before = suite.order(cell).and_then(|order| before(order, name));
                let is_told = |arm: &str| before.unwrap_or_default().iter().any(|told| told == arm);
                arms.retain(|arm| *arm != suite.baseline && !is_told(arm));
                before.is_some()
            });
            matrix
        };
        let is_run = |name: &&str| suite.scenarios.iter().any(|one| one.name == **name);
        let others = suite.compared_with().into_iter().filter(|name| *name != suite.baseline);
        others.filter(is_run).map(step).collect()
    }

    /// The arm that is alone on a server, in the cells that have it.
    fn alone(suite: &'a Suite, baseline: &'a str) -> Matrix<'a> {
        let mut matrix = Matrix::of(suite, baseline);
        matrix.cells.retain(|(cell, _)| suite.has(cell, Window::ALONE));
        matrix.cells.iter_mut().for_each(|(_, arms)| *arms = vec![Window::ALONE]);
        matrix
    }

    /// Every arm in every cell by every metric, without a verdict yet.
    fn compare(&self, windows: &[Window]) -> Vec<Compared> {
        let mut compared = Vec::new();
        for (cell, arms) in &self.cells {
            let in_cell = CellWindows::of(windows, cell, self.baseline);
            for arm in arms {
                compared.extend(Metric::ALL.map(|metric| in_cell.compare(arm, metric)));
            }
        }
        compared
    }

    fn analyse(&self, windows: &[Window]) -> Analysis {
        let compared = self.compare(windows);
        let pooled = PooledEffect::all(&compared, self.margin_percent);
        let mut comparisons: Vec<Comparison> =
            compared.into_iter().map(|compared| compared.comparison).collect();
        verdict::judge(&mut comparisons, self.margin_percent);
        Analysis {
            floor: Vec::new(),
            comparisons,
            pooled,
            void: windows.iter().filter(|window| window.counted().is_none()).count(),
            windows: windows.len(),
        }
    }
}
