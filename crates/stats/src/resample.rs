//! Intervals and tests that assume no distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::Random;
use crate::interval::mean;

/// Up to so many values every pattern of signs is tried (2^14 of them), beyond it some are drawn.
const EXACT_MAX: usize = 14;

/// The two-sided p value of "the differences are symmetric about zero": the share of sign patterns
/// whose mean is at least as far from zero as the one seen (Fisher, "The design of experiments",
/// 1935, section 21). All patterns up to 14 values; else `draws` random ones, where the one seen
/// counts with them, so that p is never zero (Phipson and Smyth, "Permutation p-values should
/// never be zero", 2010). `None` without values.
pub fn sign_flip(values: &[f64], draws: usize, random: &mut Random) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let seen = values.iter().sum::<f64>().abs();
    // Equal sums may differ in the last bits, by the order of addition.
    let limit = seen - values.iter().map(|value| value.abs()).sum::<f64>() * 1e-12;
    let flipped = |negative: &mut dyn FnMut(usize) -> bool| {
        let signed = |(at, value): (usize, &f64)| if negative(at) { -value } else { *value };
        values.iter().enumerate().map(signed).sum::<f64>().abs()
    };
    if values.len() <= EXACT_MAX {
        let patterns = 1_u32 << values.len();
        let is_far = |pattern: &u32| flipped(&mut |at| pattern >> at & 1 == 1) >= limit;
        let far = (0..patterns).filter(is_far).count();
        return Some(far as f64 / f64::from(patterns));
    }
    let far = (0..draws).filter(|_| flipped(&mut |_| random.coin()) >= limit).count();
    Some((far + 1) as f64 / (draws + 1) as f64)
}

/// The interval of the mean by the bias-corrected and accelerated bootstrap (Efron, "Better
/// bootstrap confidence intervals", JASA 1987; with the acceleration by the jackknife, Efron and
/// Tibshirani 1993, equation 14.15). It follows skewed data, where Student's interval is
/// symmetric. `None` below two values, without draws, or where all values are equal.
pub fn bootstrap_interval(
    values: &[f64],
    confidence: f64,
    draws: usize,
    random: &mut Random,
) -> Option<(f64, f64)> {
    let count = values.len();
    let is_possible = count >= 2 && draws > 0 && confidence > 0.0 && confidence < 1.0;
    let normal = Normal::new(0.0, 1.0).ok().filter(|_| is_possible)?;
    let centre = mean(values);
    let mut resampled: Vec<f64> = (0..draws)
        .map(|_| (0..count).map(|_| values[random.below(count)]).sum::<f64>() / count as f64)
        .collect();
    resampled.sort_by(f64::total_cmp);
    let below = resampled.partition_point(|value| *value < centre);
    let bias = normal.inverse_cdf(below as f64 / draws as f64);
    let power = |exponent: i32| values.iter().map(|x| (x - centre).powi(exponent)).sum::<f64>();
    let acceleration = power(3) / (6.0 * power(2).powf(1.5));
    if !bias.is_finite() || !acceleration.is_finite() {
        return None;
    }
    let end = |share: f64| {
        let shifted = bias + normal.inverse_cdf(share);
        let share = normal.cdf(bias + shifted / (1.0 - acceleration * shifted));
        resampled[((share * draws as f64) as usize).min(draws - 1)]
    };
    Some((end((1.0 - confidence) / 2.0), end((1.0 + confidence) / 2.0)))
}

/// The confidence to ask of [`bootstrap_interval`] so that the interval of a mean of few values is as
/// long as Student's: the bootstrap divides by `n` where the variance wants `n - 1`, and takes the
/// normal distribution where the values are few. The quantile `z` becomes `t(n-1) · √(n / (n-1))`
/// (Hesterberg, "What teachers should know about the bootstrap", The American Statistician 2015, the
/// expanded percentile interval). `None` below two values.
pub fn expanded(confidence: f64, count: usize) -> Option<f64> {
    let freedom = count.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let is_share = confidence > 0.0 && confidence < 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| is_share)?;
    let reach = student.inverse_cdf(0.5 + confidence / 2.0) * (count as f64 / freedom).sqrt();
    Some(2.0 * Normal::new(0.0, 1.0).ok()?.cdf(reach) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expanded_confidence_is_that_of_a_longer_normal_interval() {
        // t(7) = 2.364624, times the root of 8/7: 2.527890, which a normal value exceeds on either
        // side with the chance 0.011475.
        let got = expanded(0.95, 8).unwrap();
        assert!((got - (1.0 - 0.011_475)).abs() < 2e-6, "{got}");
        assert!((expanded(0.95, 1_000_000).unwrap() - 0.95).abs() < 1e-5);
        assert_eq!(expanded(0.95, 1), None);
        assert_eq!(expanded(1.0, 8), None);
    }

    #[test]
    fn fishers_plants_give_fishers_p() {
        // Darwin's maize as in "The design of experiments", section 17: 15 differences. Fisher
        // counts 1,726 of the 32,768 patterns as far as the one seen: p = 0.05267.
        let maize = [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
        let p = sign_flip(&maize, 200_000, &mut Random::seeded(1)).unwrap();
        assert!((p - 0.05267).abs() < 0.002, "{p}");
    }

    #[test]
    fn eight_equal_signs_give_the_smallest_p_of_eight() {
        let differences = [1.0, 2.0, 1.5, 0.1, 3.0, 2.0, 1.0, 0.2];
        let p = sign_flip(&differences, 0, &mut Random::seeded(1));
        assert_eq!(p, Some(2.0 / 256.0));
        assert_eq!(sign_flip(&[], 10, &mut Random::seeded(1)), None);
        assert_eq!(sign_flip(&[0.0, 0.0], 10, &mut Random::seeded(1)), Some(1.0));
    }

    #[test]
    fn for_symmetric_data_the_bootstrap_agrees_with_student() {
        let values: Vec<f64> = (-100..=100).map(f64::from).collect();
        let student = crate::mean_interval(&values, 0.95).unwrap();
        let (low, high) = bootstrap_interval(&values, 0.95, 4000, &mut Random::seeded(5)).unwrap();
        assert!((low - student.low).abs() < 0.6, "{low} {student:?}");
        assert!((high - student.high).abs() < 0.6, "{high} {student:?}");
    }

    #[test]
    fn the_bootstrap_leans_to_the_side_of_the_long_tail() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(i % 12).exp2()).collect();
        let centre = mean(&values);
        let (low, high) = bootstrap_interval(&values, 0.95, 4000, &mut Random::seeded(5)).unwrap();
        assert!(high - centre > centre - low, "{low} {centre} {high}");
    }

    #[test]
    fn what_cannot_be_resampled_gives_nothing() {
        let mut random = Random::seeded(1);
        assert_eq!(bootstrap_interval(&[1.0], 0.95, 100, &mut random), None);
        assert_eq!(bootstrap_interval(&[1.0, 1.0], 0.95, 100, &mut random), None);
        assert_eq!(bootstrap_interval(&[1.0, 2.0], 0.95, 0, &mut random), None);
    }
}
