//! Counts of latencies in round steps: 1, 2, 5, 10, 20, 50 …

use waggle_model::Histogram;

/// Steps from below 10 µs to 100 s and above.
pub(crate) const STEPS: usize = 23;

/// How many statements took how long. Steps without any take no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latencies(Box<[(u8, u32)]>);

impl Latencies {
    /// From a histogram of nanoseconds. Its buckets are at most 1/64 wide and each is counted by
    /// its middle, so that so much of a step may be counted in the one beside it.
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let mut steps: Vec<(u8, u32)> = Vec::new();
        for (ns, n) in histogram.buckets() {
            let step = step_of(ns) as u8;
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            match steps.last_mut().filter(|last| last.0 == step) {
                Some(last) => last.1 = last.1.saturating_add(n),
                None => steps.push((step, n)),
            }
        }
        Self(steps.into())
    }

    /// Adds the counts to those of every step.
    pub(crate) fn add_to(&self, sums: &mut [u64; STEPS]) {
        for (step, n) in &self.0 {
            if let Some(sum) = sums.get_mut(usize::from(*step)) {
                *sum += u64::from(*n);
            }
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<(u8, u32)>()
    }
}

/// The lower end of a step, nanoseconds; 0 for the first.
pub(crate) fn lower_ns(step: usize) -> u64 {
    let Some(step) = step.checked_sub(1) else { return 0 };
    let factor = [1, 2, 5][step % 3];
    factor * 10_000 * 10_u64.pow((step / 3) as u32)
}

fn step_of(ns: u64) -> usize {
    (0..STEPS).rev().find(|step| lower_ns(*step) <= ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_1_2_5_from_10_microseconds_to_100_seconds() {
        let ends: Vec<u64> = (0..5).map(lower_ns).collect();
        assert_eq!(ends, [0, 10_000, 20_000, 50_000, 100_000]);
        assert_eq!(lower_ns(STEPS - 1), 100_000_000_000);
        assert_eq!((step_of(0), step_of(9_999), step_of(10_000)), (0, 0, 1));
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn every_statement_is_in_one_step() {
        let mut histogram = Histogram::default();
        (0..10_000_u64).for_each(|n| histogram.record(n * n * n));
        let mut sums = [0; STEPS];
        Latencies::of(&histogram).add_to(&mut sums);
        assert_eq!(sums.iter().sum::<u64>(), 10_000);
        assert!(sums.iter().filter(|n| **n > 0).count() > 15, "{sums:?}");
    }
}
