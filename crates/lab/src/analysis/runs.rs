//! Whether two runs of a suite differ.

use serde::Serialize;
use waggle_stats::{Estimate, difference, holm, percent};

use crate::suite::Suite;
use crate::window::{Cell, Window};

use super::Matrix;
use super::compare::Compared;
use super::interval::Interval;
use super::metric::Metric;
use super::paired::{ERROR, POWER};

/// How far the effect of a scenario in one run is from that in another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDifference {
    /// Under what.
    pub cell: Cell,
    /// The scenario, or [`Window::AGAIN`].
    pub arm: String,
    /// The scenario that it is compared with.
    pub baseline: String,
    /// By what.
    pub metric: Metric,
    /// The change against the baseline in the first run, %.
    pub one: Interval,
    /// The change against the baseline in the second run, %.
    pub other: Interval,
    /// How much more the arm is, against its baseline, in the second run than in the first, %: with
    /// Welch's interval of 95 %.
    pub percent: Interval,
    /// The smallest difference in % that is found in 4 of 5 cases among all differences by this metric.
    pub detectable_percent: f64,
    /// P value of "the effect is the same in both", by Welch's t test.
    pub p_student: f64,
    /// The same, adjusted by Holm for all differences by this metric.
    pub p_holm: f64,
}

impl RunDifference {
    /// Whether the two runs differ, also among all that is compared by this metric.
    pub fn is_different(&self) -> bool {
        self.p_holm <= ERROR
    }
}

/// Compares the effects of two runs, wherever both have one. The levels themselves are not compared: two
/// runs are at different times, and nothing tells what differs between them from what differs between
/// any two hours of one machine. The baseline against itself (A/A) is among what is compared.
pub fn compare_runs(suite: &Suite, one: &[Window], other: &[Window]) -> Vec<RunDifference> {
    Matrix::of(suite, &suite.baseline).compare_runs(one, other)
}

/// How many effects that were measured in both runs are not among [`compare_runs`], since a value of theirs is 0 and
/// there is no ratio.
pub fn without_ratio(suite: &Suite, one: &[Window], other: &[Window]) -> usize {
    let matrix = Matrix::of(suite, &suite.baseline);
    let both = matrix.compare(one).into_iter().zip(matrix.compare(other));
    let is_left_out = |(one, other): &(Compared, Compared)| {
        let is_known = [one, other].iter().all(|it| it.comparison.effect().is_known());
        is_known && (one.log_ratio.is_none() || other.log_ratio.is_none())
    };
    both.filter(is_left_out).count()
}

impl Matrix<'_> {
    pub(super) fn compare_runs(&self, one: &[Window], other: &[Window]) -> Vec<RunDifference> {
        let both = self.compare(one).into_iter().zip(self.compare(other));
        let mut differences: Vec<(RunDifference, Estimate)> = both
            .filter_map(|(one, other)| {
                let between = difference(&one.log_ratio?, &other.log_ratio?, 1.0 - ERROR)?;
                let p_student = between.p_value(0.0)?;
                let interval =
                    Interval { low: between.low, value: between.value, high: between.high };
                let found = RunDifference {
                    cell: one.comparison.cell,
                    arm: one.comparison.arm,
                    baseline: one.comparison.baseline,
                    metric: one.comparison.metric,
                    one: one.comparison.percent,
                    other: other.comparison.percent,
                    percent: interval.map(percent),
                    p_student,
                    p_holm: p_student,
                    detectable_percent: f64::NAN,
                };
                Some((found, between))
            })
            .collect();
        for metric in Metric::ALL {
            let mut family: Vec<&mut (RunDifference, Estimate)> =
                differences.iter_mut().filter(|(it, _)| it.metric == metric).collect();
            let p: Vec<f64> = family.iter().map(|(it, _)| it.p_student).collect();
            let error = ERROR / family.len().max(1) as f64;
            for ((it, between), p_holm) in family.iter_mut().zip(holm(&p)) {
                it.p_holm = p_holm;
                it.detectable_percent = between.detectable(error, POWER).map_or(f64::NAN, percent);
            }
        }
        differences.into_iter().map(|(it, _)| it).collect()
    }
}
