//! Means with intervals by Student's t.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How many values it rests on.
    pub count: usize,
    /// The estimate itself.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    pub(crate) fn new(
        count: usize,
        value: f64,
        error: f64,
        freedom: f64,
        confidence: f64,
    ) -> Option<Self> {
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let is_share = confidence > 0.0 && confidence < 1.0;
        let reach = is_share.then(|| student.inverse_cdf(0.5 + confidence / 2.0) * error)?;
        Some(Self { count, value, error, freedom, low: value - reach, high: value + reach })
    }

    /// Half the length of the interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Of a log ratio: the change in percent, see [`percent`](crate::percent).
    pub fn log_to_percent(&self) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(crate::percent);
        Self { value, low, high, error: 100.0 * self.error, ..*self }
    }

    /// The same estimate with an interval of another confidence. `None` if that is no share.
    pub fn at(&self, confidence: f64) -> Option<Self> {
        Self::new(self.count, self.value, self.error, self.freedom, confidence)
    }

    /// The two-sided p value of "the true value is `truth`" by the t test that belongs to the interval
    /// (Student, Biometrika 1908): below `1 - confidence` exactly where the interval leaves it out.
    pub fn p_value(&self, truth: f64) -> Option<f64> {
        let away = (self.value - truth).abs();
        // Equal values may differ in the last bits, by the order of addition.
        let nothing = self.value.abs().max(truth.abs()) * 1e-12;
        if self.error <= nothing {
            return Some(if away <= nothing { 1.0 } else { 0.0 });
        }
        let student = StudentsT::new(0.0, 1.0, self.freedom).ok()?;
        Some((2.0 * student.sf(away / self.error)).min(1.0)).filter(|p| p.is_finite())
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The middle value, or the mean of the two in the middle. `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let lower = values.len().checked_sub(1)? / 2;
    Some(values[lower].midpoint(values[values.len() / 2]))
}

fn sum_of_squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// The mean and its standard error, `s / √n`. `None` below two values.
pub(crate) fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let freedom = count.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    Some((mean(values), (sum_of_squares(values) / freedom / count as f64).sqrt()))
}

/// The mean of differences with the interval of the one-sample t test:
/// `mean ± t(n-1) · s / √n` (Student, "The probable error of a mean", Biometrika 1908; for paired
/// measurements the values are the differences within the pairs). `None` below two values.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Estimate> {
    let (value, error) = mean_and_error(values)?;
    Estimate::new(values.len(), value, error, (values.len() - 1) as f64, confidence)
}

/// The difference of two ratios of sums, `Σa/Σb - Σc/Σd` over blocks `[a, b, c, d]`, with the error
/// of the jackknife that leaves out one block at a time (Tukey, "Bias and confidence in not quite
/// large samples", Annals of Mathematical Statistics 1958; for ratios Cochran, "Sampling
/// techniques", chapter 6). A block in which little happened counts little, where the mean of the
/// ratios of the blocks is at the mercy of it. `None` below two blocks, or where a sum of `b` or of
/// `d` is 0 without one of the blocks.
pub fn ratio_interval(blocks: &[[f64; 4]], confidence: f64) -> Option<Estimate> {
    let count = blocks.len();
    let freedom = count.checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let sums: [f64; 4] =
        std::array::from_fn(|part| blocks.iter().map(|block| block[part]).sum::<f64>());
    let difference = |[a, b, c, d]: [f64; 4]| a / b - c / d;
    let without =
        |block: &[f64; 4]| difference(std::array::from_fn(|part| sums[part] - block[part]));
    let left: Vec<f64> = blocks.iter().map(without).collect();
    let error = (sum_of_squares(&left) * freedom / count as f64).sqrt();
    error.is_finite().then(|| Estimate::new(count, difference(sums), error, freedom, confidence))?
}

/// The mean without the lowest and highest share `trim` of the values, with the interval of Tukey
/// and McLaughlin ("Less vulnerable confidence and significance procedures for location based on a
/// single sample", Sankhya A 1963): `s_w / ((1 - 2g/n) √n)` with the standard deviation `s_w` of
/// the winsorised values, `g` cut on each side and `n - 2g - 1` degrees of freedom. It bears the
/// few pairs in which something else took the processor. `None` if fewer than two values stay.
pub fn trimmed_interval(values: &[f64], trim: f64, confidence: f64) -> Option<Estimate> {
    let count = values.len();
    let cut = (trim.clamp(0.0, 0.5) * count as f64).floor() as usize;
    let kept = count.checked_sub(2 * cut).filter(|kept| *kept >= 2)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = mean(&sorted[cut..count - cut]);
    let (lowest, highest) = (sorted[cut], sorted[count - cut - 1]);
    sorted[..cut].fill(lowest);
    sorted[count - cut..].fill(highest);
    let winsorised = (sum_of_squares(&sorted) / (count - 1) as f64).sqrt();
    let error = winsorised * (count as f64).sqrt() / kept as f64;
    Estimate::new(count, value, error, (kept - 1) as f64, confidence)
}

/// How far the second of two independent means is above the first, with the interval of Welch ("The
/// generalization of Student's problem when several different population variances are involved",
/// Biometrika 1947) and the degrees of freedom of Satterthwaite ("An approximate distribution of
/// estimates of variance components", Biometrics Bulletin 1946). `None` where `confidence` is no share.
pub fn difference(first: &Estimate, second: &Estimate, confidence: f64) -> Option<Estimate> {
    let (variance, freedom) = sum_of_errors([first, second]);
    let count = first.count + second.count;
    Estimate::new(count, second.value - first.value, variance.sqrt(), freedom, confidence)
}

/// The variance of a sum of independent estimates, and its degrees of freedom.
fn sum_of_errors(parts: [&Estimate; 2]) -> (f64, f64) {
    let each = parts.map(|one| (one.error.powi(2), one.freedom));
    let variance: f64 = each.iter().map(|(part, _)| part).sum();
    let spread: f64 = each.iter().map(|(part, freedom)| part * part / freedom).sum();
    let fewest = each[0].1.min(each[1].1);
    (variance, if spread > 0.0 { variance * variance / spread } else { fewest })
}

/// The correlation of each value with the next (Box, Jenkins and Reinsel, "Time series analysis",
/// section 2.1): far from 0, the intervals above are too short. `None` below three values or
/// where all are equal.
pub fn lag_one(values: &[f64]) -> Option<f64> {
    let whole = sum_of_squares(values);
    let centre = mean(values);
    let shifted: f64 = values.windows(2).map(|two| (two[0] - centre) * (two[1] - centre)).sum();
    (values.len() >= 3 && whole > 0.0).then(|| shifted / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-4 * want.abs().max(1.0), "{got} is not {want}");
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_ratio_of_sums_weighs_blocks_by_their_size() {
        // 1,010 over 101 less 500 over 100: the small block, 10 against 0, counts little.
        let blocks = [[1000.0, 100.0, 500.0, 99.0], [10.0, 1.0, 0.0, 1.0]];
        let estimate = ratio_interval(&blocks, 0.95).unwrap();
        close(estimate.value, 5.0);
        // Without the one and without the other: 10 and 1000/100 - 500/99.
        close(estimate.error, (10.0 - (10.0 - 500.0 / 99.0)) / 2.0);
        assert_eq!(ratio_interval(&blocks[..1], 0.95), None);
        assert_eq!(ratio_interval(&[[1.0, 1.0, 1.0, 0.0]; 3], 0.95), None);
    }

    /// Student's own example: additional hours of sleep, Biometrika 1908, table of section 8.
    const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

    #[test]
    fn the_interval_of_students_sleep_data_is_that_of_every_textbook() {
        let mean = mean_interval(&SLEEP, 0.95).unwrap();
        close(mean.value, 1.58);
        close(mean.low, 0.700_114);
        close(mean.high, 2.459_886);
        assert_eq!(mean.count, 10);
        close(mean.half_width(), 0.879_886);
    }

    #[test]
    fn the_p_value_of_students_sleep_data_is_that_of_every_textbook() {
        let mean = mean_interval(&SLEEP, 0.95).unwrap();
        // t = 4.0621 with 9 degrees of freedom.
        close(mean.p_value(0.0).unwrap(), 0.002_833);
        close(mean.p_value(mean.value).unwrap(), 1.0);
        close(mean.p_value(mean.low).unwrap(), 0.05);
        let wide = mean.at(0.90).unwrap();
        close(wide.low, 0.866_995);
        close(wide.high, 2.293_005);
    }

    #[test]
    fn values_without_any_spread_are_certain() {
        let mean = mean_interval(&[2.0; 4], 0.95).unwrap();
        assert_eq!(mean.p_value(0.0), Some(0.0));
        assert_eq!(mean.p_value(2.0), Some(1.0));
        let nearly = Estimate { value: 2.0 + 4e-16, error: 1e-16, ..mean };
        assert_eq!(nearly.p_value(2.0), Some(1.0));
    }

    #[test]
    fn without_trimming_the_trimmed_interval_is_the_plain_one() {
        let plain = mean_interval(&SLEEP, 0.95).unwrap();
        let trimmed = trimmed_interval(&SLEEP, 0.0, 0.95).unwrap();
        close(trimmed.low, plain.low);
        close(trimmed.high, plain.high);
    }

    #[test]
    fn a_trimmed_mean_of_known_values_has_the_known_error() {
        // By hand: cut 1 of 10 on each side; the winsorised values are 0.8 0.8 1 1.2 1.3 1.3 1.4
        // 1.8 2.4 2.4 with sum of squares about the mean 3.084.
        let trimmed = trimmed_interval(&SLEEP, 0.1, 0.95).unwrap();
        close(trimmed.value, 1.4);
        close(trimmed.error, (3.084_f64 / 9.0).sqrt() * 10.0_f64.sqrt() / 8.0);
        assert_eq!(trimmed.freedom, 7.0);
    }

    #[test]
    fn one_wild_value_moves_the_mean_and_not_the_trimmed_mean() {
        let mut values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
        values.push(1e6);
        assert!(mean_interval(&values, 0.95).unwrap().value > 1000.0);
        assert!(trimmed_interval(&values, 0.1, 0.95).unwrap().value < 1.0);
    }

    #[test]
    fn the_two_halves_of_students_sleep_data_differ_as_welch_has_it() {
        // t.test(extra ~ group, sleep) of R: df = 17.776, p = 0.07939, -3.3654832 to 0.2054832.
        let first = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let second = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let [first, second] = [first, second].map(|half| mean_interval(&half, 0.95).unwrap());
        let between = difference(&first, &second, 0.95).unwrap();
        close(between.freedom, 17.7765);
        close(between.p_value(0.0).unwrap(), 0.07939);
        close(between.low, -3.365_483);
        close(between.high, 0.205_483);
        assert_eq!(between.count, 20);
    }

    #[test]
    fn too_few_values_give_nothing() {
        assert_eq!(mean_interval(&[], 0.95), None);
        assert_eq!(mean_interval(&[1.0], 0.95), None);
        assert_eq!(mean_interval(&[1.0, 2.0], 1.0), None);
        assert_eq!(trimmed_interval(&[1.0, 2.0, 3.0], 0.4, 0.95), None);
        assert_eq!(lag_one(&[1.0, 1.0, 1.0]), None);
    }

    #[test]
    fn a_drift_shows_in_the_lag_and_noise_does_not() {
        let drift: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(lag_one(&drift).unwrap() > 0.9);
        let mut random = Random::seeded(3);
        let noise: Vec<f64> = (0..2000).map(|_| random.below(1000) as f64).collect();
        assert!(lag_one(&noise).unwrap().abs() < 0.1);
    }
}
