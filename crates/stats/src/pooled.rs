//! One effect from several.

use crate::Estimate;

/// A mean effect over places that differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The mean effect; [`Estimate::count`] is the number of places.
    pub effect: Estimate,
    /// Standard deviation of the true effects between the places; 0 where they differ no more than their
    /// errors explain.
    pub between: f64,
    /// The share of the spread that the errors do not explain (`I²`, Higgins and Thompson, "Quantifying
    /// heterogeneity in a meta-analysis", Statistics in Medicine 2002), 0 to 1.
    pub heterogeneity: f64,
}

/// The mean of effects that are truly different from place to place: weights `1 / (error² + τ²)` with
/// the spread `τ²` by the method of moments (DerSimonian and Laird, "Meta-analysis in clinical trials",
/// Controlled Clinical Trials 1986, formulas 8 and 9). The interval is that of Hartung and Knapp ("A
/// refined method for the meta-analysis of controlled clinical trials with binary outcome", Statistics
/// in Medicine 2001), Student's with one degree less than there are places, because the normal one of
/// 1986 is too short for few places. `None` below two places or where an error is 0.
pub fn random_effects(parts: &[Estimate], confidence: f64) -> Option<Pooled> {
    let are_sound = parts.iter().all(|part| part.error > 0.0 && part.error.is_finite());
    let freedom = parts.len().checked_sub(1).filter(|freedom| *freedom > 0 && are_sound)? as f64;
    let fixed: Vec<f64> = parts.iter().map(|part| part.error.powi(-2)).collect();
    let (_, spread) = weighted(parts, &fixed);
    let sum: f64 = fixed.iter().sum();
    let squares: f64 = fixed.iter().map(|weight| weight * weight).sum();
    let variance = ((spread - freedom) / (sum - squares / sum)).max(0.0);

    let weights: Vec<f64> =
        parts.iter().map(|part| 1.0 / (part.error.powi(2) + variance)).collect();
    let (value, spread_left) = weighted(parts, &weights);
    let error = (spread_left / freedom / weights.iter().sum::<f64>()).sqrt();
    Some(Pooled {
        effect: Estimate::new(parts.len(), value, error, freedom, confidence)?,
        between: variance.sqrt(),
        heterogeneity: if spread > 0.0 { (1.0 - freedom / spread).max(0.0) } else { 0.0 },
    })
}

/// The weighted mean, and the weighted sum of squares about it.
fn weighted(parts: &[Estimate], weights: &[f64]) -> (f64, f64) {
    let each = || parts.iter().zip(weights);
    let mean =
        each().map(|(part, weight)| part.value * weight).sum::<f64>() / weights.iter().sum::<f64>();
    (mean, each().map(|(part, weight)| weight * (part.value - mean).powi(2)).sum())
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
    fn the_trials_of_the_bcg_vaccine_are_pooled_as_every_text_on_meta_analysis_does() {
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
        // Q = 152.233 with 12 degrees of freedom.
        close(pooled.between.powi(2), 0.308_76);
        close(pooled.effect.value, -0.714_12);
        close(pooled.heterogeneity, 0.921_17);
        // The error of 1986 would be 0.178742.
        close(pooled.effect.error, 0.180_70);
        assert_eq!((pooled.effect.count, pooled.effect.freedom), (13, 12.0));
    }

    #[test]
    fn places_that_agree_differ_by_nothing() {
        let pooled =
            random_effects(&[part(1.0, 0.5), part(1.2, 0.5), part(0.8, 0.5)], 0.95).unwrap();
        close(pooled.effect.value, 1.0);
        assert_eq!((pooled.between, pooled.heterogeneity), (0.0, 0.0));
    }

    #[test]
    fn one_place_is_no_pool() {
        assert_eq!(random_effects(&[part(1.0, 0.5)], 0.95), None);
        assert_eq!(random_effects(&[part(1.0, 0.0), part(1.0, 0.5)], 0.95), None);
    }
}
