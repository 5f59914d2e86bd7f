//! What a comparison says, in one word.

use serde::Serialize;
use waggle_stats::holm;

use super::compare::Comparison;
use super::metric::Metric;
use super::paired::ERROR;

/// What a comparison says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It costs: worse than the baseline, also among all comparisons of its metric.
    Cost,
    /// It gains: better than the baseline, likewise.
    Gain,
    /// No effect was found, which is not the same as none.
    Below {
        /// An effect of this size would have been found in 4 of 5 cases, %; not a number where the
        /// baseline is 0.
        detectable_percent: f64,
    },
    /// The effect is proven to be smaller than what the suite cares for.
    Free {
        /// The margin within which it is, %.
        below_percent: f64,
    },
    /// Too few windows count, and why.
    Void(String),
    /// It was not run, and why.
    NotRun(String),
}

impl Verdict {
    /// Why something was not run of which nobody says why.
    pub(crate) const NOT_YET: &str = "the run has not come to it";

    /// Whether there is a result.
    pub fn is_known(&self) -> bool {
        !matches!(self, Verdict::Void(_) | Verdict::NotRun(_))
    }
}

/// Gives every comparison its adjusted p value and its verdict.
///
/// A cost or a gain is what stays significant at 5 % after Holm, over all comparisons of the metric; the
/// comparisons of the baseline with itself are a family apart. Of the rest, the effect is proven to be
/// small where two one-sided tests put it within `margin_percent`; that is claimed of each comparison at
/// 5 %, without correction.
pub(super) fn judge(comparisons: &mut [Comparison], margin_percent: f64) {
    for metric in Metric::ALL {
        for is_again in [false, true] {
            let mut family: Vec<&mut Comparison> = comparisons
                .iter_mut()
                .filter(|it| it.metric == metric && it.is_again() == is_again)
                .filter(|it| it.verdict.is_known())
                .collect();
            let p: Vec<f64> = family.iter().map(|it| it.p_student).collect();
            for (comparison, p_holm) in family.iter_mut().zip(holm(&p)) {
                comparison.p_holm = p_holm;
                comparison.verdict = verdict(comparison, margin_percent);
            }
        }
    }
}

fn verdict(comparison: &Comparison, margin_percent: f64) -> Verdict {
    let detectable_percent = comparison.detectable_percent;
    let below_percent = comparison.proven_percent;
    let is_more = comparison.effect().value > 0.0;
    if comparison.p_holm <= ERROR {
        if is_more == comparison.metric.is_gain() { Verdict::Gain } else { Verdict::Cost }
    } else if below_percent <= margin_percent {
        Verdict::Free { below_percent }
    } else {
        Verdict::Below { detectable_percent }
    }
}
