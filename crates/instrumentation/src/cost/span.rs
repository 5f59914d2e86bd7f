//! A number with its interval.

use serde::{Deserialize, Serialize};

/// A number and the ends of its interval, in the unit of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The lower end.
    pub low: f64,
    /// The number.
    pub value: f64,
    /// The upper end.
    pub high: f64,
}

impl Span {
    /// A price whose interval reaches beyond 1/1.5 and 1.5 times the price predicts nothing.
    pub const CLOSE: f64 = 1.5;

    /// Nothing, exactly.
    pub const ZERO: Span = Span::exact(0.0);

    /// A number that is known.
    pub const fn exact(value: f64) -> Span {
        Span { low: value, value, high: value }
    }

    /// The same in another unit, or multiplied; `factor` is not negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Span {
        Span { low: self.low * factor, value: self.value * factor, high: self.high * factor }
    }

    /// The sum. The ends are added, as if both were wrong in the same direction: the interval is
    /// never too short, whatever they have in common.
    #[must_use]
    pub fn plus(self, other: Span) -> Span {
        Span {
            low: self.low + other.low,
            value: self.value + other.value,
            high: self.high + other.high,
        }
    }

    /// The difference of two numbers that were measured apart: their errors are independent, so the halves
    /// of the intervals add as squares.
    #[must_use]
    pub fn less(self, other: Span) -> Span {
        let value = self.value - other.value;
        let below = (self.value - self.low).hypot(other.high - other.value);
        let above = (self.high - self.value).hypot(other.value - other.low);
        Span { low: value - below, value, high: value + above }
    }

    /// The point at `share` of the way to another.
    #[must_use]
    pub fn towards(self, other: Span, share: f64) -> Span {
        let between = |from: f64, to: f64| from + (to - from) * share;
        Span {
            low: between(self.low, other.low),
            value: between(self.value, other.value),
            high: between(self.high, other.high),
        }
    }

    /// Whether it is known closely enough to predict with: both ends are within 1 / [`Span::CLOSE`]
    /// and [`Span::CLOSE`] times the number.
    pub fn is_close(self) -> bool {
        let (least, most) = (self.value / Span::CLOSE, self.value * Span::CLOSE);
        self.value > 0.0 && self.low >= least && self.high <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_follow_by_hand() {
        let one = Span { low: 70.0, value: 100.0, high: 140.0 };
        let other = Span { low: 20.0, value: 60.0, high: 90.0 };
        assert_eq!(one.times(2.0), Span { low: 140.0, value: 200.0, high: 280.0 });
        assert_eq!(one.plus(other), Span { low: 90.0, value: 160.0, high: 230.0 });
        // Below: 30 and 30; above: 40 and 40.
        let less = one.less(other);
        assert_eq!(less.value, 40.0);
        assert!((less.low - (40.0 - 1800.0_f64.sqrt())).abs() < 1e-9, "{less:?}");
        assert!((less.high - (40.0 + 3200.0_f64.sqrt())).abs() < 1e-9, "{less:?}");
        assert_eq!(one.towards(other, 0.25), Span { low: 57.5, value: 90.0, high: 127.5 });
        assert!(Span { low: 70.0, value: 100.0, high: 149.0 }.is_close());
        assert!(!Span { low: 66.0, value: 100.0, high: 149.0 }.is_close());
        assert!(!Span { low: 70.0, value: 100.0, high: 151.0 }.is_close());
        assert!(!Span { low: -1.0, value: 0.0, high: 1.0 }.is_close());
    }
}
