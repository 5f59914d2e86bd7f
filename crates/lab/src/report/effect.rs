//! One effect over the cells of a workload.

use crate::analysis::{Analysis, Comparison, Interval, PooledEffect, Verdict, change_over};
use crate::metric::Metric;
use crate::report::words;
use crate::window::{Cell, Window};

/// An arm against another by a metric, over the cells of one workload, one order and one kind of load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect<'a> {
    pub(super) arm: &'a str,
    pub(super) baseline: &'a str,
    pub(super) metric: Metric,
    pub(super) workload: &'a str,
    /// Absent where the suite has only one.
    pub(super) order: Option<&'a str>,
    /// Whether the loads have a fixed rate.
    pub(super) is_open: bool,
}

impl Effect<'_> {
    /// The mean over cells; `None` where fewer than two have numbers.
    pub(super) fn pooled<'a>(&self, analysis: &'a Analysis) -> Option<&'a PooledEffect> {
        analysis.pooled.iter().find(|one| self.is_pooled_as(one))
    }

    /// The change, %: the mean over cells, or that of the cell where only one has numbers; `None` where none
    /// has.
    pub(super) fn change(&self, analysis: &Analysis) -> Option<Interval> {
        let pooled = self.pooled(analysis).map(|one| one.percent);
        pooled.or_else(|| Some(self.alone(analysis)?.percent)).filter(Interval::is_known)
    }

    /// Its size over some of the cells as sources print it: the change in %, or the difference in the unit of
    /// the metric where [`words::is_absolute`]. Differences are not pooled: there is one where only one
    /// cell has numbers.
    pub(super) fn size(
        &self,
        analysis: &Analysis,
        windows: &[Window],
        cells: &[&Cell],
    ) -> Option<Interval> {
        let is_of = |one: &&Comparison| self.is_of(one) && cells.contains(&&one.cell);
        let size = match words::is_absolute(self.metric) {
            true => {
                let mut counted = analysis.comparisons.iter().filter(is_of);
                counted.next().filter(|_| counted.next().is_none())?.difference
            }
            false => change_over(windows, cells, self.baseline, self.arm, self.metric)?,
        };
        Some(size).filter(Interval::is_known)
    }

    /// Whether a cost, a gain or a change was shown, also among all comparisons of the metric.
    pub(super) fn is_shown(&self, analysis: &Analysis) -> bool {
        let of_cell = || Some(&self.alone(analysis)?.verdict);
        let verdict = self.pooled(analysis).map(|one| &one.verdict).or_else(of_cell);
        verdict.is_some_and(|verdict| {
            matches!(verdict, Verdict::Cost | Verdict::Gain | Verdict::Change)
        })
    }

    /// The comparison of the cell where only one has numbers.
    fn alone<'a>(&self, analysis: &'a Analysis) -> Option<&'a Comparison> {
        let mut counted = analysis.comparisons.iter().filter(|one| self.is_of(one));
        counted.next().filter(|_| counted.next().is_none())
    }

    fn is_of(&self, one: &Comparison) -> bool {
        one.verdict.is_known()
            && one.metric == self.metric
            && one.arm == self.arm
            && one.baseline == self.baseline
            && one.cell.workload == self.workload
            && one.cell.order.as_deref() == self.order
            && one.cell.load.is_open() == self.is_open
    }

    fn is_pooled_as(&self, one: &PooledEffect) -> bool {
        one.metric == self.metric
            && one.arm == self.arm
            && one.baseline == self.baseline
            && one.workload.as_deref() == Some(self.workload)
            && one.order.as_deref() == self.order
            && one.is_open == self.is_open
    }
}
