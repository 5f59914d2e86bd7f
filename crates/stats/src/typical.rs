//! The interval that belongs to the sign-flip test.

use crate::Random;

/// Up to this many values every pattern of signs is tried and the mean of every subset taken (2^14 of them), beyond it some
/// are drawn.
pub(crate) const EXACT_MAX: usize = 14;
/// Random bits that are drawn at once.
const BITS: usize = 64;

/// All true means that the sign-flip test ([`crate::sign_flip`]) does not reject, which is a simple
/// interval: the means of all subsets of the values cut the line into pieces, each of which holds the
/// truth with the same chance (Hartigan, "Using subsample values as typical values", JASA 1969). It
/// supposes that each difference is as likely above the truth as below it by the same amount, and
/// nothing else: neither a normal distribution nor one common to all. That is so by design where it is
/// left to chance which half of a pair comes first, whatever drifts or lasts longer than a pair. Where
/// there are more than 14 values, `draws` random subsets stand for all.
///
/// The confidence is that asked for or a little more: 95.3 % for 95 % of 8 values. `None` if there are
/// too few values, below 6 for 95 %.
pub fn sign_flip_interval(
    values: &[f64],
    confidence: f64,
    draws: usize,
    random: &mut Random,
) -> Option<(f64, f64)> {
    let mut means = if values.len() <= EXACT_MAX {
        every_mean(values)
    } else {
        (0..draws).filter_map(|_| some_mean(values, random)).collect()
    };
    let cut = ((1.0 - confidence) / 2.0 * (means.len() + 1) as f64).floor() as usize;
    let is_share = confidence > 0.0 && confidence < 1.0;
    let last = means.len().checked_sub(cut).filter(|last| cut > 0 && cut <= *last && is_share)?;
    let low = *means.select_nth_unstable_by(cut - 1, f64::total_cmp).1;
    let high = *means.select_nth_unstable_by(last, f64::total_cmp).1;
    Some((low, high))
}

/// The mean of every subset but the empty one.
fn every_mean(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let with = |(sum, count): &(f64, f64)| (sum + value, count + 1.0);
        let more: Vec<(f64, f64)> = sums.iter().map(with).collect();
        sums.extend(more);
    }
    sums.into_iter().skip(1).map(|(sum, count)| sum / count).collect()
}

/// The mean of a random subset; `None` if it is empty.
fn some_mean(values: &[f64], random: &mut Random) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for some in values.chunks(BITS) {
        let bits = random.bits() & (u64::MAX >> (BITS - some.len()));
        count += bits.count_ones();
        // A product instead of a branch, which no processor can predict.
        sum +=
            some.iter().enumerate().map(|(at, value)| value * (bits >> at & 1) as f64).sum::<f64>();
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_flip;

    #[test]
    fn of_seven_values_the_third_mean_from_either_end_is_taken() {
        // The means of subsets, from below: 1, 1.5 of {1, 2}, 2. From above: 64, 48, 40 of {16, 64}.
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let interval = sign_flip_interval(&values, 0.95, 0, &mut Random::seeded(1));
        assert_eq!(interval, Some((2.0, 40.0)));
    }

    #[test]
    fn of_six_values_it_reaches_from_the_least_to_the_greatest_and_five_are_too_few() {
        let values = [3.0, 1.0, 2.0, 6.0, 5.0, 4.0];
        let interval = |values: &[f64]| sign_flip_interval(values, 0.95, 0, &mut Random::seeded(1));
        assert_eq!(interval(&values), Some((1.0, 6.0)));
        assert_eq!(interval(&values[..5]), None);
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn it_leaves_out_zero_exactly_where_the_test_rejects_it() {
        let mut random = Random::seeded(9);
        let (mut rejected, mut kept) = (0, 0);
        for _ in 0..500 {
            let values: Vec<f64> = (0..8).map(|_| random.below(1000) as f64 - 300.0).collect();
            let p = sign_flip(&values, 0, &mut random).unwrap();
            let (low, high) = sign_flip_interval(&values, 0.95, 0, &mut random).unwrap();
            let holds = low <= 0.0 && 0.0 <= high;
            assert_eq!(holds, p > 0.05, "{values:?}: p {p}, {low} to {high}");
            rejected += usize::from(!holds);
            kept += usize::from(holds);
        }
        assert!(rejected > 50 && kept > 50, "{rejected} rejected, {kept} kept");
    }

    #[test]
    fn random_subsets_say_the_same_as_all_of_them_and_as_student() {
        let mut random = Random::seeded(4);
        let mut draw = || (0..12).map(|_| random.below(1000) as f64).sum::<f64>();
        let values: Vec<f64> = (0..40).map(|_| draw()).collect();
        let student = crate::mean_interval(&values, 0.95).unwrap();
        let (low, high) = sign_flip_interval(&values, 0.95, 20_000, &mut random).unwrap();
        let reach = student.half_width();
        assert!((low - student.low).abs() < 0.1 * reach, "{low} {student:?}");
        assert!((high - student.high).abs() < 0.1 * reach, "{high} {student:?}");
    }
}
