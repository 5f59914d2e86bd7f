//! A histogram of times. Its relative error has a limit.

/// Counts of values in buckets whose width is at most 1/64 of their lower edge, so that a
/// percentile is off by less than 0.8 % (the middle of the bucket is reported).
///
/// The buckets are those of a log-linear ("H2") histogram with 2^6 buckets per power of two:
/// values below 128 have a bucket each. Only buckets that hold something take memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<(u16, u64)>,
    count: u64,
    sum: u64,
    max: u64,
}

const SUB_BUCKET_BITS: u32 = 6;

fn index_of(value: u64) -> u16 {
    let magnitude = value.max(1).ilog2();
    let shift = magnitude.saturating_sub(SUB_BUCKET_BITS);
    (u64::from(shift) * (1 << SUB_BUCKET_BITS) + (value >> shift)) as u16
}

fn bounds_of(index: u16) -> (u64, u64) {
    let index = u64::from(index);
    let shift = (index >> SUB_BUCKET_BITS).saturating_sub(1);
    let lower = (index - (shift << SUB_BUCKET_BITS)) << shift;
    (lower, lower + ((1u64 << shift) - 1))
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.add_to_bucket(index_of(value), 1);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    fn add_to_bucket(&mut self, index: u16, n: u64) {
        match self.buckets.binary_search_by_key(&index, |bucket| bucket.0) {
            Ok(at) => self.buckets[at].1 += n,
            Err(at) => self.buckets.insert(at, (index, n)),
        }
    }

    /// Adds every count of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (index, n) in &other.buckets {
            self.add_to_bucket(*index, *n);
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The exact largest value; `None` if nothing was counted.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean; `None` if nothing was counted.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Number of each bucket that holds something, ascending, and how many values it holds. With the sum and the
    /// largest value, [`Histogram::of`] makes the same histogram again.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.buckets.iter().copied()
    }

    /// The histogram of these counts, as [`Histogram::counts`] gives them, in any order.
    pub fn of(counts: impl IntoIterator<Item = (u16, u64)>, sum: u64, max: u64) -> Histogram {
        let mut histogram = Histogram { sum, max, ..Histogram::default() };
        for (index, n) in counts.into_iter().filter(|(_, n)| *n > 0) {
            histogram.add_to_bucket(index.min(index_of(u64::MAX)), n);
            histogram.count += n;
        }
        histogram
    }

    /// The buckets that hold something, ascending: the value in their middle, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().map(|(index, n)| {
            let (lower, upper) = bounds_of(*index);
            (lower + (upper - lower) / 2, *n)
        })
    }

    /// The value at or below which the share `quantile` (0 to 1) of all values lies: the smallest
    /// value whose rank is at least `quantile × count`. `None` if nothing was counted.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, n) in &self.buckets {
            seen += n;
            if seen >= rank {
                let (lower, upper) = bounds_of(*index);
                return Some((lower + (upper - lower) / 2).min(self.max));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_inside_its_bucket_and_the_bucket_is_narrow() {
        for shift in 0..63 {
            for value in [1u64 << shift, (1 << shift) + 1, (1u64 << shift) * 3 / 2] {
                let (lower, upper) = bounds_of(index_of(value));
                assert!(lower <= value && value <= upper, "{value} is not in {lower}..={upper}");
                assert!(upper - lower <= lower / 64, "{lower}..={upper} is wide");
            }
        }
    }

    #[test]
    fn buckets_are_contiguous() {
        for index in 0..3000 {
            assert_eq!(bounds_of(index).1 + 1, bounds_of(index + 1).0);
        }
    }

    #[test]
    fn percentiles_of_990_short_and_10_long_values() {
        let mut histogram = Histogram::default();
        (0..990).for_each(|_| histogram.record(1_000_000));
        (0..10).for_each(|_| histogram.record(200_000_000));
        let near = |got: Option<u64>, want: f64| {
            let got = got.unwrap() as f64;
            assert!((got / want - 1.0).abs() < 0.02, "{got} is not near {want}");
        };
        near(histogram.quantile(0.50), 1e6);
        near(histogram.quantile(0.99), 1e6);
        near(histogram.quantile(0.991), 2e8);
        assert_eq!(histogram.max(), Some(200_000_000));
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        let empty = Histogram::default();
        assert_eq!((empty.quantile(0.5), empty.max(), empty.mean()), (None, None, None));
    }

    #[test]
    fn merging_is_counting_in_one() {
        let (mut one, mut two, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..10_000u64 {
            if value % 3 == 0 {
                one.record(value * 7)
            } else {
                two.record(value * 7)
            }
            both.record(value * 7);
        }
        one.merge(&two);
        assert_eq!(one, both);
        let again = Histogram::of(both.counts(), both.sum(), both.max().unwrap());
        assert_eq!(again, both, "it is made again from what can be kept");
    }
}
