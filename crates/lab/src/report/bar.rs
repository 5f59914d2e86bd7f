//! A bar beside a line of a table: ours with its interval, and the published range on the same scale.

use crate::report::chart::scale;
use crate::report::element::Element;
use crate::report::words;

/// Size of the picture of a bar, pixels.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 24.0;
/// Where the bar lies, and half the height of the published range, pixels.
const MIDDLE: f64 = HEIGHT / 2.0;
const HALF: f64 = 6.0;

/// What all bars of a table have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale(scale::Scale);

/// One bar.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// The low end, the value and the high end.
    pub(super) ours: Option<[f64; 3]>,
    /// The lowest and the highest.
    pub(super) published: Option<[f64; 2]>,
    /// The class of the verdict in `chart.css`.
    pub(super) class: &'static str,
    pub(super) scale: Scale,
}

impl Scale {
    /// Holds what is measured, what is published, and 0.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Scale {
        Scale(scale::Scale::around(values.chain([0.0])))
    }

    /// The ticks with their names.
    fn ticks(self) -> Vec<(f64, String)> {
        let (ticks, digits) = self.0.ticks();
        ticks.into_iter().map(|tick| (tick, words::signed(tick, digits))).collect()
    }

    /// In which of this many places a value lies.
    fn place(self, value: f64, places: usize) -> usize {
        (self.0.share(value) * (places - 1) as f64).round() as usize
    }

    fn x(self, value: f64) -> f64 {
        self.0.share(value) * WIDTH
    }

    /// The names of the ticks, as far as each has room, each in its place.
    pub(super) fn axis_in_text(self, places: usize) -> String {
        let mut text = vec!['·'; places];
        let mut free_from = 0;
        for (tick, name) in self.ticks() {
            let name: Vec<char> = name.chars().collect();
            let begin = self.place(tick, places).saturating_sub(name.len() / 2);
            let begin = begin.min(places.saturating_sub(name.len()));
            if begin >= free_from && name.len() <= places {
                text[begin..begin + name.len()].copy_from_slice(&name);
                free_from = begin + name.len() + 1;
            }
        }
        text.into_iter().collect()
    }

    /// The same as a picture.
    pub(super) fn axis(self) -> Element {
        let mut free_from = 0.0;
        let labels = self.ticks().into_iter().filter_map(|(tick, name)| {
            let half = 4.0 * name.chars().count() as f64;
            let x = self.x(tick).clamp(half, WIDTH - half);
            let is_free = x - half >= free_from;
            free_from = if is_free { x + half + 6.0 } else { free_from };
            let label = Element::new("text").at("x", x).at("y", HEIGHT - 8.0);
            is_free.then(|| label.with("text-anchor", "middle").text(name))
        });
        frame().all(labels)
    }
}

impl Bar {
    /// In this many characters: `░` is published, `├─●─┤` is ours.
    pub(super) fn in_text(&self, places: usize) -> String {
        let at = |value| self.scale.place(value, places);
        let mut text = vec!['·'; places];
        text[at(0.0)] = '│';
        if let Some([low, high]) = self.published {
            text[at(low).min(at(high))..=at(high)].fill('░');
        }
        if let Some([low, value, high]) = self.ours {
            let (low, high) = (at(low), at(high));
            text[low.min(high)..=high].fill('─');
            (text[low], text[high]) = ('├', '┤');
            text[at(value)] = '●';
        }
        text.into_iter().collect()
    }

    /// As a picture whose lines go on in the rows above and below.
    pub(super) fn picture(&self) -> Element {
        let x = |value| self.scale.x(value);
        let line = |class: String, [x1, y1, x2, y2]: [f64; 4]| {
            let line = Element::new("line").class(class).at("x1", x1).at("y1", y1);
            line.at("x2", x2).at("y2", y2)
        };
        let upright =
            |class: &str, value| line(class.to_owned(), [x(value), 0.0, x(value), HEIGHT]);
        let ticks = self.scale.ticks().into_iter().map(|(tick, _)| upright("grid", tick));
        let mut picture = frame().all(ticks).add(upright("zero", 0.0));
        if let Some([low, high]) = self.published {
            // One figure has a width, too.
            let (left, width) = (x(low) - 1.5, x(high) - x(low) + 3.0);
            let range = Element::new("rect").class("published").at("x", left).at("width", width);
            let tip = format!("published: {} to {}", words::percent(low), words::percent(high));
            picture = picture.add(range.at("y", MIDDLE - HALF).at("height", 2.0 * HALF).tip(tip));
        }
        if let Some([low, value, high]) = self.ours {
            let class = format!("bar {}", self.class);
            let end = |at: f64| line(class.clone(), [x(at), MIDDLE - 4.0, x(at), MIDDLE + 4.0]);
            let mark = Element::new("circle").class(format!("mark {}", self.class));
            picture = picture
                .add(line(class.clone(), [x(low), MIDDLE, x(high), MIDDLE]))
                .all([end(low), end(high)])
                .add(mark.at("cx", x(value)).at("cy", MIDDLE).with("r", 4));
        }
        picture
    }
}

fn frame() -> Element {
    let picture = Element::new("svg").class("chart").with("width", WIDTH).with("height", HEIGHT);
    picture.with("viewBox", format!("0 0 {WIDTH} {HEIGHT}")).with("aria-hidden", "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::assert_well_formed;

    fn bar(ours: Option<[f64; 3]>, published: Option<[f64; 2]>) -> Bar {
        let scale = Scale::around([-20.0, 10.0].into_iter());
        Bar { ours, published, class: "cost", scale }
    }

    #[test]
    fn ours_and_the_published_range_lie_on_one_scale() {
        let both = bar(Some([-12.0, -10.0, -8.0]), Some([-20.0, -16.0]));
        assert_eq!(both.scale.axis_in_text(31), "·−20······−10······0·······+10·");
        assert_eq!(both.in_text(31), "··░░░░···├─●┤······│···········");
    }

    #[test]
    fn what_is_not_there_leaves_the_zero() {
        let none = bar(None, None);
        assert_eq!(none.in_text(31).matches('│').count(), 1);
        assert_well_formed(&none.picture().to_string());
        let one = bar(Some([f64::NAN, 1e9, f64::INFINITY]), Some([-5.0, -5.0]));
        assert_eq!(one.in_text(31).chars().count(), 31);
        assert_well_formed(&one.picture().to_string());
        assert_well_formed(&one.scale.axis().to_string());
    }
}
