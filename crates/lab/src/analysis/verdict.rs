//! What a comparison says, in one word.

use waggle_stats::{holm, percent};

use super::compare::Comparison;
use super::interval::Interval;
use super::paired::{self, ERROR};
use crate::metric::{Metric, More};

/// What a comparison says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It costs: worse than the baseline, also among all comparisons of its metric.
    Cost,
    /// It gains: better than the baseline, likewise.
    Gain,
    /// It is another one, likewise; whether that is good or bad depends.
    Change,
    /// No effect was found, which is not the same as none.
    Below {
        /// An effect of this size would have been found in 4 of 5 cases or more, also among all comparisons of its
        /// metric, %: the one that was seen is no larger. Not a number where the baseline is 0.
        detectable_percent: f64,
    },
    /// The effect is proven to be smaller than what the suite cares for. Not said of a rate where the server was not
    /// saturated, since costs do not show in it there.
    Free {
        /// The margin within which it is, %.
        below_percent: f64,
    },
    /// The arm could not keep up with a fixed rate where the baseline could, and how often.
    Overloaded(String),
    /// Too few windows count, and why.
    Void(String),
    /// It was not run, and why.
    NotRun(String),
}

impl Verdict {
    /// Why something was not run of which nobody says why.
    pub(crate) const NOT_YET: &str = "the run has not come to it";

    /// Why there is no number of what was run.
    pub(crate) const NOT_MEASURED: &str = "not measured";

    /// Whether there is no window to speak of.
    pub(crate) fn is_not_yet(&self) -> bool {
        matches!(self, Verdict::NotRun(why) if why == Verdict::NOT_YET)
    }

    /// Whether there is a result.
    pub fn is_known(&self) -> bool {
        !matches!(self, Verdict::Overloaded(_) | Verdict::Void(_) | Verdict::NotRun(_))
    }
}

/// Gives every comparison its adjusted p value and its verdict.
///
/// A cost, a gain or a change is what stays significant at 5 % after Holm, over all comparisons of the metric, and
/// leaves out zero by the interval that is printed, too; the comparisons of the baseline with itself are a
/// family apart. Of the rest, the effect is proven to be small where two one-sided tests put it within `margin_percent`; that is claimed of each comparison at
/// 5 %, without correction.
pub(super) fn judge(comparisons: &mut [Comparison], margin_percent: f64) {
    for metric in Metric::ALL {
        for is_control in [false, true] {
            let mut family: Vec<&mut Comparison> = comparisons
                .iter_mut()
                .filter(|it| it.metric == metric && it.is_control() == is_control)
                .filter(|it| it.verdict.is_known())
                .collect();
            let findings: Vec<Finding> = family.iter().map(|it| it.finding()).collect();
            for (comparison, judged) in family.iter_mut().zip(among(&findings, margin_percent)) {
                comparison.p_holm = judged.p_holm;
                comparison.detectable_percent = judged.detectable_percent;
                comparison.verdict = judged.verdict;
            }
        }
    }
}

/// What is found in 4 of 5 cases among this many comparisons, %, from what is found by itself: the first step of
/// Holm asks for [`ERROR`] divided by their number.
pub(super) fn detectable_among(comparisons: usize, alone_percent: f64, pairs: usize) -> f64 {
    let of = |error| paired::found(pairs, error).unwrap_or(f64::NAN);
    let farther = of(ERROR / comparisons.max(1) as f64) / of(ERROR);
    percent((1.0 + alone_percent / 100.0).ln() * farther)
}

/// What a verdict rests on.
pub(super) struct Finding {
    pub(super) more: More,
    /// The change, or the difference where there is no ratio: its sign counts, and whether it leaves out zero.
    pub(super) effect: Interval,
    /// Pairs, or blocks.
    pub(super) count: usize,
    pub(super) p_student: f64,
    pub(super) proven_percent: f64,
    /// Whether a cost would show in it.
    pub(super) shows_costs: bool,
    /// Taken by itself.
    pub(super) detectable_percent: f64,
}

/// What is said of a finding among others.
pub(super) struct Judged {
    pub(super) p_holm: f64,
    pub(super) detectable_percent: f64,
    pub(super) verdict: Verdict,
}

/// Judges the findings of a family.
pub(super) fn among(family: &[Finding], margin_percent: f64) -> Vec<Judged> {
    let p: Vec<f64> = family.iter().map(|it| it.p_student).collect();
    let judged = |(finding, p_holm): (&Finding, f64)| {
        let alone_percent = finding.detectable_percent;
        let detectable_percent = detectable_among(family.len(), alone_percent, finding.count);
        let verdict = finding.verdict(p_holm, detectable_percent, margin_percent);
        Judged { p_holm, detectable_percent, verdict }
    };
    family.iter().zip(holm(&p)).map(judged).collect()
}

impl Finding {
    fn verdict(&self, p_holm: f64, detectable_percent: f64, margin_percent: f64) -> Verdict {
        let is_more = self.effect.value > 0.0;
        if p_holm <= ERROR && !self.effect.holds(0.0) {
            match self.more {
                More::Depends => Verdict::Change,
                More::Gain if is_more => Verdict::Gain,
                More::Cost if !is_more => Verdict::Gain,
                More::Gain | More::Cost => Verdict::Cost,
            }
        } else if self.shows_costs && self.proven_percent <= margin_percent {
            Verdict::Free { below_percent: self.proven_percent }
        } else {
            let seen = self.effect.value.abs();
            let is_ratio = detectable_percent.is_finite();
            let detectable_percent = if is_ratio { detectable_percent.max(seen) } else { f64::NAN };
            Verdict::Below { detectable_percent }
        }
    }
}

impl Comparison {
    fn finding(&self) -> Finding {
        Finding {
            more: self.metric.more(self.cell.load.is_open()),
            effect: self.effect(),
            count: self.pairs,
            p_student: self.p_student,
            proven_percent: self.proven_percent,
            shows_costs: self.shows_costs(),
            detectable_percent: self.detectable_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Finding = Finding {
        more: More::Cost,
        effect: Interval { low: 0.1, value: 4.2, high: 5.1 },
        count: 6,
        p_student: 0.001,
        proven_percent: 6.0,
        shows_costs: true,
        detectable_percent: 3.0,
    };

    #[test]
    fn what_is_printed_as_a_cost_leaves_out_zero_in_its_interval() {
        let of = |low: f64| Finding {
            effect: Interval { low, ..FOUND.effect },
            p_student: 0.0045,
            ..FOUND
        };
        assert_eq!(among(&[of(0.1)], 1.0)[0].verdict, Verdict::Cost);
        // Nothing is below what is smaller than what was seen.
        let below = among(&[of(-0.1)], 1.0).remove(0);
        assert_eq!(below.verdict, Verdict::Below { detectable_percent: 4.2 });
        assert!((below.detectable_percent - 3.0).abs() < 1e-9, "{}", below.detectable_percent);
    }

    #[test]
    fn more_is_a_cost_or_a_gain_or_neither() {
        let says = |more, value: f64| {
            let effect = Interval { low: value - 1.0, value, high: value + 1.0 };
            among(&[Finding { more, effect, count: 8, ..FOUND }], 1.0).remove(0).verdict
        };
        let both = |more| [says(more, 4.0), says(more, -4.0)];
        assert_eq!(both(More::Cost), [Verdict::Cost, Verdict::Gain]);
        assert_eq!(both(More::Gain), [Verdict::Gain, Verdict::Cost]);
        assert_eq!(both(More::Depends), [Verdict::Change, Verdict::Change]);
    }

    #[test]
    fn among_many_comparisons_an_effect_has_to_be_larger_to_be_found() {
        assert!((detectable_among(1, 5.0, 8) - 5.0).abs() < 1e-9);
        // Of 8 pairs at 0.05 / 200 and at 0.05: 8.35 standard errors by 3.28.
        let of_many = detectable_among(200, 5.0, 8);
        assert!((13.0..13.4).contains(&of_many), "{of_many}");
        assert!(detectable_among(200, f64::NAN, 8).is_nan());
    }
}
