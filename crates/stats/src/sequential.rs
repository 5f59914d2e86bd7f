//! A test that you may evaluate after every value.

/// Watches whether the mean of values that come one by one is above a limit, for as long as one
/// likes.
///
/// It says so when the lower end of a confidence sequence is above the limit: an interval that holds
/// the mean at every moment at once, so that looking often costs nothing. The one-sided asymptotic
/// sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas ("Time-uniform central limit theory and
/// asymptotic confidence sequences", Annals of Statistics 2024, appendix on one-sided sequences):
/// `mean - s · √(2(tρ² + 1) / (t²ρ²) · ln(1 + √(tρ² + 1) / (2α)))` after `t` values with the standard
/// deviation `s`. The chance that it ever errs is `α` as `t` grows; the first values are not judged.
#[derive(Clone, Debug)]
pub struct Watch {
    limit: f64,
    top: f64,
    error: f64,
    count: f64,
    mean: f64,
    squares: f64,
}

/// The values that are needed before it says anything.
const VALUES_MIN: f64 = 10.0;
/// The number of values at which the interval is to be narrowest.
const SOON: f64 = 30.0;

impl Watch {
    /// For values whose mean should be at most `limit`. Those above `top` count as `top`, so that one
    /// wild value decides nothing. `None` if `top` is not above the limit, or the error is no
    /// chance.
    pub fn new(limit: f64, top: f64, error: f64) -> Option<Watch> {
        let is_sound = limit < top && error > 0.0 && error < 1.0;
        is_sound.then_some(Watch { limit, top, error, count: 0.0, mean: 0.0, squares: 0.0 })
    }

    /// Takes a value, and says whether the mean is above the limit. What is no number is passed over.
    pub fn heed(&mut self, value: f64) -> bool {
        if value.is_nan() {
            return false;
        }
        let value = value.min(self.top);
        self.count += 1.0;
        // Welford, "Note on a method for calculating corrected sums of squares", Technometrics 1962.
        let away = value - self.mean;
        self.mean += away / self.count;
        self.squares += away * (value - self.mean);
        self.count >= VALUES_MIN && self.mean - self.reach() > self.limit
    }

    fn reach(&self) -> f64 {
        let deviation = (self.squares / (self.count - 1.0)).sqrt();
        // The optimum for `SOON` values, as given there for the two-sided sequence.
        let log = -2.0 * self.error.ln();
        let rho_squared = (log + log.ln() + 1.0) / SOON;
        let t_rho = self.count * rho_squared;
        let inside = (1.0 + (t_rho + 1.0).sqrt() / (2.0 * self.error)).ln();
        deviation * (2.0 * (t_rho + 1.0) / (self.count * t_rho) * inside).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_above_the_limit_is_noticed_and_one_at_it_is_not() {
        let mut above = Watch::new(1.0, 3.0, 0.01).unwrap();
        let noticed = (0..100).position(|at| above.heed(if at % 2 == 0 { 1.2 } else { 1.0 }));
        assert!(noticed.is_some_and(|at| at < 40), "{noticed:?}");
        let mut at = Watch::new(1.0, 3.0, 0.01).unwrap();
        assert!((0..10_000).all(|n| !at.heed(if n % 2 == 0 { 0.9 } else { 1.1 })));
    }

    #[test]
    fn one_wild_value_decides_nothing() {
        let mut watch = Watch::new(1.0, 3.0, 0.01).unwrap();
        let values = [0.9, 1.0, 1e9, f64::INFINITY, 0.95, 1.0];
        assert!((0..60).all(|_| !watch.heed(f64::NAN)));
        assert!((0..60).all(|at| !watch.heed(values.get(at).copied().unwrap_or(1.0))));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (limit, top, error) in [(1.0, 1.0, 0.1), (0.5, 1.0, 0.0), (0.5, 1.0, 1.0)] {
            assert!(Watch::new(limit, top, error).is_none());
        }
    }
}
