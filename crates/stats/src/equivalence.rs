//! Tests that decide when one may say "no effect".

use crate::Estimate;

/// The smallest margin within which the true value is proven to be: two one-sided t tests, one against
/// `-margin` and one against `+margin`, reject at `error` each (Schuirmann, "A comparison of the two
/// one-sided tests procedure and the power approach for assessing the equivalence of average
/// bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 1987). That is so for every margin
/// that holds the whole interval of the confidence `1 - 2 · error`: equivalence within a margin is proven
/// where what is returned is not above it. `None` if `error` is not between 0 and 0.5.
pub fn smallest_margin(estimate: &Estimate, error: f64) -> Option<f64> {
    let interval = estimate.at(1.0 - 2.0 * error)?;
    Some(interval.low.abs().max(interval.high.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean_interval;

    /// Student's sleep data, Biometrika 1908.
    const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

    #[test]
    fn the_margin_is_the_far_end_of_the_interval_of_90_percent() {
        // t.test(…, conf.level = 0.9) of R: 0.8669947 to 2.2930053.
        let mean = mean_interval(&SLEEP, 0.95).unwrap();
        let margin = smallest_margin(&mean, 0.05).unwrap();
        assert!((margin - 2.293_005).abs() < 1e-5, "{margin}");
        assert_eq!(smallest_margin(&mean, 0.5), None);
    }

    #[test]
    fn at_that_margin_the_worse_of_the_two_one_sided_tests_has_just_the_error() {
        let mean = mean_interval(&[-0.3, 0.2, -0.1, 0.4, -0.2, 0.1, -0.4, 0.1], 0.95).unwrap();
        let margin = smallest_margin(&mean, 0.05).unwrap();
        // Half of a two-sided p value is the one-sided one, for a truth on the far side.
        let one_sided = |truth: f64| mean.p_value(truth).unwrap() / 2.0;
        let worse = one_sided(margin).max(one_sided(-margin));
        assert!((worse - 0.05).abs() < 1e-6, "{worse}");
    }
}
