//! The frame of a chart: axes, ticks, titles, and the legend below.

use std::borrow::Cow;

use crate::report::chart::mark::Look;
use crate::report::chart::picture::Picture;
use crate::report::chart::scale::Scale;
use crate::report::element::{Element, Pixels};

/// Width of every chart, pixels. A narrow screen scrolls it instead of making it unreadable.
pub(super) const WIDTH: f64 = 720.0;
/// Height of the plot of a chart that has no rows, pixels.
pub(super) const HEIGHT: f64 = 280.0;
/// A digit of the labels at the size in `chart.css`, pixels; letters are narrower on the average.
const CHARACTER: f64 = 7.4;
const LINE: f64 = 18.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 24.0;
/// What ticks and title of an axis need beside the labels, pixels.
const TITLE: f64 = 30.0;
/// Longer names are cut; the whole one is shown by the pointer.
const NAME_MAX: usize = 34;

/// One axis.
pub(super) struct Axis {
    /// What it shows, with its unit.
    pub(super) title: String,
    pub(super) scale: Scale,
    /// Where ticks are and what they are called.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with round ticks.
    pub(super) fn linear(title: impl Into<String>, scale: Scale) -> Axis {
        let (ticks, digits) = scale.ticks();
        let called = |tick: f64| crate::report::words::number(tick, digits);
        let ticks = ticks.into_iter().map(|tick| (tick, called(tick))).collect();
        Axis { title: title.into(), scale, ticks }
    }

    /// The numbers of sessions, at equal distances for equal factors.
    pub(super) fn threads(threads: &[u32]) -> Axis {
        let scale = Scale::log2(threads.iter().copied().map(f64::from));
        let ticks = threads.iter().map(|one| (f64::from(*one), one.to_string())).collect();
        Axis { title: "threads (sessions of the load, log2)".to_owned(), scale, ticks }
    }

    /// Rows with names, the first on top; row `n` lies at `n + 0.5`.
    pub(super) fn rows(names: &[String]) -> Axis {
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64 + 0.5, name.clone()));
        let scale = Scale::between(names.len().max(1) as f64, 0.0);
        Axis { title: String::new(), scale, ticks: ticks.collect() }
    }
}

/// A chart while it is drawn.
pub(super) struct Plot {
    x: Axis,
    y: Axis,
    left: f64,
    height: f64,
    body: Vec<Element>,
}

impl Plot {
    pub(super) fn new(x: Axis, y: Axis, height: f64) -> Plot {
        let longest = y.ticks.iter().map(|(_, name)| cut(name).chars().count()).max().unwrap_or(0);
        let title = if y.title.is_empty() { 0.0 } else { TITLE };
        let left = longest as f64 * CHARACTER + 12.0 + title;
        Plot { x, y, left, height, body: Vec::new() }
    }

    /// Where a value lies from left to right, pixels.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.x.scale.share(value) * (WIDTH - RIGHT - self.left)
    }

    /// Where a value lies from top to bottom, pixels.
    pub(super) fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.scale.share(value)) * self.height
    }

    /// The lower edge of the plot, pixels.
    pub(super) fn foot(&self) -> f64 {
        TOP + self.height
    }

    /// Where a text of this many characters begins right of a value, pixels; inside the plot.
    pub(super) fn right_of(&self, value: f64, characters: usize) -> f64 {
        let last = WIDTH - RIGHT - characters as f64 * CHARACTER;
        (self.x(value) + 8.0).min(last)
    }

    /// Draws an element over what is there.
    pub(super) fn draw(&mut self, element: Element) {
        self.body.push(element);
    }

    /// A line between two places, pixels.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.draw(line(class, from, to));
    }

    /// A line through the whole plot at a value of the x axis, where it has one.
    pub(super) fn upright(&mut self, class: &str, value: f64) {
        if self.x.scale.holds(value) {
            let x = self.x(value);
            self.line(class, (x, TOP), (x, TOP + self.height));
        }
    }

    /// A line through the whole plot at a value of the y axis, where it has one.
    pub(super) fn level(&mut self, class: &str, value: f64) {
        if self.y.scale.holds(value) {
            let y = self.y(value);
            self.line(class, (self.left, y), (WIDTH - RIGHT, y));
        }
    }

    /// The chart with a legend of these looks and names.
    pub(super) fn finish(self, title: &str, legend: &[(Look, String)]) -> Picture {
        let bottom = self.foot();
        let (legend, height) = self::legend(legend, bottom + TITLE + LINE);
        let mut inside = Vec::new();
        self.draw_x(&mut inside, bottom);
        self.draw_y(&mut inside);
        inside.extend(self.body);
        inside.extend(legend);
        Picture::new(title, height, inside)
    }

    fn draw_x(&self, into: &mut Vec<Element>, bottom: f64) {
        let mut free_from = f64::NEG_INFINITY;
        for (value, name) in &self.x.ticks {
            let x = self.x(*value);
            into.push(line("grid", (x, TOP), (x, bottom)));
            let half = width(name) / 2.0;
            if x - half < free_from {
                continue;
            }
            free_from = x + half + CHARACTER;
            into.push(label(name, (x, bottom + 16.0), "middle"));
        }
        let middle = (self.left + WIDTH - RIGHT) / 2.0;
        into.push(label(&self.x.title, (middle, bottom + 34.0), "middle").class("axis"));
    }

    fn draw_y(&self, into: &mut Vec<Element>) {
        for (value, name) in &self.y.ticks {
            let y = self.y(*value);
            into.push(line("grid", (self.left, y), (WIDTH - RIGHT, y)));
            let short = cut(name);
            let tick = label(&short, (self.left - 6.0, y + 4.0), "end");
            into.push(if short == *name { tick } else { tick.tip(name) });
        }
        if !self.y.title.is_empty() {
            let middle = Pixels(TOP + self.height / 2.0);
            let title = Element::new("text").class("axis").with("text-anchor", "middle");
            let turned = title.with("transform", format!("translate(14 {middle}) rotate(-90)"));
            into.push(turned.text(self.y.title.clone()));
        }
    }
}

/// A line between two places, pixels.
pub(super) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Element {
    let element = Element::new("line").class(class).at("x1", from.0).at("y1", from.1);
    element.at("x2", to.0).at("y2", to.1)
}

/// A text at a place, pixels.
pub(super) fn label(text: &str, (x, y): (f64, f64), anchor: &str) -> Element {
    Element::new("text").at("x", x).at("y", y).with("text-anchor", anchor).text(text)
}

/// The legend in as many lines as it needs, and where it ends.
fn legend(entries: &[(Look, String)], top: f64) -> (Vec<Element>, f64) {
    let mut elements = Vec::new();
    let (mut x, mut y) = (12.0, top);
    for (look, name) in entries {
        let short = cut(name);
        let needed = 16.0 + width(&short) + 20.0;
        if x > 12.0 && x + needed > WIDTH {
            (x, y) = (12.0, y + LINE);
        }
        elements.push(look.mark(x + 4.0, y + 8.0, "", name));
        elements.push(label(&short, (x + 16.0, y + 12.0), "start"));
        x += needed;
    }
    (elements, y + if entries.is_empty() { 0.0 } else { LINE + 4.0 })
}

fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// A name that fits beside an axis.
fn cut(name: &str) -> Cow<'_, str> {
    if name.chars().count() <= NAME_MAX {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().take(NAME_MAX - 1).chain(['…']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(svg: &str) -> Vec<(f64, f64, String)> {
        let parts = svg.split("<text x=\"").skip(1);
        let place = |part: &str| {
            let (x, rest) = part.split_once("\" y=\"").unwrap();
            let (y, rest) = rest.split_once('"').unwrap();
            let (_, rest) = rest.split_once('>').unwrap();
            let (text, _) = rest.split_once('<').unwrap();
            (x.parse().unwrap(), y.parse().unwrap(), text.to_owned())
        };
        parts.map(place).collect()
    }

    #[test]
    fn labels_of_an_axis_leave_room_for_each_other() {
        let threads: Vec<u32> = (1..=40).collect();
        let y = Axis::linear("QPS (statements/s)", Scale::from_zero([50_000.0]));
        let plot = Plot::new(Axis::threads(&threads), y, HEIGHT);
        let labels = labels(&plot.finish("t", &[]).to_string());
        let ticks: Vec<_> = labels
            .iter()
            .filter(|(_, _, text)| text.parse::<u32>().is_ok_and(|number| number <= 40))
            .collect();
        assert!(ticks.len() > 5, "{ticks:?}");
        for pair in ticks.windows(2) {
            let room = (width(&pair[0].2) + width(&pair[1].2)) / 2.0;
            let is_one_row = (pair[0].1 - pair[1].1).abs() < 0.1;
            assert!(!is_one_row || pair[1].0 - pair[0].0 >= room, "{pair:?}");
        }
    }

    #[test]
    fn a_legend_takes_a_new_line_before_it_leaves_the_picture() {
        let entries: Vec<_> =
            (0..9).map(|number| (Look::of(number), "x".repeat(60 + number))).collect();
        let (elements, end) = legend(&entries, 0.0);
        let text: String = elements.iter().map(Element::to_string).collect();
        for (x, _, name) in labels(&text) {
            assert!(x + width(&name) <= WIDTH, "{name} begins at {x}");
        }
        assert!(end > 4.0 * LINE);
    }
}
