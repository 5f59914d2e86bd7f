//! How often something happens by chance alone.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The most often that something with the chance `chance` happens in this many independent trials, except for one case
/// in `1 / beyond`: the smallest `k` with `P(X > k) ≤ beyond`, by the binomial distribution. `None` if one of
/// the two is no chance.
pub fn most_by_chance(trials: usize, chance: f64, beyond: f64) -> Option<usize> {
    let is_chance = beyond > 0.0 && beyond < 1.0;
    let binomial = Binomial::new(chance, trials as u64).ok().filter(|_| is_chance)?;
    (0..=trials).find(|count| binomial.sf(*count as u64) <= beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_r() {
        // qbinom(beyond, n, chance, lower.tail = FALSE)
        for (trials, chance, beyond, most) in
            [(20, 0.05, 0.05, 3), (20, 0.05, 0.004, 4), (200, 0.05, 0.05, 15), (10, 0.5, 0.011, 8)]
        {
            assert_eq!(most_by_chance(trials, chance, beyond), Some(most), "{trials}");
        }
        assert_eq!(most_by_chance(0, 0.05, 0.05), Some(0));
        assert_eq!(most_by_chance(10, 1.5, 0.05), None);
        assert_eq!(most_by_chance(10, 0.5, 0.0), None);
    }
}
