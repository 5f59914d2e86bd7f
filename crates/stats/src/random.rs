//! Seeded random numbers, the same on every machine.

/// SplitMix64: 64 random bits from a counter (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014, figure 16; constants of Vigna's `splitmix64.c`).
/// Good for schedules and resampling, not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence that belongs to a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `limit`; 0 if `limit` is 0. The bias of taking the upper half of a
    /// product is below `limit / 2^64` (Lemire, "Fast random integer generation in an interval",
    /// ACM TOMACS 2019, without the rejection step).
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// One of `values`, of which there is at least one.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Puts `values` in a random order (Fisher and Yates, in Durstenfeld's form, CACM 1964).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        let mut random = Random::seeded(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let reference =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, reference);
    }

    #[test]
    fn a_shuffle_keeps_every_value_and_reaches_every_order() {
        let mut random = Random::seeded(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut values = [1, 2, 3];
            random.shuffle(&mut values);
            seen.insert(values);
        }
        assert_eq!(seen.len(), 6);
        assert_eq!(random.below(0), 0);
    }
}
