//! A chart as it was drawn: in a page, or as a file of its own.

use std::fmt::{self, Display, Formatter};

use crate::report::chart::STYLE;
use crate::report::chart::plot::{WIDTH, label};
use crate::report::element::{Element, Pixels};

/// What the title needs above a chart that stands alone, pixels.
const HEAD: f64 = 30.0;

/// A chart as it was drawn.
#[derive(Clone, Debug)]
pub(in crate::report) struct Picture {
    /// What it shows, for who cannot see it.
    title: String,
    /// Pixels.
    height: f64,
    inside: Vec<Element>,
}

impl Picture {
    pub(super) fn new(title: &str, height: f64, inside: Vec<Element>) -> Picture {
        Picture { title: title.to_owned(), height, inside }
    }

    /// As a part of a page that has the style, and the title beside it.
    pub(in crate::report) fn element(&self) -> Element {
        self.frame(0.0).all(self.inside.iter().cloned())
    }

    /// As a file, which has its title, its style and a ground of its own: it looks the same on any page.
    pub(super) fn alone(&self) -> Element {
        let ground = Element::new("rect").class("ground").at("y", -HEAD);
        let height = Pixels(self.height + HEAD);
        let title = label(&self.title, (12.0, -10.0), "start").class("axis");
        self.frame(HEAD)
            .with("width", WIDTH)
            .with("height", height)
            .add(Element::style(STYLE))
            .add(ground.with("width", WIDTH).with("height", height))
            .add(title)
            .all(self.inside.iter().cloned())
    }

    /// With room above it.
    fn frame(&self, head: f64) -> Element {
        let (top, height) = (Pixels(-head), Pixels(self.height + head));
        Element::new("svg")
            .with("xmlns", "http://www.w3.org/2000/svg")
            .class("chart")
            .with("viewBox", format!("0 {top} {WIDTH} {height}"))
            .with("role", "img")
            .with("aria-label", &self.title)
    }
}

impl Display for Picture {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.element().fmt(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::assert_well_formed;

    #[test]
    fn a_chart_alone_has_its_title_and_a_ground_and_reaches_over_both() {
        let picture = Picture::new("read-only: QPS < TPS", 300.0, vec![Element::new("g")]);
        let alone = picture.alone().to_string();
        assert_well_formed(&alone);
        assert!(alone.contains("viewBox=\"0 -30 720 330\""), "{alone}");
        assert!(alone.contains("width=\"720\" height=\"330\""), "{alone}");
        let ground = "<rect class=\"ground\" y=\"-30\" width=\"720\" height=\"330\"></rect>";
        let (style, drawn) = alone.split_once("</style>").unwrap();
        assert!(drawn.starts_with(ground), "the ground lies under all else: {alone}");
        assert!(style.contains(".ground { fill: var(--paper); }") && style.contains("font:"));
        assert!(drawn.contains(">read-only: QPS &lt; TPS</text>"), "{alone}");
        let part = picture.to_string();
        assert!(part.contains("viewBox=\"0 0 720 300\"") && !part.contains("<style>"), "{part}");
    }
}
