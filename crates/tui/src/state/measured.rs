//! A number in four bytes that can be absent.

/// A reading or its absence. The history keeps many of them, so each takes four bytes: 24 bits of
/// precision (IEEE 754 binary32), and NaN for what was not measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured(f32);

impl Measured {
    /// From a reading.
    pub(crate) fn of(value: Option<f64>) -> Self {
        Self(value.map_or(f32::NAN, |value| value as f32))
    }

    /// From a count.
    pub(crate) fn count(value: Option<u64>) -> Self {
        Self::of(value.map(|value| value as f64))
    }

    /// The reading; `None` if it was not measured.
    pub(crate) fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(f64::from(self.0))
    }
}
