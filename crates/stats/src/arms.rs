//! The difference of two arms to which a coin gave each value.

/// Values of one arm in ascending groups: how many are in each, and their sum.
pub type Groups<'a> = &'a [(u64, u64)];

/// The difference of two means, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmDifference {
    /// Values of both arms.
    pub count: u64,
    /// Mean of the first arm.
    pub base: f64,
    /// Mean of the second arm less that of the first.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl ArmDifference {
    /// Half the length of an interval that holds the true difference at every moment at once, however often one looks,
    /// with the chance `1 - alpha`: the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas
    /// ("Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 2024).
    pub fn half_width(&self, alpha: f64) -> f64 {
        let log = -2.0 * alpha.ln();
        let rho_squared = (log + log.ln() + 1.0) / NARROWEST_AT;
        let t_rho = self.count as f64 * rho_squared;
        let inside = ((t_rho + 1.0) / (alpha * alpha)).ln();
        self.error * ((t_rho + 1.0) / t_rho * inside).sqrt()
    }
}

/// The number of values at which the interval is narrowest, beside that of a fixed number.
const NARROWEST_AT: f64 = 200_000.0;

/// Compares the means of both arms without the lowest and the highest `trim` of the values of each, with the error of Yuen
/// ("The two-sample trimmed t for unequal population variances", Biometrika 1974). Values of one group count as equal.
/// `None` where an arm has fewer than a hundred values.
pub fn arm_difference(first: Groups<'_>, second: Groups<'_>, trim: f64) -> Option<ArmDifference> {
    let trimmed = |groups| Trimmed::of(groups, trim).filter(|arm| arm.count >= COUNT_MIN);
    let [first, second] = [trimmed(first)?, trimmed(second)?];
    Some(ArmDifference {
        count: first.count + second.count,
        base: first.mean,
        value: second.mean - first.mean,
        error: (first.variance_of_mean + second.variance_of_mean).sqrt(),
    })
}

/// The mean without the lowest and the highest `trim` of the values; `None` without values.
pub fn trimmed_mean(groups: Groups<'_>, trim: f64) -> Option<f64> {
    Trimmed::of(groups, trim).map(|arm| arm.mean)
}

/// Fewer say nothing of a tail.
const COUNT_MIN: u64 = 100;

struct Trimmed {
    count: u64,
    mean: f64,
    variance_of_mean: f64,
}

impl Trimmed {
    fn of(groups: Groups<'_>, trim: f64) -> Option<Trimmed> {
        let count: u64 = groups.iter().map(|(count, _)| count).sum();
        if count == 0 {
            return None;
        }
        let mean_of = |(count, sum): &(u64, u64)| *sum as f64 / *count as f64;
        let cut = (count as f64 * trim).floor();
        let (low, high) = (cut, count as f64 - cut);
        let held = high - low;
        let (mut seen, mut sum) = (0.0, 0.0);
        let (mut least, mut most) = (f64::NAN, f64::NAN);
        let mut kept = Vec::with_capacity(groups.len());
        for group in groups {
            let (from, to) = (seen, seen + group.0 as f64);
            seen = to;
            let part = to.min(high) - from.max(low);
            if part > 0.0 {
                let value = mean_of(group);
                least = if least.is_nan() { value } else { least };
                most = value;
                sum += value * part;
                kept.push((value, part));
            }
        }
        let mean = sum / held;
        // What is cut off counts as the outermost that is left.
        let winsorised = (sum + cut * (least + most)) / count as f64;
        let squares = kept.iter().map(|(value, part)| (value - winsorised).powi(2) * part);
        let of_cut = cut * ((least - winsorised).powi(2) + (most - winsorised).powi(2));
        let squares: f64 = squares.sum::<f64>() + of_cut;
        Some(Trimmed { count, mean, variance_of_mean: squares / (held * (held - 1.0)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Values in groups of one.
    fn groups(values: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        values.into_iter().map(|value| (1, value)).collect()
    }

    /// Numbers with a long tail.
    fn drawn(random: &mut Random, count: usize, more: u64) -> Vec<(u64, u64)> {
        let tail = |random: &mut Random| if random.below(100) == 0 { 500_000 } else { 0 };
        groups((0..count).map(|_| 10_000 + more + random.below(10_000) as u64 + tail(random)))
    }

    #[test]
    fn without_trimming_it_is_the_difference_of_the_means_with_welchs_error() {
        let first = groups((0..200).map(|n| 100 + n % 10));
        let second = groups((0..100).map(|n| 200 + n % 10));
        let found = arm_difference(&first, &second, 0.0).unwrap();
        assert_eq!((found.count, found.base, found.value), (300, 104.5, 100.0));
        // The digits 0 to 9, of each as many, have 8.25 as variance.
        let of = |count: f64| 8.25 / (count - 1.0);
        assert!((found.error - (of(200.0) + of(100.0)).sqrt()).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_is_cut_off_does_not_count() {
        let quiet = groups((0..1_000).map(|n| 1_000 + n % 7));
        let wild = groups((0..1_000).map(|n| if n < 10 { 90_000_000 } else { 1_000 + n % 7 }));
        let found = arm_difference(&quiet, &wild, 0.02).unwrap();
        assert!(found.value.abs() < 0.5, "{found:?}");
    }

    #[test]
    fn few_values_say_nothing() {
        let few = groups(0..99);
        assert_eq!(arm_difference(&few, &groups(0..1_000), 0.02), None);
    }

    #[test]
    fn the_interval_holds_the_truth_at_every_look() {
        let mut random = Random::seeded(7);
        let (mut missed, trials) = (0, 200);
        for _ in 0..trials {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let misses = |first: &[(u64, u64)], second: &[(u64, u64)]| {
                let found = arm_difference(first, second, 0.02).unwrap();
                (found.value - 700.0).abs() > found.half_width(0.05)
            };
            let mut is_missed = false;
            for _ in 0..20 {
                first.extend(drawn(&mut random, 150, 0));
                second.extend(drawn(&mut random, 150, 700));
                first.sort_unstable_by_key(|(_, value)| *value);
                second.sort_unstable_by_key(|(_, value)| *value);
                is_missed |= misses(&first, &second);
            }
            missed += usize::from(is_missed);
        }
        assert!(missed <= trials / 20, "{missed} of {trials}");
    }

    #[test]
    fn it_is_narrow_where_there_are_many_values() {
        let one = ArmDifference { count: 400_000, base: 0.0, value: 0.0, error: 30.0 };
        assert!((85.0..95.0).contains(&one.half_width(0.05)), "{}", one.half_width(0.05));
    }
}
