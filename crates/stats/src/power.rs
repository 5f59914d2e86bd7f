//! What a number of pairs can show.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Estimate;

/// The smallest true mean that a t test of so many differences finds with the chance `power`, in standard
/// deviations of the differences: `(t(1 - error/2) + t(power)) / √n` with `n - 1` degrees of freedom
/// (Bloom, "Minimum detectable effects: a simple way to report the statistical power of experimental
/// designs", Evaluation Review 1995). `error` is the two-sided chance of a false alarm. `None` below
/// two pairs, or where `error` or `power` is no chance.
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
    Some(student.inverse_cdf(1.0 - error / 2.0) + student.inverse_cdf(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_that_of_the_tables_of_student() {
        // From the columns 0.975 and 0.80 of a table of t, such as 2.3646 and 0.8960 for 8 pairs.
        let table = [
            (3, 3.097),
            (5, 1.662),
            (8, 1.153),
            (10, 0.995),
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
