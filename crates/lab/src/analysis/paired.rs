//! What differences within pairs say.
//!
//! An arm and its baseline are measured close together, and chance says which of them comes first. Hence
//! what disturbs both is as likely to favour the one as the other: under "no effect" each difference
//! could as well have had the other sign, whether the disturbance drifts, lasts over many pairs or is
//! now and then enormous. The printed interval rests on that alone (it inverts the sign-flip test). The t
//! test adds the assumption of values near normal; it gives the p values that many comparisons need,
//! because of few pairs a sign-flip p cannot be small enough to survive a correction.

use waggle_stats::{
    Estimate, Random, detectable, mean_interval, sign_flip, sign_flip_interval, smallest_margin,
    studentised_interval,
};

use super::interval::Interval;

/// Fewer pairs have no interval: `2 / 2^5` sign patterns are more than 5 %.
pub const PAIRS_MIN: usize = 6;
/// The chance of a false alarm that is accepted.
pub(super) const ERROR: f64 = 0.05;
/// The chance with which an effect of the size called detectable is found.
pub(super) const POWER: f64 = 0.8;
/// Fewer pairs are not resampled: of 20 with heavy tails the interval would cover 92 % in place of 95.
const BOOTSTRAP_PAIRS_MIN: usize = 40;
/// Samples of the bootstrap, and patterns of signs where there are too many to try all.
const DRAWS: usize = 2000;
/// One report is computed from one set of windows: chance is the same each time.
const SEED: u64 = 1;

/// The mean of differences within pairs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Paired {
    /// How many.
    pub(super) count: usize,
    /// The mean with the interval of the sign-flip test.
    pub(super) interval: Interval,
    /// The mean with Student's interval.
    pub(super) student: Estimate,
    /// The studentised bootstrap's interval; absent for fewer than forty pairs, or where all are equal.
    pub(super) bootstrap: Option<Interval>,
    /// P value of "no effect" by the sign-flip test.
    pub(super) p_sign_flip: f64,
    /// P value of "no effect" by the t test.
    pub(super) p_student: f64,
    /// The smallest effect that this many pairs with this spread find in 4 of 5 cases, by itself.
    pub(super) detectable: f64,
    /// The smallest margin within which the effect is proven to be, by two one-sided tests: by the t test, and by the
    /// sign-flip test, whose interval of 90 % it holds.
    pub(super) proven: f64,
}

impl Paired {
    /// From one difference a pair, in the order of time. `None` below [`PAIRS_MIN`].
    pub(super) fn of(differences: &[f64]) -> Option<Paired> {
        let count = differences.len();
        let Intervals { interval, student, bootstrap } = Intervals::of(differences)?;
        let deviation = student.error * (count as f64).sqrt();
        Some(Paired {
            count,
            interval,
            bootstrap,
            p_sign_flip: sign_flip(differences, DRAWS, &mut Random::seeded(SEED))?,
            p_student: student.p_value(0.0)?,
            detectable: found(count, ERROR)? * deviation,
            proven: smallest_margin(&student, ERROR)?.max(proven_by_signs(differences)?),
            student,
        })
    }
}

/// The smallest true mean of this many differences that is found in 4 of 5 cases, in their standard deviation: the t test
/// has to find it with a chance `error` of a false alarm, and the interval of the sign-flip test, which is wide where
/// pairs are few, has to leave out zero. How large it has to be for that with 6 and with 7 pairs was found by simulation:
/// normal differences, as in the test below. `None` below [`PAIRS_MIN`].
pub(super) fn found(pairs: usize, error: f64) -> Option<f64> {
    let by_signs = match pairs {
        ..PAIRS_MIN => return None,
        6 => 1.79,
        7 => 1.35,
        8.. => 0.0,
    };
    Some(detectable(pairs, error, POWER)?.max(by_signs))
}

/// The mean of differences with its three intervals of 95 %.
pub struct Intervals {
    /// That of the sign-flip test, which is printed.
    pub interval: Interval,
    /// Student's.
    pub student: Estimate,
    /// That of the studentised bootstrap; absent for fewer than forty pairs, or where all are equal.
    pub bootstrap: Option<Interval>,
}

impl Intervals {
    /// `None` below [`PAIRS_MIN`].
    pub fn of(differences: &[f64]) -> Option<Intervals> {
        Some(Intervals {
            interval: interval(differences)?,
            student: student(differences)?,
            bootstrap: bootstrap(differences),
        })
    }
}

/// The mean of differences with Student's interval of 95 %. `None` below two.
pub fn student(differences: &[f64]) -> Option<Estimate> {
    mean_interval(differences, 1.0 - ERROR)
}

/// The mean of differences with the interval that is printed. `None` below [`PAIRS_MIN`].
pub fn interval(differences: &[f64]) -> Option<Interval> {
    interval_of(differences, 1.0 - ERROR)
}

/// The same with another confidence.
fn interval_of(differences: &[f64], confidence: f64) -> Option<Interval> {
    let value = differences.iter().sum::<f64>() / differences.len() as f64;
    let mut random = Random::seeded(SEED);
    let (low, high) = sign_flip_interval(differences, confidence, DRAWS, &mut random)?;
    Some(Interval { low, value, high })
}

/// The margin within which the effect is proven to be by the sign-flip test.
fn proven_by_signs(differences: &[f64]) -> Option<f64> {
    let within = interval_of(differences, 1.0 - 2.0 * ERROR)?;
    Some(within.low.abs().max(within.high.abs()))
}

/// Whether the effect is proven to be within a margin, by the t test and by the sign-flip test.
pub fn is_within(differences: &[f64], student: &Estimate, margin: f64) -> bool {
    // Where the quick test does not prove it, the other one is not asked.
    smallest_margin(student, ERROR).is_some_and(|least| least <= margin)
        && proven_by_signs(differences).is_some_and(|least| least <= margin)
}

fn bootstrap(differences: &[f64]) -> Option<Interval> {
    let count = differences.len();
    if count < BOOTSTRAP_PAIRS_MIN {
        return None;
    }
    let mut random = Random::seeded(SEED);
    let (low, high) = studentised_interval(differences, 1.0 - ERROR, DRAWS, &mut random)?;
    Some(Interval { low, value: differences.iter().sum::<f64>() / count as f64, high })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Box and Muller, "A note on the generation of random normal deviates", Annals of Mathematical Statistics 1958.
    fn normal(random: &mut Random) -> f64 {
        let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let (length, angle) = ((-2.0 * (1.0 - uniform()).ln()).sqrt(), TAU * uniform());
        length * angle.cos()
    }

    #[test]
    fn an_effect_of_the_size_called_detectable_is_found_in_about_4_of_5_cases() {
        for pairs in [6, 7, 8, 10] {
            let (mut random, effect) = (Random::seeded(4), found(pairs, ERROR).unwrap());
            let mut is_found = || {
                let differences: Vec<f64> =
                    (0..pairs).map(|_| effect + normal(&mut random)).collect();
                let paired = Paired::of(&differences).unwrap();
                paired.p_student <= ERROR && !paired.interval.holds(0.0)
            };
            let share = (0..1000).filter(|_| is_found()).count();
            assert!((770..=850).contains(&share), "{pairs} pairs: {share} of 1000");
        }
    }

    #[test]
    fn eight_differences_of_about_two_are_an_effect_of_two() {
        let paired = Paired::of(&[1.9, 2.3, 2.1, 1.7, 2.0, 2.2, 1.8, 2.4]).unwrap();
        assert!((paired.interval.value - 2.05).abs() < 1e-12);
        assert!(paired.interval.holds(2.05) && !paired.interval.holds(0.0));
        assert_eq!(paired.p_sign_flip, 2.0 / 256.0);
        assert!(paired.p_student < 1e-6, "{}", paired.p_student);
        assert_eq!(paired.bootstrap, None);
        // s = √(0.42 / 7) = 0.244949, times 1.1582.
        assert!((paired.detectable - 0.2837).abs() < 1e-4, "{}", paired.detectable);
        // 2.05 + 1.894579 · 0.244949 / √8 is 2.2141; the twelfth of the means of all subsets, (2.4 + 2.3 + 2.2 + 2.0) / 4,
        // is more.
        assert!((paired.proven - 2.225).abs() < 1e-9, "{}", paired.proven);
    }

    #[test]
    fn the_same_differences_say_the_same_each_time() {
        let differences: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 40) - 19.0).collect();
        let paired = Paired::of(&differences).unwrap();
        assert_eq!(Some(&paired), Paired::of(&differences).as_ref());
        assert!(paired.bootstrap.is_some_and(|interval| interval.holds(0.5)));
    }

    #[test]
    fn five_pairs_say_nothing_and_equal_ones_are_certain() {
        assert_eq!(Paired::of(&[1.0, 2.0, 1.5, 1.2, 1.8]), None);
        let paired = Paired::of(&[3.0; 6]).unwrap();
        assert_eq!(paired.interval, Interval { low: 3.0, value: 3.0, high: 3.0 });
        assert_eq!((paired.p_student, paired.detectable), (0.0, 0.0));
    }
}
