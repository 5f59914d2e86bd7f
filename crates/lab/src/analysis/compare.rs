//! One arm against its baseline, in one cell, by one metric.

use waggle_stats::{Estimate, percent};

use crate::metric::Metric;
use crate::window::{self, Cell, Window};

use super::interval::Interval;
use super::pair::{Blocks, Pair, Pairs, Side};
use super::paired::{self, PAIRS_MIN, Paired};
use super::verdict::Verdict;

/// The arm may lack this many blocks more than the baseline does, or fewer, as a share of all. Of eight, two are more.
const ONE_SIDED_MAX: f64 = 0.2;
/// From this share of the processors of the server on, a closed load saturates it.
const SATURATED_FROM: f64 = 0.95;

/// An arm against its baseline. Numbers that could not be measured are not a number.
///
/// Changes are of the arm against the baseline, `100 · (arm / baseline - 1)` %. Where a value is 0 there
/// is no ratio, and `difference` alone is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Under what.
    pub cell: Cell,
    /// The scenario, [`Window::AGAIN`] or [`Window::ALONE`].
    pub arm: String,
    /// The scenario that it is compared with.
    pub baseline: String,
    /// By what.
    pub metric: Metric,
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that do not, because a window of either arm is void, or because the run was interrupted
    /// between the two.
    pub void: usize,
    /// The baseline, in the unit of the metric: geometric mean over the pairs (arithmetic, where a value
    /// is 0).
    pub baseline_value: f64,
    /// The arm, likewise.
    pub arm_value: f64,
    /// The change in %, from the mean of the logarithms of the ratios within pairs, with the interval of
    /// the sign-flip test, 95 %.
    pub percent: Interval,
    /// The mean difference within pairs in the unit of the metric, with the same kind of interval.
    pub difference: Interval,
    /// The change in % with the interval of the bootstrap, 95 %; absent for fewer than forty pairs.
    pub bootstrap: Option<Interval>,
    /// P value of "no effect" by the sign-flip test.
    pub p_sign_flip: f64,
    /// P value of "no effect" by the t test.
    pub p_student: f64,
    /// The p value of the t test, adjusted by Holm for all comparisons of this metric with this
    /// baseline: every cell with every scenario. The comparisons of the baseline with itself are a
    /// family of their own, and so are those with another scenario than the baseline, over all orders.
    pub p_holm: f64,
    /// The smallest change in % that this many pairs with this noise find in 4 of 5 cases among all
    /// comparisons over which `p_holm` is adjusted.
    pub detectable_percent: f64,
    /// The smallest margin in % within which the change is proven to be, by two one-sided tests at 5 % (the t test and the
    /// sign-flip test).
    pub proven_percent: f64,
    /// Whether the baseline was saturated: a closed load with at least 95 % of the processors in use that the
    /// server may use. Below it rates say nothing of the cost. Absent where the use was not measured.
    pub is_saturated: Option<bool>,
    /// What follows.
    pub verdict: Verdict,
}

/// A comparison with its effect on the scale of logarithms.
pub(super) struct Compared {
    pub(super) comparison: Comparison,
    pub(super) log_ratio: Option<Estimate>,
    /// That of each pair with its block; empty where there is no ratio.
    pub(super) log_ratios: Vec<(u32, f64)>,
}

/// The windows of a cell with their baseline.
pub(super) struct CellWindows<'a> {
    cell: &'a Cell,
    baseline: &'a str,
    blocks: Blocks<'a>,
    is_saturated: Option<bool>,
}

impl<'a> CellWindows<'a> {
    pub(super) fn of(windows: &'a [Window], cell: &'a Cell, baseline: &'a str) -> CellWindows<'a> {
        let blocks = Blocks::of(windows, cell);
        let share = window::mean(blocks.windows(baseline), |measured| measured.host_share);
        let is_saturated = share.map(|share| !cell.load.is_open() && share >= SATURATED_FROM);
        CellWindows { cell, baseline, blocks, is_saturated }
    }

    /// Compares an arm. The verdict stands only once all comparisons are known.
    pub(super) fn compare(&self, arm: &str, metric: Metric) -> Compared {
        if self.blocks.windows(arm).next().is_none() {
            return self.without(arm, metric, 0, Verdict::NotRun(Verdict::NOT_YET.to_owned()));
        }
        if [arm, self.baseline].into_iter().any(|it| self.blocks.never_tells(it, metric)) {
            return self.without(arm, metric, 0, Verdict::NotRun(Verdict::NOT_MEASURED.to_owned()));
        }
        let Pairs { pairs, void, void_alone, overloaded, shared } =
            self.blocks.pairs(self.baseline, arm, metric);
        if shared > 0 && pairs.len() < PAIRS_MIN {
            let why = "memory of arms that share a server cannot be told apart";
            return self.without(arm, metric, void, Verdict::NotRun(why.to_owned()));
        }
        let (count, made) = (pairs.len(), self.blocks.count(arm));
        let overloaded = self::overloaded(overloaded, made);
        let unfair = one_sided(void_alone, made);
        let verdict = match (self.judge(arm, metric, &pairs, void), overloaded, unfair) {
            (Some(judged), None, None) => return judged,
            (None, ..) if made < PAIRS_MIN => {
                Verdict::NotRun(format!("{made} blocks, {PAIRS_MIN} are needed"))
            }
            (_, Some(why), _) => Verdict::Overloaded(why),
            (Some(_), None, Some(why)) => Verdict::Void(why),
            (None, None, _) => {
                let counts = format!("pairs that count: {count}, void: {void}");
                Verdict::Void(format!("{counts}, needed: {PAIRS_MIN}"))
            }
        };
        let mut compared = self.without(arm, metric, void, verdict);
        compared.comparison.pairs = count;
        compared
    }

    fn judge(&self, arm: &str, metric: Metric, pairs: &[Pair], void: usize) -> Option<Compared> {
        let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
        let log_ratios: Option<Vec<f64>> = pairs.iter().map(Pair::log_ratio).collect();
        let ratio = log_ratios.as_ref().and_then(|logs| Paired::of(logs));
        let has_ratio = ratio.is_some();
        let difference = paired::interval(&differences)?;
        let tested = ratio.or_else(|| Paired::of(&differences))?;
        let share = |log: f64| if has_ratio { percent(log) } else { f64::NAN };

        let detectable_percent = share(tested.detectable);
        let unknown = self.without(arm, metric, void, Verdict::Below { detectable_percent });
        let comparison = Comparison {
            pairs: pairs.len(),
            baseline_value: level(pairs.iter().map(|pair| pair.baseline), has_ratio),
            arm_value: level(pairs.iter().map(|pair| pair.arm), has_ratio),
            percent: tested.interval.map(share),
            difference,
            bootstrap: tested.bootstrap.filter(|_| has_ratio).map(|it| it.map(share)),
            p_sign_flip: tested.p_sign_flip,
            p_student: tested.p_student,
            detectable_percent,
            proven_percent: share(tested.proven),
            ..unknown.comparison
        };
        let blocks = pairs.iter().map(|pair| pair.block);
        let log_ratios = log_ratios.filter(|_| has_ratio).unwrap_or_default();
        Some(Compared {
            comparison,
            log_ratio: has_ratio.then_some(tested.student),
            log_ratios: blocks.zip(log_ratios).collect(),
        })
    }

    /// A comparison of which nothing is known but why.
    fn without(&self, arm: &str, metric: Metric, void: usize, verdict: Verdict) -> Compared {
        let comparison = Comparison {
            cell: self.cell.clone(),
            arm: arm.to_owned(),
            baseline: self.baseline.to_owned(),
            metric,
            pairs: 0,
            void,
            baseline_value: f64::NAN,
            arm_value: f64::NAN,
            percent: Interval::UNKNOWN,
            difference: Interval::UNKNOWN,
            bootstrap: None,
            p_sign_flip: f64::NAN,
            p_student: f64::NAN,
            p_holm: f64::NAN,
            detectable_percent: f64::NAN,
            proven_percent: f64::NAN,
            is_saturated: self.is_saturated,
            verdict,
        };
        Compared { comparison, log_ratio: None, log_ratios: Vec::new() }
    }
}

impl Comparison {
    /// Whether its arm is none of the scenarios, but sets what one of them does.
    pub fn is_control(&self) -> bool {
        Window::is_control(&self.arm)
    }

    /// Whether a cost would show in it. A server that is not saturated does as much as is asked of it, whatever that
    /// costs.
    pub(super) fn shows_costs(&self) -> bool {
        !self.metric.is_rate() || self.is_saturated == Some(true)
    }

    /// The effect that is judged: the change in %, or the difference where there is no ratio.
    pub fn effect(&self) -> Interval {
        if self.percent.is_known() { self.percent } else { self.difference }
    }
}

/// The geometric mean where there are ratios, or the arithmetic.
fn level(sides: impl Iterator<Item = Side> + Clone, has_ratio: bool) -> f64 {
    let mean = Side::mean(sides);
    mean.log.filter(|_| has_ratio).map_or(mean.value, f64::exp)
}

/// Why nothing may be said where the arm could not keep up with a fixed rate: the windows that are left are those in
/// which it did well.
fn overloaded(times: usize, blocks: usize) -> Option<String> {
    (times > 0).then(|| {
        format!("in {times} of {blocks} blocks, in which the baseline kept up with the arrivals")
    })
}

/// Why nothing may be said where windows of the arm alone, and windows of the baseline alone, are void in this many of
/// the blocks. What voids a dear arm more often leaves those of its windows in which it did well.
fn one_sided([arm, baseline]: [usize; 2], blocks: usize) -> Option<String> {
    let more = arm.abs_diff(baseline) as f64;
    (more > ONE_SIDED_MAX * blocks as f64).then(|| {
        format!(
            "of {blocks} blocks {arm} lack the arm alone and {baseline} the baseline alone, so that those which are left are \
             no fair choice"
        )
    })
}
