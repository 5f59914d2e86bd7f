//! An effect with its interval.

/// A value and where the true one lies with a confidence of 95 %. Where it could not be measured, all
/// three are not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Where nothing could be measured.
    pub const UNKNOWN: Interval = Interval { low: f64::NAN, value: f64::NAN, high: f64::NAN };

    /// The same interval on another scale; `scale` must grow.
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Interval {
        Interval { low: scale(self.low), value: scale(self.value), high: scale(self.high) }
    }

    /// The low end, the value, the high end.
    pub fn ends(&self) -> [f64; 3] {
        [self.low, self.value, self.high]
    }

    /// Whether something was measured.
    pub fn is_known(&self) -> bool {
        self.ends().iter().all(|end| end.is_finite())
    }

    /// Whether `truth` lies in it.
    pub fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    /// Half its length.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}
