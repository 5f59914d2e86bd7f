//! Changes in percent, from logarithms of ratios.

/// The natural logarithms of `other / baseline` of pairs `[baseline, other]`. On this scale a change of a
/// given share is the same step everywhere, up and down are symmetric, and the mean of the steps is the
/// geometric mean of the ratios (Fleming and Wallace, "How not to lie with statistics: the correct way
/// to summarize benchmark results", CACM 1986). `None` if a value is not above 0.
pub fn log_ratios(pairs: &[[f64; 2]]) -> Option<Vec<f64>> {
    let log = |[baseline, other]: &[f64; 2]| {
        (*baseline > 0.0 && *other > 0.0).then(|| other.ln() - baseline.ln())
    };
    pairs.iter().map(log).collect()
}

/// A logarithm of a ratio as a change in percent of the baseline, `100 (eˣ - 1)`. It grows with `x`, so
/// that the ends of an interval may be taken over one by one.
pub fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean_interval;

    #[test]
    fn a_half_and_a_double_cancel() {
        let logs = log_ratios(&[[10.0, 20.0], [10.0, 5.0], [3.0, 3.0]]).unwrap();
        let mean = mean_interval(&logs, 0.95).unwrap();
        assert!(percent(mean.value).abs() < 1e-12);
        // s = ln 2, t(2) = 4.302653, √3: 1.721873 on either side.
        assert!((percent(mean.high) - 459.500).abs() < 0.01, "{}", percent(mean.high));
        assert!((percent(mean.low) + 82.127).abs() < 0.01, "{}", percent(mean.low));
    }

    #[test]
    fn a_change_is_a_share_of_the_baseline() {
        let logs = log_ratios(&[[47_176.0, 41_111.0]]).unwrap();
        assert!((percent(logs[0]) + 12.856).abs() < 0.001);
        assert_eq!(log_ratios(&[[0.0, 1.0]]), None);
    }
}
