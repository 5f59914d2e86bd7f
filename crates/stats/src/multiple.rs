//! Corrections for many tests at once.

/// P values adjusted so that the chance of even one false alarm among all of them stays below the level
/// that they are held against: the step-down method of Holm ("A simple sequentially rejective multiple
/// test procedure", Scandinavian Journal of Statistics 1979), as adjusted values (Wright, "Adjusted
/// p-values for simultaneous inference", Biometrics 1992). Whatever the tests have to do with each
/// other. In the order of `p`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((p[at] * (p.len() - rank) as f64).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_tests_are_adjusted_as_r_adjusts_them() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn one_test_stays_as_it_is_and_none_gives_none() {
        assert_eq!(holm(&[0.03]), [0.03]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
