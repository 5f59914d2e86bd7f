//! One effect over several cells.

use crate::analysis::{Comparison, Interval, PooledEffect, Verdict, change_over};
use crate::metric::Metric;
use crate::report::group::Group;
use crate::report::{Absent, Report, words};
use crate::window::{Cell, Window};

/// An arm against another one over the cells of a group.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) report: Report<'a>,
    pub(super) group: &'a Group<'a>,
    /// A scenario, [`Window::AGAIN`] or [`Window::ALONE`].
    pub(super) arm: &'a str,
    pub(super) baseline: &'a str,
}

impl<'a> Line<'a> {
    /// The arms that were run in a group against one of them.
    pub(super) fn all(
        report: Report<'a>,
        group: &'a Group<'a>,
        baseline: &'a str,
    ) -> Vec<Line<'a>> {
        let is_of_suite = baseline == report.suite.baseline;
        let scenarios = group.scenarios.iter().filter(|one| one.name != baseline);
        let arms = scenarios.flat_map(|one| report.suite.arms_of(one));
        // Beside another scenario stands no verdict on the arm that is alone on a server.
        let arms = arms.filter(|arm| is_of_suite || *arm != Window::ALONE);
        let again = is_of_suite.then_some(Window::AGAIN);
        let line = |arm| Line { report, group, arm, baseline };
        arms.chain(again).map(line).filter(|line| line.cells_run().next().is_some()).collect()
    }

    /// What its arm sets.
    pub(super) fn scenario(&self) -> &'a str {
        self.report.suite.set_by(self.arm)
    }

    /// What it is called in a table.
    pub(super) fn name(&self) -> String {
        match self.arm {
            Window::AGAIN => format!("noise: {} again", self.baseline),
            Window::ALONE => format!("{} (alone)", self.scenario()),
            scenario => scenario.to_owned(),
        }
    }

    /// The cells in which it was run.
    pub(super) fn cells_run(&self) -> impl Iterator<Item = &'a Cell> + use<'a> {
        let Line { report, group, arm, baseline } = *self;
        group.cells.iter().filter(move |cell| report.was_run(baseline, cell, arm))
    }

    /// Its comparison in a cell.
    pub(super) fn answer(&self, cell: &Cell, metric: Metric) -> Result<&'a Comparison, Absent> {
        self.report.answer_against(self.baseline, cell, self.arm, metric)
    }

    /// The comparisons that have numbers.
    pub(super) fn counted(&self, metric: Metric) -> Vec<&'a Comparison> {
        self.group.cells.iter().filter_map(|cell| self.answer(cell, metric).ok()).collect()
    }

    /// The mean over cells; `None` where fewer than two have numbers.
    pub(super) fn pooled(&self, metric: Metric) -> Option<&'a PooledEffect> {
        let is_it = |one: &&PooledEffect| {
            one.metric == metric
                && one.arm == self.arm
                && one.baseline == self.baseline
                && one.workload.as_deref() == self.group.workload
                && one.order.as_deref() == self.group.order_of_cells()
                && one.is_open == self.group.is_open
        };
        self.report.analysis.pooled.iter().find(is_it)
    }

    /// The change, %: the mean over cells, or that of the cell where only one has numbers.
    pub(super) fn change(&self, metric: Metric) -> Option<Interval> {
        let alone = || match self.counted(metric).as_slice() {
            [one] => Some(one.percent),
            _ => None,
        };
        let change = self.pooled(metric).map(|one| one.percent).or_else(alone);
        change.filter(Interval::is_known)
    }

    /// The size over some of the cells as sources print it: the change in %, or the difference in the unit of
    /// the metric where [`words::is_absolute`]. Differences are not pooled: there is one where only one
    /// cell has numbers.
    pub(super) fn size(&self, metric: Metric, cells: &[&Cell]) -> Option<Interval> {
        let size = match words::is_absolute(metric) {
            true => {
                let mut counted = self.counted(metric);
                counted.retain(|one| cells.contains(&&one.cell));
                let [one] = counted[..] else { return None };
                one.difference
            }
            false => change_over(self.report.windows, cells, self.baseline, self.arm, metric)?,
        };
        Some(size).filter(Interval::is_known)
    }

    /// The verdict on [`Report::verdict_metric`]: that of the only cell, or that on the mean over cells.
    pub(super) fn verdict(&self) -> Verdict {
        let metric = self.report.verdict_metric();
        match (self.counted(metric).as_slice(), self.pooled(metric)) {
            ([one], _) => one.verdict.clone(),
            ([_, _, ..], Some(pooled)) => pooled.verdict.clone(),
            ([_, _, ..], None) => {
                Verdict::Void("its cells have too few blocks in common".to_owned())
            }
            ([], _) => self.absent(metric),
        }
    }

    /// Why there are no numbers. One reason stands for all cells: that something was not run comes last.
    pub(super) fn absent(&self, metric: Metric) -> Verdict {
        let why = |cell: &Cell| self.answer(cell, metric).err().map(|Absent(verdict)| verdict);
        let is_not_run = |one: &Verdict| matches!(one, Verdict::NotRun(_));
        let of_run = self.cells_run().filter_map(why).min_by_key(is_not_run);
        let first = of_run.or_else(|| self.group.cells.iter().find_map(why));
        first.unwrap_or_else(|| Verdict::Void(words::NO_RATIO.to_owned()))
    }

    /// How many cells have a part in the verdict, where it is not all, and in which the arm could not keep up.
    pub(super) fn cells_that_count(&self) -> Option<String> {
        let metric = self.report.verdict_metric();
        let counted = self.pooled(metric).map_or_else(|| self.counted(metric).len(), |it| it.cells);
        let is_overloaded =
            |cell: &&Cell| matches!(self.answer(cell, metric), Err(Absent(Verdict::Overloaded(_))));
        let overloaded = self.group.cells.iter().filter(is_overloaded);
        let overloaded: Vec<String> = overloaded.map(|cell| words::load(cell.load)).collect();
        let count = format!("cells that count: {counted} of {}", self.group.cells.len());
        match overloaded.is_empty() {
            false => Some(format!("{count}; overloaded: {}", overloaded.join(", "))),
            true => (counted < self.group.cells.len()).then_some(count),
        }
    }

    /// A note on a rate, where closed loads left processors idle in some cells.
    pub(super) fn below_saturation(&self, metric: Metric, cells: &[&Cell]) -> Option<String> {
        let mut counted = self.counted(metric);
        counted.retain(|one| cells.contains(&&one.cell));
        let below = counted.iter().filter(|one| one.is_saturated == Some(false)).count();
        let is_told = metric.is_rate() && !self.group.is_open && below > 0;
        is_told
            .then(|| format!("{below} of {} cells are {}", counted.len(), words::BELOW_SATURATION))
    }
}
