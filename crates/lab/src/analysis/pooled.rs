//! One effect of a scenario from all its cells.
//!
//! Every cell counts alike. The cells of a block are measured on the same servers, and what sets two
//! servers apart by chance is common to all of them. So the mean over cells is formed in each block, and the
//! interval rests on the blocks, as that of a cell does. It is of the mean over these cells, not over others
//! that there could be.

use waggle_stats::{block_means, percent};

use crate::metric::Metric;
use crate::window::{Cell, Window};

use super::compare::{CellWindows, Compared};
use super::interval::Interval;
use super::paired::Paired;
use super::verdict::{Finding, Verdict, among};

/// The mean effect of a scenario over cells.
#[derive(Clone, Debug, PartialEq)]
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
    /// How many cells have a part in it.
    pub cells: usize,
    /// How many blocks have a part in it.
    pub blocks: usize,
    /// The mean change in %, of which each cell has the same weight, with the interval of the sign-flip test
    /// over the blocks, 95 %.
    pub percent: Interval,
    /// P value of "no effect" by the t test over the blocks.
    pub p_student: f64,
    /// The same, adjusted by Holm for the means of this metric with this baseline: those that are of one workload each
    /// are a family, and so are those over all workloads. The baseline with itself is a family apart.
    pub p_holm: f64,
    /// The smallest change in % that this many blocks with this noise find in 4 of 5 cases among
    /// all means over which `p_holm` is adjusted.
    pub detectable_percent: f64,
    /// The smallest margin in % within which the change is proven to be, by two one-sided tests at 5 % (the t test and the
    /// sign-flip test).
    pub proven_percent: f64,
    /// Whether a cost would show in each of the cells.
    pub(crate) shows_costs: bool,
    /// What follows.
    pub verdict: Verdict,
}

impl PooledEffect {
    /// Over all cells of an order and over those of each workload, wherever there are two or more.
    pub(super) fn all(compared: &[Compared], margin_percent: f64) -> Vec<PooledEffect> {
        let mut pooled = Vec::new();
        let mut known: Vec<Group<'_>> = Vec::new();
        for group in compared.iter().flat_map(Group::of) {
            if !known.contains(&group) {
                pooled.extend(group.pool(compared));
                known.push(group);
            }
        }
        judge(&mut pooled, margin_percent);
        pooled
    }

    fn finding(&self) -> Finding {
        Finding {
            more: self.metric.more(self.is_open),
            effect: self.percent,
            count: self.blocks,
            p_student: self.p_student,
            proven_percent: self.proven_percent,
            shows_costs: self.shows_costs,
            detectable_percent: self.detectable_percent,
        }
    }
}

/// The mean change of an arm over some cells, %, as that of [`PooledEffect`]; over one cell that of
/// [`Comparison`](super::Comparison). `None` where no cell has a ratio.
pub(crate) fn change_over(
    windows: &[Window],
    cells: &[&Cell],
    baseline: &str,
    arm: &str,
    metric: Metric,
) -> Option<Interval> {
    let compare = |cell: &&Cell| CellWindows::of(windows, cell, baseline).compare(arm, metric);
    let compared: Vec<Compared> = cells.iter().map(compare).collect();
    match with_a_part(compared.iter()).as_slice() {
        [one] => Some(one.comparison.percent),
        several => Some(mean_of(several)?.interval.map(percent)),
    }
}

/// The cells of which the mean is formed: those that have a ratio. Those with half of the pairs of the fullest, or fewer,
/// have no part in it, since the few would speak for all of its blocks; unless only one other cell would be left.
fn with_a_part<'a>(compared: impl Iterator<Item = &'a Compared>) -> Vec<&'a Compared> {
    let cells: Vec<&Compared> = compared.filter(|one| !one.log_ratios.is_empty()).collect();
    let fullest = cells.iter().map(|one| one.log_ratios.len()).max().unwrap_or(0);
    let (full, few): (Vec<&Compared>, Vec<&Compared>) =
        cells.iter().partition(|one| one.log_ratios.len() * 2 > fullest);
    if full.len() < 2 && !few.is_empty() { cells } else { full }
}

/// The mean over cells in each block, on the scale of logarithms.
fn mean_of(cells: &[&Compared]) -> Option<Paired> {
    let cells: Vec<&[(u32, f64)]> = cells.iter().map(|one| one.log_ratios.as_slice()).collect();
    Paired::of(&block_means(&cells)?)
}

/// Gives every mean its adjusted p value and its verdict.
fn judge(pooled: &mut [PooledEffect], margin_percent: f64) {
    for metric in Metric::ALL {
        for (is_control, is_of_all) in [(false, false), (false, true), (true, false), (true, true)]
        {
            let is_member = |it: &&mut PooledEffect| {
                let is_alike =
                    Window::is_control(&it.arm) == is_control && it.workload.is_none() == is_of_all;
                it.metric == metric && is_alike
            };
            let mut family: Vec<&mut PooledEffect> = pooled.iter_mut().filter(is_member).collect();
            let findings: Vec<Finding> = family.iter().map(|it| it.finding()).collect();
            for (it, judged) in family.iter_mut().zip(among(&findings, margin_percent)) {
                it.p_holm = judged.p_holm;
                it.detectable_percent = judged.detectable_percent;
                it.verdict = judged.verdict;
            }
        }
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
            is_open: it.cell.load.is_open(),
            order: it.cell.order.as_deref(),
            workload,
        })
    }

    fn holds(&self, compared: &Compared) -> bool {
        Group::of(compared).contains(self)
    }

    fn pool(&self, compared: &[Compared]) -> Option<PooledEffect> {
        let cells = with_a_part(compared.iter().filter(|one| self.holds(one)));
        if cells.len() < 2 {
            return None;
        }
        let paired = mean_of(&cells)?;
        let detectable_percent = percent(paired.detectable);
        Some(PooledEffect {
            arm: self.arm.to_owned(),
            baseline: self.baseline.to_owned(),
            metric: self.metric,
            workload: self.workload.map(str::to_owned),
            order: self.order.map(str::to_owned),
            is_open: self.is_open,
            cells: cells.len(),
            blocks: paired.count,
            percent: paired.interval.map(percent),
            p_student: paired.p_student,
            p_holm: paired.p_student,
            detectable_percent,
            proven_percent: percent(paired.proven),
            shows_costs: cells.iter().all(|one| one.comparison.shows_costs()),
            verdict: Verdict::Below { detectable_percent },
        })
    }
}
