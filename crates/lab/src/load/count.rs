//! What the sessions have done.

use super::histogram::Histogram;
use crate::window::Latency;

/// What all sessions together have done since they were started, or since an earlier count.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Transactions that ended.
    pub transactions: u64,
    /// Attempts after which sysbench began the transaction anew, since it was told to ignore the error:
    /// unless a workload says otherwise a deadlock (1213), a lock that was waited for too long (1205) or
    /// a row that had changed (1020). Any other error ends the load.
    pub retries: u64,
    pub(super) sum_ns: f64,
    pub(super) max_ns: f64,
    pub(super) histogram: Histogram,
}

impl Count {
    /// What was done since an earlier count of the same sessions. The longest time is exact where it
    /// is the longest of all so far, and off by less than 0.4 % where it is not.
    #[must_use]
    pub fn since(&self, earlier: &Count) -> Count {
        let histogram = self.histogram.since(&earlier.histogram);
        let max_ns = match self.max_ns > earlier.max_ns {
            true => self.max_ns,
            false => histogram.highest_ns().unwrap_or(0.0).min(self.max_ns),
        };
        Count {
            transactions: self.transactions.saturating_sub(earlier.transactions),
            retries: self.retries.saturating_sub(earlier.retries),
            sum_ns: self.sum_ns - earlier.sum_ns,
            max_ns,
            histogram,
        }
    }

    /// What was done in both, which do not overlap.
    #[must_use]
    pub fn plus(self, other: &Count) -> Count {
        Count {
            transactions: self.transactions + other.transactions,
            retries: self.retries + other.retries,
            sum_ns: self.sum_ns + other.sum_ns,
            max_ns: self.max_ns.max(other.max_ns),
            histogram: self.histogram.plus(&other.histogram),
        }
    }

    /// How long the transactions took, attempts that failed included. `None` where none ended.
    pub fn latency(&self) -> Option<Latency> {
        if self.transactions == 0 {
            return None;
        }
        let quantile_ns = |quantile| {
            let ns = self.histogram.quantile_ns(quantile).unwrap_or(self.max_ns);
            ns.min(self.max_ns)
        };
        Some(Latency {
            mean_ns: self.sum_ns / self.transactions as f64,
            p50_ns: quantile_ns(0.5),
            p95_ns: quantile_ns(0.95),
            p99_ns: quantile_ns(0.99),
            max_ns: self.max_ns,
            shape: self.histogram.shape(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::BUCKETS;
    use super::*;

    /// `count` transactions of 2^power ns, or some nanoseconds longer.
    fn count(powers: &[(usize, u64)], max_ns: f64) -> Count {
        let mut histogram = Histogram::new();
        let mut counts = vec![0; BUCKETS];
        powers.iter().for_each(|(power, count)| counts[(power - 10) << 8] = *count);
        histogram.add(counts.into_iter());
        let each = powers.iter().map(|(power, count)| (1_u64 << power) as f64 * *count as f64);
        let transactions = powers.iter().map(|(_, count)| count).sum();
        Count { transactions, retries: 3, sum_ns: each.sum(), max_ns, histogram }
    }

    #[test]
    fn latency_is_that_of_the_transactions() {
        // 99 of 2^20 ns (1.05 ms), one of 2^30 ns (1.07 s).
        let latency = count(&[(20, 99), (30, 1)], 1_073_741_900.0).latency().unwrap();
        assert_eq!(latency.mean_ns, (99.0 * 1_048_576.0 + 1_073_741_824.0) / 100.0);
        assert_eq!(latency.p50_ns, 1_048_576.0 + 4096.0 * 50.0 / 99.0);
        assert_eq!(latency.p99_ns, 1_048_576.0 + 4096.0);
        assert_eq!(latency.max_ns, 1_073_741_900.0);
        assert_eq!(latency.shape.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [99, 1]);
        assert_eq!(count(&[], 0.0).latency(), None);
    }

    #[test]
    fn no_percentile_is_above_the_longest() {
        let latency = count(&[(20, 10)], 1_048_577.0).latency().unwrap();
        assert_eq!([latency.p50_ns, latency.p99_ns], [1_048_577.0; 2]);
    }

    #[test]
    fn the_longest_since_is_not_the_longest_of_before() {
        let before = count(&[(20, 5), (30, 1)], 1_073_741_900.0);
        let after = count(&[(20, 5), (25, 2), (30, 1)], 1_073_741_900.0);
        let since = after.since(&before);
        assert_eq!((since.transactions, since.retries), (2, 0));
        assert_eq!(since.max_ns, 33_554_432.0 * (1.0 + 1.0 / 256.0));
        assert_eq!(since.latency().unwrap().mean_ns, 33_554_432.0);
        let longer = count(&[(20, 5), (30, 1), (31, 1)], 2_147_483_700.0);
        assert_eq!(longer.since(&before).max_ns, 2_147_483_700.0);
        assert_eq!(after.since(&after).max_ns, 0.0);
    }

    #[test]
    fn a_sum_is_that_of_all_transactions() {
        let sum = count(&[(20, 5)], 1_048_577.0).plus(&count(&[(25, 2)], 33_554_433.0));
        assert_eq!((sum.transactions, sum.retries, sum.max_ns), (7, 6, 33_554_433.0));
        let both = count(&[(20, 5), (25, 2)], 33_554_433.0);
        assert_eq!(sum.latency(), both.latency());
    }
}
