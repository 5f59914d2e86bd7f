//! The noise floor: the baseline compared with itself.

use waggle_stats::{median, most_by_chance};

use crate::metric::Metric;
use crate::window::Window;

use super::compare::Comparison;
use super::paired::ERROR;

/// What the comparisons of the baseline with itself (A/A) say of a metric. Whatever they find is wrong. Of one that
/// shares a server with itself alone on a server that need not be so: others may leave something behind there.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// Of what.
    pub metric: Metric,
    /// How many there were, one a cell of a run.
    pub comparisons: usize,
    /// Those whose interval of 95 % leaves out "no effect".
    pub false_alarms: usize,
    /// Half the length of their intervals, median, %; not a number where no ratio could be formed.
    pub half_width_percent: f64,
    /// Mean of what they find, %: where it is far from 0, not all of that is chance. Not a number likewise.
    pub mean_percent: f64,
}

impl Floor {
    /// The floor of every metric by which the baseline was compared with itself, in one run or in several; other
    /// comparisons are passed over.
    pub fn all<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Vec<Floor> {
        Floor::of_arm(comparisons, Window::AGAIN)
    }

    /// The same of [`Window::ALONE`]: how often it was told apart from its like, and by how much.
    pub fn of_sharing<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Vec<Floor> {
        Floor::of_arm(comparisons, Window::ALONE)
    }

    fn of_arm<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>, arm: &str) -> Vec<Floor> {
        let is_known = |it: &&Comparison| it.arm == arm && it.verdict.is_known();
        let again: Vec<&Comparison> = comparisons.into_iter().filter(is_known).collect();
        let floor = |metric: Metric| {
            let of_metric = || again.iter().filter(move |it| it.metric == metric);
            let widths = of_metric().map(|it| it.percent.half_width());
            let found = of_metric().map(|it| it.percent.value).filter(|value| value.is_finite());
            let found: Vec<f64> = found.collect();
            Floor {
                metric,
                comparisons: of_metric().count(),
                false_alarms: of_metric().filter(|it| !it.effect().holds(0.0)).count(),
                half_width_percent: median(widths.filter(|width| width.is_finite()).collect())
                    .unwrap_or(f64::NAN),
                mean_percent: found.iter().sum::<f64>() / found.len() as f64,
            }
        };
        Metric::ALL.into_iter().map(floor).filter(|floor| floor.comparisons > 0).collect()
    }

    /// The most false alarms that intervals of 95 % explain: more have a chance of at most `0.05 / 13`, so that in
    /// 95 of 100 studies none of the 13 metrics has more, if comparisons are independent (the inequality of Bonferroni, as in Dunn,
    /// "Multiple comparisons among means", JASA 1961).
    pub fn false_alarms_max(&self) -> usize {
        self.most(ERROR / Metric::ALL.len() as f64)
    }

    /// The same of one metric by itself: more have a chance of at most 0.05, so that one of 13 metrics often has more.
    pub fn false_alarms_max_alone(&self) -> usize {
        self.most(ERROR)
    }

    fn most(&self, beyond: f64) -> usize {
        most_by_chance(self.comparisons, ERROR, beyond).unwrap_or(self.comparisons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_comparisons_may_have_nineteen_false_alarms() {
        let floor = Floor {
            metric: Metric::Qps,
            comparisons: 200,
            false_alarms: 0,
            half_width_percent: 1.0,
            mean_percent: 0.0,
        };
        assert_eq!((floor.false_alarms_max(), floor.false_alarms_max_alone()), (19, 15));
    }
}
