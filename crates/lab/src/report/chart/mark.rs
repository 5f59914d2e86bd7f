//! Marks: their shapes, and the colours of series and verdicts.
//!
//! Colours are classes of `chart.css`, after the palette of Okabe and Ito ("Color universal design",
//! 2008), and each goes with a shape or a dash of its own, so that no meaning hangs on colour alone.

use crate::report::element::{Element, Pixels};

/// Half the size of a mark, pixels.
const HALF: f64 = 4.0;
/// Colours that differ for everybody.
const COLOURS: usize = 7;
const SHAPES: [Shape; 5] =
    [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle, Shape::Wedge];

/// What a mark looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Diamond,
    /// Points up.
    Triangle,
    /// Points down.
    Wedge,
    /// For what does not count.
    Cross,
}

/// How one series, arm or verdict looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) class: String,
    pub(super) shape: Shape,
}

impl Look {
    /// That of the series of this number; 0 is the baseline.
    pub(super) fn of(number: usize) -> Look {
        let dash = match number / COLOURS {
            0 => "",
            1 => " dashed",
            _ => " dotted",
        };
        Look { class: format!("c{}{dash}", number % COLOURS), shape: SHAPES[number % SHAPES.len()] }
    }

    /// A mark with this look; `more` are further classes, `tip` is what the pointer shows.
    pub(super) fn mark(&self, x: f64, y: f64, more: &str, tip: &str) -> Element {
        let class = format!("mark {} {more}", self.class);
        Element::new("path").class(class.trim_end()).with("d", self.shape.path(x, y)).tip(tip)
    }
}

impl Shape {
    fn path(self, x: f64, y: f64) -> String {
        let (left, right) = (Pixels(x - HALF), Pixels(x + HALF));
        let (top, bottom) = (Pixels(y - HALF), Pixels(y + HALF));
        let (x, y) = (Pixels(x), Pixels(y));
        match self {
            Shape::Circle => {
                format!("M{left} {y}a{HALF} {HALF} 0 1 0 8 0a{HALF} {HALF} 0 1 0 -8 0z")
            }
            Shape::Square => format!("M{left} {top}H{right}V{bottom}H{left}z"),
            Shape::Diamond => format!("M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}z"),
            Shape::Triangle => format!("M{x} {top}L{right} {bottom}H{left}z"),
            Shape::Wedge => format!("M{left} {top}H{right}L{x} {bottom}z"),
            Shape::Cross => format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn fourteen_series_look_different() {
        let looks: BTreeSet<String> =
            (0..14).map(|number| format!("{:?}", Look::of(number))).collect();
        assert_eq!(looks.len(), 14);
    }

    #[test]
    fn a_mark_tells_what_it_stands_for() {
        let mark = Look::of(1).mark(10.0, 20.0, "hollow", "4 threads: < 2 %").to_string();
        assert!(mark.contains("class=\"mark c1 hollow\""), "{mark}");
        assert!(mark.contains("<title>4 threads: &lt; 2 %</title>"), "{mark}");
    }
}
