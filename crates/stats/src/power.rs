//! Which effect a given number of pairs can detect.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::interval::Estimate;

/// The smallest true mean that a t test of `n` differences finds with the chance `power`, in standard
/// deviations of the differences: `(t (1 - 1 / 4f) + z √(1 + t² / 2f)) / √n` with `f = n - 1` degrees of
/// freedom, the quantile `t` of Student at `1 - error / 2` and the normal one `z` at `power` (the noncentral t
/// distribution by Abramowitz and Stegun, "Handbook of mathematical functions", 1964, equation 26.7.10).
/// `error` is the two-sided chance of a false alarm. `None` below two pairs, or where `error` or `power` is no
/// chance.
pub fn detectable(pairs: usize, error: f64, power: f64) -> Option<f64> {
    let freedom = pairs.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    Some(reach(freedom, error, power)? / (pairs as f64).sqrt())
}

impl Estimate {
    /// The smallest true value that a t test with the error of this estimate finds, as [`detectable`].
    pub fn detectable(&self, error: f64, power: f64) -> Option<f64> {
        Some(reach(self.freedom, error, power)? * self.error)
    }
}

/// In standard errors.
fn reach(freedom: f64, error: f64, power: f64) -> Option<f64> {
    let are_chances = [error, power].iter().all(|chance| *chance > 0.0 && *chance < 1.0);
    let student = StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| are_chances)?;
    let (t, z) = (student.inverse_cdf(1.0 - error / 2.0), Normal::standard().inverse_cdf(power));
    Some(t * (1.0 - 0.25 / freedom) + z * (1.0 + t * t / (2.0 * freedom)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_that_of_the_noncentral_distribution() {
        // By hand from the column 0.975 of a table of t, such as 2.3646 for 8 pairs, and 0.8416. That of the noncentral
        // distribution itself is 1.158 for 8 pairs.
        let table = [
            (3, 3.326),
            (5, 1.691),
            (8, 1.158),
            (10, 0.997),
            (15, 0.778),
            (20, 0.661),
            (30, 0.529),
            (40, 0.454),
            (60, 0.368),
            (100, 0.283),
            (200, 0.199),
            (400, 0.140),
        ];
        for (pairs, want) in table {
            let got = detectable(pairs, 0.05, 0.8).unwrap();
            assert!((got - want).abs() < 0.001, "{pairs} pairs: {got} is not {want}");
        }
    }

    #[test]
    fn what_cannot_be_planned_gives_nothing() {
        assert_eq!(detectable(1, 0.05, 0.8), None);
        assert_eq!(detectable(8, 0.0, 0.8), None);
        assert_eq!(detectable(8, 0.05, 1.0), None);
    }
}
