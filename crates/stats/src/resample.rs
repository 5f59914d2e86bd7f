//! Intervals and tests that assume no distribution.

use crate::Random;
use crate::interval::mean_and_error;
use crate::typical::EXACT_MAX;

/// The two-sided p value of "the differences are symmetric about zero": the share of sign patterns
/// whose mean is at least as far from zero as the one seen (Fisher, "The design of experiments",
/// 1935, section 21). All patterns up to 14 values; else `draws` random ones, where the one seen
/// counts with them, so that p is never zero (Phipson and Smyth, "Permutation p-values should
/// never be zero", Statistical Applications in Genetics and Molecular Biology 9, 2010). `None` without values.
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

/// The interval of the mean by the symmetric studentised bootstrap (Hall, "On symmetric bootstrap
/// confidence intervals", Journal of the Royal Statistical Society B 1988): the quantile of
/// `|mean* - mean| / error*` over resamples takes the place of Student's. Of values with heavy tails it
/// covers what it says, where the bias-corrected and accelerated bootstrap is too short. `None` below two values, without
/// draws, or where all values are equal.
pub fn studentised_interval(
    values: &[f64],
    confidence: f64,
    draws: usize,
    random: &mut Random,
) -> Option<(f64, f64)> {
    let is_possible = draws > 0 && confidence > 0.0 && confidence < 1.0;
    let (seen, error) = mean_and_error(values).filter(|(_, error)| is_possible && *error > 0.0)?;
    let mut resample = vec![0.0; values.len()];
    let mut quotients: Vec<f64> = (0..draws)
        .filter_map(|_| {
            resample.fill_with(|| *random.pick(values));
            let (drawn, error) = mean_and_error(&resample)?;
            let quotient = (drawn - seen).abs() / error;
            Some(quotient).filter(|quotient| quotient.is_finite())
        })
        .collect();
    let last = quotients.len().checked_sub(1)?;
    let at = ((confidence * quotients.len() as f64) as usize).min(last);
    let reach = *quotients.select_nth_unstable_by(at, f64::total_cmp).1 * error;
    Some((seen - reach, seen + reach))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (low, high) =
            studentised_interval(&values, 0.95, 4000, &mut Random::seeded(5)).unwrap();
        assert!((low - student.low).abs() < 0.6, "{low} {student:?}");
        assert!((high - student.high).abs() < 0.6, "{high} {student:?}");
    }

    #[test]
    fn what_cannot_be_resampled_gives_nothing() {
        let mut random = Random::seeded(1);
        for (values, draws) in [(&[1.0][..], 100), (&[1.0, 1.0], 100), (&[1.0, 2.0], 0)] {
            assert_eq!(studentised_interval(values, 0.95, draws, &mut random), None);
        }
    }
}
