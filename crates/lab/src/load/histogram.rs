//! Times in steps below 0.4 %.
//!
//! The bucket of a time is the exponent and the first 8 bits of the mantissa of its double (IEEE 754):
//! for positive numbers these bits alone are in the order of the numbers. So the script of the sessions
//! and this file cannot disagree by a rounding.

/// Bits of the mantissa: so many steps per power of two that each is at most 1/256 of its lower edge.
const STEP_BITS: u32 = 8;
/// Bits of a double below those.
const LOWER_BITS: u32 = f64::MANTISSA_DIGITS - 1 - STEP_BITS;
/// The lowest edge is 2^10 ns, 1.024 us; what is shorter counts in the first bucket.
const LOWEST_POWER: u32 = 10;
/// Powers of two: up to 2^37 ns, 137 s; what is longer counts in the last bucket.
const POWERS: usize = 27;
/// The upper bits of the lowest edge.
const LOWEST: usize = ((f64::MAX_EXP as u32 - 1 + LOWEST_POWER) as usize) << STEP_BITS;
/// Buckets of a histogram.
pub(super) const BUCKETS: usize = POWERS << STEP_BITS;
/// Buckets that are one in the shape: steps of 6 % at most.
const TOGETHER: usize = 16;

/// The lower edge of a bucket, ns; the upper edge of the one before.
fn edge_ns(bucket: usize) -> f64 {
    f64::from_bits(((LOWEST + bucket) as u64) << LOWER_BITS)
}

/// How many times fell into each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Histogram(Vec<u64>);

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram(vec![0; BUCKETS])
    }

    /// Adds the counts of all buckets, in their order.
    pub(super) fn add(&mut self, counts: impl Iterator<Item = u64>) {
        for (sum, count) in self.0.iter_mut().zip(counts) {
            *sum += count;
        }
    }

    /// What both hold together.
    pub(super) fn plus(mut self, other: &Histogram) -> Histogram {
        self.add(other.0.iter().copied());
        self
    }

    /// What was counted since an earlier state of the same histogram.
    pub(super) fn since(&self, earlier: &Histogram) -> Histogram {
        let pairs = self.0.iter().zip(&earlier.0);
        Histogram(pairs.map(|(now, before)| now.saturating_sub(*before)).collect())
    }

    /// The upper edge of the highest bucket that holds something, ns.
    pub(super) fn highest_ns(&self) -> Option<f64> {
        self.0.iter().rposition(|count| *count > 0).map(|bucket| edge_ns(bucket + 1))
    }

    /// The time that the share `quantile` (0 to 1) does not exceed, ns, as if the times of a bucket
    /// were spread evenly over it. `None` where there is none.
    pub(super) fn quantile_ns(&self, quantile: f64) -> Option<f64> {
        let rank = quantile * self.0.iter().sum::<u64>() as f64;
        let mut below = 0.0;
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= rank {
                let (low, high) = (edge_ns(bucket), edge_ns(bucket + 1));
                return Some(low + (high - low) * (rank - below) / count);
            }
            below += count;
        }
        None
    }

    /// Upper edge in ns and count of every wider bucket that holds something.
    pub(super) fn shape(&self) -> Vec<(u64, u64)> {
        let wider = self.0.chunks(TOGETHER).enumerate();
        wider
            .map(|(at, counts)| (edge_ns((at + 1) * TOGETHER) as u64, counts.iter().sum()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use waggle_stats::Random;

    use super::*;

    /// As the script of the sessions does it.
    fn bucket_of(ns: f64) -> usize {
        ((ns.to_bits() >> LOWER_BITS) as usize).saturating_sub(LOWEST).min(BUCKETS - 1)
    }

    fn of(times: &[f64]) -> Histogram {
        let mut histogram = Histogram::new();
        times.iter().for_each(|ns| histogram.0[bucket_of(*ns)] += 1);
        histogram
    }

    /// Times between 2 us and 8 s, each power of two as often as the next.
    fn times(count: usize) -> Vec<f64> {
        let mut random = Random::seeded(7);
        let mut share = || random.below(1_000_000) as f64 / 1e6;
        (0..count).map(|_| 2e3 * (22.0 * share()).exp2()).collect()
    }

    #[test]
    fn a_time_lies_in_its_bucket_and_the_bucket_is_narrow() {
        assert_eq!(edge_ns(0), 1024.0);
        assert_eq!(edge_ns(BUCKETS), 2.0_f64.powi(37));
        for ns in times(10_000) {
            let bucket = bucket_of(ns);
            let (low, high) = (edge_ns(bucket), edge_ns(bucket + 1));
            assert!(low <= ns && ns < high && high - low <= low / 256.0, "{ns}: {low} to {high}");
        }
        assert_eq!([bucket_of(0.0), bucket_of(900.0), bucket_of(1e12)], [0, 0, BUCKETS - 1]);
    }

    #[test]
    fn percentiles_are_those_of_the_exact_list() {
        let mut times = times(10_001);
        let histogram = of(&times);
        times.sort_by(f64::total_cmp);
        for quantile in [0.001, 0.25, 0.5, 0.95, 0.99, 1.0] {
            let rank = (quantile * times.len() as f64).ceil() as usize;
            let (got, exact) = (histogram.quantile_ns(quantile).unwrap(), times[rank - 1]);
            assert!((got / exact - 1.0).abs() < 0.004, "{quantile}: {got} is not {exact}");
        }
        assert_eq!(Histogram::new().quantile_ns(0.5), None);
    }

    #[test]
    fn times_of_one_bucket_are_spread_over_it() {
        // 2^20 to 2^20 + 2^12 ns is one bucket.
        let histogram = of(&[1_048_600.0; 4]);
        assert_eq!(histogram.quantile_ns(0.25), Some(1_048_576.0 + 1024.0));
        assert_eq!(histogram.quantile_ns(1.0), Some(1_048_576.0 + 4096.0));
        assert_eq!(histogram.highest_ns(), Some(1_048_576.0 + 4096.0));
    }

    #[test]
    fn the_shape_holds_every_time_in_steps_of_six_percent() {
        let histogram = of(&times(1000));
        let shape = histogram.shape();
        assert_eq!(shape.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        let edges: Vec<f64> = (0..=BUCKETS / TOGETHER).map(|at| edge_ns(at * TOGETHER)).collect();
        assert!(edges.windows(2).all(|two| two[1] / two[0] <= 1.0625));
        assert!(shape.windows(2).all(|two| two[0].0 < two[1].0));
    }

    #[test]
    fn what_was_before_is_taken_off() {
        let (early, late) = (of(&[2e3, 2e6]), of(&[2e3, 2e6, 2e6, 3e9]));
        assert_eq!(late.since(&early), of(&[2e6, 3e9]));
        assert_eq!(late.since(&late).highest_ns(), None);
    }
}
