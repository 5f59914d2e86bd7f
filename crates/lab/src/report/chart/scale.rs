//! From values to places on an axis.

use crate::report::span;

/// About how many ticks an axis has.
const TICKS: f64 = 6.0;
/// What is left free beside the outermost values, as a share of their distance.
const MARGIN: f64 = 0.06;

/// An axis from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::report) struct Scale {
    from: f64,
    to: f64,
    is_log2: bool,
}

impl Scale {
    /// From one value to another, which may be the lower one.
    pub(super) fn between(from: f64, to: f64) -> Scale {
        Scale { from, to, is_log2: false }
    }

    /// Holds all finite values and some room beside them; 0 to 1 where there are none.
    pub(in crate::report) fn around(values: impl IntoIterator<Item = f64>) -> Scale {
        let Some((low, high)) = span(values) else { return Scale::between(0.0, 1.0) };
        let margin = margin(low, high);
        Scale::between(low - margin, high + margin)
    }

    /// From 0 to a little above the highest finite value.
    pub(super) fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let high = span(values).map_or(0.0, |(_, high)| high);
        Scale::between(0.0, if high > 0.0 { high * (1.0 + MARGIN) } else { 1.0 })
    }

    /// Equal steps for equal factors. Only values above 0 have a place.
    pub(super) fn log2(values: impl IntoIterator<Item = f64>) -> Scale {
        let positive = values.into_iter().filter(|value| *value > 0.0).map(f64::log2);
        let (low, high) = span(positive).unwrap_or((0.0, 1.0));
        let margin = margin(low, high).min(0.5);
        Scale { from: low - margin, to: high + margin, is_log2: true }
    }

    /// Where a value lies, 0 to 1; one beyond an end lies at that end.
    pub(in crate::report) fn share(&self, value: f64) -> f64 {
        let value = if self.is_log2 { value.log2() } else { value };
        let share = (value - self.from) / (self.to - self.from);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether a value lies between the ends.
    pub(super) fn holds(&self, value: f64) -> bool {
        let value = if self.is_log2 { value.log2() } else { value };
        value >= self.from.min(self.to) && value <= self.from.max(self.to)
    }

    /// Round values between the ends of a linear scale, and how many digits tell them apart.
    pub(in crate::report) fn ticks(&self) -> (Vec<f64>, usize) {
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let step = step((high - low) / TICKS);
        let first = (low / step).ceil();
        let count = ((high / step).floor() - first).clamp(0.0, 2.0 * TICKS) as usize;
        let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        ((0..=count).map(|at| (first + at as f64) * step).collect(), digits)
    }
}

fn margin(low: f64, high: f64) -> f64 {
    match high - low {
        distance if distance > 0.0 => distance * MARGIN,
        _ if low == 0.0 => 1.0,
        _ => low.abs() * MARGIN,
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_between_the_span() {
        let (ticks, digits) = Scale::between(-31.0, 4.0).ticks();
        assert_eq!((ticks, digits), (vec![-30.0, -20.0, -10.0, 0.0], 0));
        let (ticks, digits) = Scale::between(0.31, 0.52).ticks();
        assert_eq!(ticks.len(), 4, "{ticks:?}");
        assert_eq!(digits, 2);
        assert!(ticks.iter().all(|tick| (0.31..=0.52).contains(tick)), "{ticks:?}");
    }

    #[test]
    fn equal_factors_lie_at_equal_distances() {
        let scale = Scale::log2([1.0, 1024.0]);
        let steps = [1.0, 32.0, 1024.0].map(|threads| scale.share(threads));
        assert!((steps[1] - steps[0] - (steps[2] - steps[1])).abs() < 1e-9, "{steps:?}");
    }

    #[test]
    fn no_value_one_value_and_no_number_have_a_place() {
        assert_eq!(Scale::around([]), Scale::between(0.0, 1.0));
        assert_eq!(Scale::around([f64::NAN]), Scale::between(0.0, 1.0));
        assert!((Scale::around([50.0]).share(50.0) - 0.5).abs() < 1e-9);
        assert_eq!(Scale::around([0.0]).share(0.0), 0.5);
        assert!((Scale::log2([10.0]).share(10.0) - 0.5).abs() < 1e-9);
        assert_eq!(Scale::from_zero([]).share(f64::NAN), 0.0);
        assert_eq!(Scale::from_zero([2.0]).share(1e9), 1.0);
        assert!(!Scale::from_zero([2.0]).holds(1e9));
        assert_eq!(Scale::between(8.0, 0.0).share(2.0), 0.75);
    }
}
