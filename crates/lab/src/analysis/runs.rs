//! Whether two runs of a suite differ.

use waggle_stats::{Estimate, difference, holm, percent};

use crate::metric::Metric;
use crate::suite::{Scenario, Suite};
use crate::window::{Cell, Window};

use super::Matrix;
use super::compare::Compared;
use super::interval::Interval;
use super::paired::{ERROR, POWER};

/// How far the effect of a scenario in one run is from that in another.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDifference {
    /// Under what.
    pub cell: Cell,
    /// The scenario, [`Window::AGAIN`] or [`Window::ALONE`].
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
    /// The smallest difference in % that is found in 4 of 5 cases among all differences.
    pub detectable_percent: f64,
    /// P value of "the effect is the same in both", by Welch's t test.
    pub p_student: f64,
    /// The same, adjusted by Holm for all differences, whatever their metric: two runs that are alike are called
    /// different in 5 of 100 cases at most.
    pub p_holm: f64,
}

impl RunDifference {
    /// Whether the two runs differ in it, also among all that is compared.
    pub fn is_different(&self) -> bool {
        self.p_holm <= ERROR
    }
}

/// What sets two runs of a suite apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDifferences {
    /// Of every effect that was measured in both.
    pub found: Vec<RunDifference>,
    /// Effects that were measured in both and are not among them: a value is 0, so that there is no ratio.
    pub without_ratio: usize,
    /// Effects that were measured in one of the two only.
    pub in_one_only: usize,
}

impl RunDifferences {
    /// Whether the runs differ in any effect.
    pub fn is_any(&self) -> bool {
        self.found.iter().any(RunDifference::is_different)
    }
}

/// Compares the effects of two runs, wherever both have one. The levels themselves are not compared: two
/// runs are at different times, and nothing tells what differs between them from what differs between
/// any two hours of one machine. The baseline against itself (A/A) is among what is compared, and so is the arm that is
/// alone on a server; what orders compare with other scenarios is not. Each run has the scenarios of its suite.
pub fn compare_runs(suites: [&Suite; 2], one: &[Window], other: &[Window]) -> RunDifferences {
    let [first, second] = suites;
    // One of them may be confined to some of the scenarios.
    let mut suite = first.clone();
    let is_new = |it: &&Scenario| !first.scenarios.iter().any(|known| known.name == it.name);
    suite.scenarios.extend(second.scenarios.iter().filter(is_new).cloned());
    // What is alone on a server depends on the scenarios that are run.
    let [one_alone, other_alone] = suites.map(|it| it.also_alone().map(|one| one.name.as_str()));
    let is_same = one_alone.is_some() && one_alone == other_alone;
    let alone = is_same.then(|| Matrix::alone(&suite, &suite.baseline));
    let matrices = std::iter::once(Matrix::of(&suite, &suite.baseline)).chain(alone);
    apart(&matrices.collect::<Vec<_>>(), one, other)
}

/// How much larger an effect is in the second run, with Welch's interval of 95 %. Both are logarithms of ratios. `None`
/// where either has no spread.
pub fn runs_apart(one: &Estimate, other: &Estimate) -> Option<Estimate> {
    difference(one, other, 1.0 - ERROR)
}

/// The effects of these matrices in one run against those in another.
pub(super) fn apart(matrices: &[Matrix<'_>], one: &[Window], other: &[Window]) -> RunDifferences {
    let of_run = |run| matrices.iter().flat_map(move |matrix| matrix.compare(run));
    let both = of_run(one).zip(of_run(other));
    let is_known = |it: &Compared| it.comparison.effect().is_known();
    let (both, in_one): (Vec<_>, Vec<_>) = both
        .filter(|(one, other)| is_known(one) || is_known(other))
        .partition(|(one, other)| is_known(one) && is_known(other));
    let measured = both.len();
    let mut differences: Vec<(RunDifference, Estimate)> = both
        .into_iter()
        .filter_map(|(one, other)| {
            let between = runs_apart(&one.log_ratio?, &other.log_ratio?)?;
            let p_student = between.p_value(0.0)?;
            let interval = Interval { low: between.low, value: between.value, high: between.high };
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
    let p: Vec<f64> = differences.iter().map(|(it, _)| it.p_student).collect();
    let error = ERROR / p.len().max(1) as f64;
    for ((it, between), p_holm) in differences.iter_mut().zip(holm(&p)) {
        it.p_holm = p_holm;
        it.detectable_percent = between.detectable(error, POWER).map_or(f64::NAN, percent);
    }
    RunDifferences {
        without_ratio: measured - differences.len(),
        in_one_only: in_one.len(),
        found: differences.into_iter().map(|(it, _)| it).collect(),
    }
}
