//! What a trial has shown.

use waggle_model::{Arm, Collector, Times, Tossed, Trial};
use waggle_stats::{ArmDifference, arm_difference};

/// The share of the shortest and of the longest processor times of each arm that is left out of its mean: a statement
/// in whose time an interrupt falls, or that the host took away, is no price of ours.
pub const TRIM: f64 = 0.02;
/// The chance that an interval is wrong, however often one looks at it.
pub const ALPHA: f64 = 0.05;

/// Processor time that is added to each statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Nanoseconds per statement; below 0 by chance.
    pub ns: f64,
    /// Half of the width of the 95 % interval, nanoseconds.
    pub half_width_ns: f64,
    /// Processor time of a statement of the first arm, nanoseconds.
    pub base_ns: f64,
    /// Statements of both arms.
    pub statements: u64,
}

impl Price {
    /// What an arm adds to another, by the processor times of both; `None` where there are too few.
    pub(crate) fn between(before: &Times, after: &Times) -> Option<Price> {
        let found = arm_difference(&before.counts_and_sums(), &after.counts_and_sums(), TRIM)?;
        let half_width_ns = found.half_width(ALPHA);
        let ArmDifference { count, base, value, .. } = found;
        Some(Price { ns: value, half_width_ns, base_ns: base, statements: count })
    }

    /// A part of the time of a statement of the first arm, in percent.
    pub fn percent(&self, ns: f64) -> f64 {
        100.0 * ns / self.base_ns
    }

    /// It, and the ends of its interval, nanoseconds.
    pub fn span(&self) -> [f64; 3] {
        [self.ns, self.ns - self.half_width_ns, self.ns + self.half_width_ns]
    }

    /// Whether the interval holds a value.
    pub fn holds(&self, ns: f64) -> bool {
        (self.ns - ns).abs() <= self.half_width_ns
    }

    /// How many times as many statements it takes until the half-width is `wanted`.
    pub fn factor_for(&self, wanted_ns: f64) -> f64 {
        (self.half_width_ns / wanted_ns).powi(2)
    }
}

/// What an arm collects that the one before does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The collector.
    pub collector: Collector,
    /// What it costs; `None` where there were too few statements.
    pub price: Option<Price>,
}

/// The statements of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmSeen {
    /// What was collected of them.
    pub collectors: Vec<Collector>,
    /// From the arm before to this one; the first one has none.
    pub step: Option<Step>,
    /// How many they were.
    pub statements: u64,
    /// Their processor times.
    pub processor: Times,
    /// From the request to the last send.
    pub latency: Times,
}

/// What a trial has shown so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// As they are in the trial.
    pub arms: Vec<ArmSeen>,
    /// From the first arm to the last.
    pub total: Option<Price>,
    /// What the last arm costs the statement after it on the same thread, beside the first one: a cold cache.
    pub carried_over: Option<Price>,
    /// What the program idled more in the last arm than in the first, nanoseconds per statement; `None` if it did not.
    pub injected_ns: Option<f64>,
}

impl Proof {
    /// Compares the arms.
    pub fn of(trial: &Trial, tossed: &Tossed) -> Proof {
        let of_arm = |arm: usize| Times::sum(tossed.processor.iter().map(|row| &row[arm]));
        let after_arm = |arm: usize| Times::sum(&tossed.processor[arm]);
        let processor: Vec<Times> = (0..trial.arms.len()).map(of_arm).collect();
        let last = processor.len() - 1;
        let total = Price::between(&processor[0], &processor[last]);
        let step = |at: usize| {
            let (before, arm) = (&trial.arms[at.checked_sub(1)?], &trial.arms[at]);
            let is_new = |collector: &&Collector| !before.collectors.contains(collector);
            let collector = *arm.collectors.iter().find(is_new)?;
            let price = Price::between(&processor[at - 1], &processor[at]);
            // All have one base, so that their percents add up.
            let base = total.as_ref().map(|total| total.base_ns);
            let price = price.zip(base).map(|(price, base_ns)| Price { base_ns, ..price });
            Some(Step { collector, price })
        };
        let seen = |(at, arm): (usize, &Arm)| ArmSeen {
            collectors: arm.collectors.clone(),
            step: step(at),
            statements: tossed.latency[at].count(),
            processor: processor[at].clone(),
            latency: tossed.latency[at].clone(),
        };
        let arms: Vec<ArmSeen> = trial.arms.iter().enumerate().map(seen).collect();
        let injected =
            |arm: usize| tossed.injected_ns[arm] as f64 / (arms[arm].statements.max(1)) as f64;
        let injects = trial.inject_ns > 0 && arms.iter().all(|arm| arm.statements > 0);
        Proof {
            total,
            carried_over: Price::between(&after_arm(0), &after_arm(last)),
            injected_ns: injects.then(|| injected(last) - injected(0)),
            arms,
        }
    }

    /// What each arm costs beside the one before it.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.arms.iter().filter_map(|arm| arm.step.as_ref())
    }

    /// Statements in all.
    pub fn statements(&self) -> u64 {
        self.arms.iter().map(|arm| arm.statements).sum()
    }

    /// Statements of which nothing was collected.
    pub fn left_out(&self) -> u64 {
        let is_left_out = |arm: &&ArmSeen| !arm.collectors.contains(&Collector::Statements);
        self.arms.iter().filter(is_left_out).map(|arm| arm.statements).sum()
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::Bucket;

    use super::*;
    use crate::{Ladder, ladder};
    use Collector::{Statements, Waits};

    fn times(ns: u64, count: u64) -> Times {
        let half = |place, ns| Bucket { place, count: count / 2, sum_ns: ns * (count / 2) };
        Times { buckets: vec![half(0, ns - 10), half(1, ns + 10)] }
    }

    fn trial() -> Trial {
        ladder(&Ladder {
            collectors: vec![Statements, Waits],
            left_out: None,
            inject_ns: 0,
            by_digest: false,
        })
    }

    #[test]
    fn each_collector_costs_what_its_arm_adds() {
        // What the arm before does costs nothing here.
        let row = || vec![times(10_000, 2_000), times(10_500, 2_000), times(10_600, 2_000)];
        let tossed = Tossed {
            processor: vec![row(), row(), row()],
            latency: vec![times(30_000, 6_000), times(30_100, 6_000), times(30_200, 6_000)],
            injected_ns: vec![0; 3],
            ..Tossed::default()
        };
        let proof = Proof::of(&trial(), &tossed);
        let steps: Vec<_> =
            proof.steps().map(|step| (step.collector, step.price.unwrap().ns)).collect();
        assert_eq!(steps, [(Statements, 500.0), (Waits, 100.0)]);
        let total = proof.total.unwrap();
        assert_eq!((total.ns, total.base_ns, total.percent(total.ns)), (600.0, 10_000.0, 6.0));
        assert!(total.holds(600.0) && !total.holds(0.0), "{total:?}");
        assert!(proof.carried_over.unwrap().holds(0.0));
        assert_eq!(
            (proof.statements(), proof.left_out(), proof.injected_ns),
            (18_000, 6_000, None)
        );
    }

    #[test]
    fn what_nobody_counted_has_no_price() {
        let tossed = Tossed {
            processor: vec![vec![Times::default(); 3]; 3],
            latency: vec![Times::default(); 3],
            injected_ns: vec![0; 3],
            ..Tossed::default()
        };
        let proof = Proof::of(&trial(), &tossed);
        assert_eq!((proof.total, proof.carried_over, proof.injected_ns), (None, None, None));
        assert_eq!(proof.steps().filter(|step| step.price.is_none()).count(), 2);
    }
}
