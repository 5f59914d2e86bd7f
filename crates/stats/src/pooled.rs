//! One effect from several.

use crate::{Estimate, mean_interval};

/// A mean effect over places that differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The mean effect; [`Estimate::count`] is the number of places.
    pub effect: Estimate,
    /// Standard deviation `τ` of the true effects between the places; 0 where they differ no more than
    /// their errors explain.
    pub between: f64,
    /// The share of the spread that the errors do not explain, 0 to 1: `I² = τ² / (τ² + σ²)` (Higgins and
    /// Thompson, "Quantifying heterogeneity in a meta-analysis", Statistics in Medicine 2002), where `σ²`
    /// is the mean of the squared errors. Of equal errors it is their `(Q - k + 1) / Q` of `k` places.
    pub heterogeneity: f64,
}

/// The mean of effects that are truly different from place to place (random effects), each with the same
/// weight (Shuster, "Empirical vs natural weighting in random effects meta-analysis", Statistics in
/// Medicine 2010): errors that rest on few values each are no good weights. The interval is Student's
/// over the places. Their spread holds what they differ by and their errors, so that it covers what it
/// says where both are normal, and more where the errors differ much (Ibragimov and Müller, "t-statistic
/// based correlation and heterogeneity robust inference", Journal of Business and Economic Statistics
/// 2010). The effects have to be independent of each other.
///
/// `τ²` is the variance of the effects less the mean of their squared errors, at least 0 (Hedges, "A
/// random effects model for effect sizes", Psychological Bulletin 1983). `None` below two places, where
/// an effect or its error is not finite, or where `confidence` is no share.
pub fn random_effects(parts: &[Estimate], confidence: f64) -> Option<Pooled> {
    let are_known = parts.iter().all(|part| part.value.is_finite() && part.error.is_finite());
    let values: Vec<f64> = parts.iter().map(|part| part.value).collect();
    let effect = mean_interval(&values, confidence).filter(|_| are_known)?;
    let count = effect.count as f64;
    let spread = effect.error.powi(2) * count;
    let errors = parts.iter().map(|part| part.error.powi(2)).sum::<f64>() / count;
    let variance = (spread - errors).max(0.0);
    Some(Pooled {
        effect,
        between: variance.sqrt(),
        heterogeneity: if spread > 0.0 { variance / spread } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-4, "{got} is not {want}");
    }

    fn part(value: f64, error: f64) -> Estimate {
        Estimate::new(8, value, error, 7.0, 0.95).unwrap()
    }

    /// Thirteen trials of the BCG vaccine (Colditz and others, JAMA 1994): with tuberculosis and without,
    /// of those with the vaccine and of those without.
    const BCG: [[f64; 4]; 13] = [
        [4., 119., 11., 128.],
        [6., 300., 29., 274.],
        [3., 228., 11., 209.],
        [62., 13_536., 248., 12_619.],
        [33., 5036., 47., 5761.],
        [180., 1361., 372., 1079.],
        [8., 2537., 10., 619.],
        [505., 87_886., 499., 87_892.],
        [29., 7470., 45., 7232.],
        [17., 1699., 65., 1600.],
        [186., 50_448., 141., 27_197.],
        [5., 2493., 3., 2338.],
        [27., 16_886., 29., 17_825.],
    ];

    #[test]
    fn the_trials_of_the_bcg_vaccine_are_pooled_with_equal_weights() {
        let trials: Vec<Estimate> = BCG
            .iter()
            .map(|[ill, well, ill_without, well_without]| {
                let (all, all_without) = (ill + well, ill_without + well_without);
                let ratio = (ill / all) / (ill_without / all_without);
                let variance = 1.0 / ill - 1.0 / all + 1.0 / ill_without - 1.0 / all_without;
                part(ratio.ln(), variance.sqrt())
            })
            .collect();
        let pooled = random_effects(&trials, 0.95).unwrap();
        // 0.3286 is also what metafor of R prints (`rma(..., method = "HE")`).
        close(pooled.between.powi(2), 0.328_56);
        // The variance of the thirteen logarithms is 0.481365, the mean of their squared errors 0.152802.
        close(pooled.heterogeneity, 0.682_57);
        close(pooled.effect.value, -0.740_65);
        close(pooled.effect.error, 0.192_43);
        // t(12) = 2.178813.
        close(pooled.effect.low, -1.159_91);
        close(pooled.effect.high, -0.321_39);
        assert_eq!((pooled.effect.count, pooled.effect.freedom), (13, 12.0));
    }

    #[test]
    fn of_equal_errors_the_heterogeneity_is_that_of_cochrans_q() {
        // Q = (0 + 0.04 + 0.04) / 0.01 = 8 with 2 degrees of freedom; τ² = 0.04 - 0.01.
        let pooled =
            random_effects(&[part(1.0, 0.1), part(1.2, 0.1), part(0.8, 0.1)], 0.95).unwrap();
        close(pooled.heterogeneity, (8.0 - 2.0) / 8.0);
        close(pooled.between.powi(2), 0.03);
    }

    #[test]
    fn an_effect_counts_once_however_sure_it_is() {
        let pooled = random_effects(&[part(1.0, 0.0), part(3.0, 0.5)], 0.95).unwrap();
        // The error is that of 1 and 3, 1, and t(1) = 12.7062.
        close(pooled.effect.value, 2.0);
        close(pooled.effect.half_width(), 12.706_2);
        close(pooled.between.powi(2), 2.0 - 0.125);
    }

    #[test]
    fn places_that_agree_differ_by_nothing() {
        let pooled =
            random_effects(&[part(1.0, 0.5), part(1.2, 0.5), part(0.8, 0.5)], 0.95).unwrap();
        close(pooled.effect.value, 1.0);
        assert_eq!((pooled.between, pooled.heterogeneity), (0.0, 0.0));
        let certain = random_effects(&[part(1.0, 0.0), part(1.0, 0.0)], 0.95).unwrap();
        assert_eq!((certain.effect.low, certain.effect.high), (1.0, 1.0));
        assert_eq!((certain.between, certain.heterogeneity), (0.0, 0.0));
    }

    #[test]
    fn one_place_is_no_pool_and_what_is_not_known_is_not_pooled() {
        assert_eq!(random_effects(&[], 0.95), None);
        assert_eq!(random_effects(&[part(1.0, 0.5)], 0.95), None);
        assert_eq!(random_effects(&[part(1.0, f64::INFINITY), part(1.0, 0.5)], 0.95), None);
        assert_eq!(random_effects(&[part(1.0, 0.5), part(1.2, 0.5)], 1.0), None);
    }
}
