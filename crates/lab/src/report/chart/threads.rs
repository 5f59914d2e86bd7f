//! Curves against the number of threads, a curve for each scenario.

use std::fmt::Write as _;

use crate::metric::Metric;
use crate::report::Report;
use crate::report::chart::Figure;
use crate::report::chart::mark::Look;
use crate::report::chart::picture::Picture;
use crate::report::chart::plot::{Axis, HEIGHT, Plot};
use crate::report::chart::scale::Scale;
use crate::report::element::{Element, Pixels};
use crate::report::group::Group;
use crate::report::words;
use crate::suite::Scenario;
use crate::window::Cell;

/// How far curves are moved aside, so that their bars do not hide each other, pixels.
const ASIDE: f64 = 3.0;

/// One scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<Point>,
    /// What the source printed, as threads and value.
    pub(super) published: Vec<(u32, f64)>,
}

/// One cell of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) threads: u32,
    pub(super) value: f64,
    /// Ends of the interval; equal to the value where there is none.
    pub(super) low: f64,
    pub(super) high: f64,
    /// What the pointer shows.
    pub(super) tip: String,
}

/// QPS or TPS, as in the sources.
pub(super) fn throughput(report: Report<'_>, group: &Group<'_>) -> Figure {
    let metric = report.source_metric();
    let cells = &group.cells;
    let curves = curves(report, group, |scenario| {
        cells.iter().filter_map(|cell| rate(report, cell, scenario, metric)).collect()
    });
    let (name, unit) = (words::name(metric), words::unit(metric));
    let values = curves.iter().flat_map(|curve| &curve.points).flat_map(|it| [it.value, it.high]);
    let axis = Axis::linear(format!("{name} ({unit})"), Scale::from_zero(values));
    let title = format!("{}: {name} by threads", group.name);
    let picture = draw(&title, axis, &threads(cells), &curves, Spread::Bars);
    let caption = "Bars: 95 % interval of the difference from the baseline.";
    Figure::new(title, caption, picture).in_order(group)
}

/// The change of QPS or TPS against the baseline, beside the published one.
pub(super) fn changes(report: Report<'_>, group: &Group<'_>) -> Figure {
    let metric = report.source_metric();
    let cells = &group.cells;
    let mut curves = curves(report, group, |scenario| {
        cells.iter().filter_map(|cell| change(report, cell, scenario, metric)).collect()
    });
    for (curve, scenario) in curves.iter_mut().zip(&group.scenarios) {
        let published = |cell: &Cell| {
            let percent = report.published_percent(cell, &scenario.name)?;
            let is_sound = report.contradiction_of_change(cell, &scenario.name).is_none();
            is_sound.then_some((cell.threads, percent))
        };
        curve.published = cells.iter().filter_map(published).collect();
    }
    curves.retain(|curve| curve.name != report.suite.baseline);
    let ours =
        curves.iter().flat_map(|curve| &curve.points).flat_map(|it| [it.value, it.low, it.high]);
    let published = curves.iter().flat_map(|curve| &curve.published).map(|(_, value)| *value);
    let scale = Scale::around(ours.chain(published).chain([0.0]));
    let name = words::name(metric);
    let axis = Axis::linear(format!("change of {name} (%)"), scale);
    let baseline = &report.suite.baseline;
    let title = format!("{}: change of {name} against {baseline} by threads", group.name);
    let picture = draw(&title, axis, &threads(cells), &curves, Spread::Bands);
    let caption = "Lines and bands: ours with the 95 % interval. Hollow marks: the published figures, without those that \
         contradict their source.";
    Figure::new(title, caption, picture).in_order(group)
}

/// How intervals are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    Bars,
    Bands,
}

/// Draws curves of any number of points, or none.
pub(super) fn draw(
    title: &str,
    axis: Axis,
    threads: &[u32],
    curves: &[Curve],
    spread: Spread,
) -> Picture {
    let mut plot = Plot::new(Axis::threads(threads), axis, HEIGHT);
    plot.level("zero", 0.0);
    for (number, curve) in curves.iter().enumerate() {
        let aside = (number as f64 - (curves.len() as f64 - 1.0) / 2.0) * ASIDE;
        let x = |plot: &Plot, threads: u32| plot.x(f64::from(threads)) + aside;
        if spread == Spread::Bands {
            neighbours(curve, threads).for_each(|part| band(&mut plot, curve, part, aside));
        }
        neighbours(curve, threads).for_each(|part| path(&mut plot, curve, part, aside));
        for point in &curve.points {
            let x = x(&plot, point.threads);
            if spread == Spread::Bars && point.high > point.low {
                let class = format!("bar {}", curve.look.class);
                plot.line(&class, (x, plot.y(point.low)), (x, plot.y(point.high)));
            }
            plot.draw(curve.look.mark(x, plot.y(point.value), "", &point.tip));
        }
        for (threads, value) in &curve.published {
            let tip =
                format!("{}, {threads} threads: published {}", curve.name, words::percent(*value));
            let (x, y) = (x(&plot, *threads), plot.y(*value));
            plot.draw(curve.look.mark(x, y, "hollow", &tip));
        }
    }
    let legend: Vec<(Look, String)> =
        curves.iter().map(|curve| (curve.look.clone(), curve.name.clone())).collect();
    plot.finish(title, &legend)
}

/// The points of a curve between which no number of threads was left out, two or more.
fn neighbours<'a>(curve: &'a Curve, threads: &'a [u32]) -> impl Iterator<Item = &'a [Point]> {
    let place = |point: &Point| threads.iter().position(|one| *one == point.threads);
    let are_next = move |one: &Point, other: &Point| place(one).map(|at| at + 1) == place(other);
    curve.points.chunk_by(are_next).filter(|part| part.len() > 1)
}

/// The line through points.
fn path(plot: &mut Plot, curve: &Curve, points: &[Point], aside: f64) {
    let mut way = String::new();
    for point in points {
        let x = Pixels(plot.x(f64::from(point.threads)) + aside);
        let command = if way.is_empty() { 'M' } else { 'L' };
        let _ = write!(way, "{command}{x} {}", Pixels(plot.y(point.value)));
    }
    let class = format!("series {}", curve.look.class);
    plot.draw(Element::new("path").class(class).with("d", way));
}

/// The area between the ends of the intervals of points.
fn band(plot: &mut Plot, curve: &Curve, points: &[Point], aside: f64) {
    let place = |point: &Point, value: f64| {
        let x = Pixels(plot.x(f64::from(point.threads)) + aside);
        format!("{x},{}", Pixels(plot.y(value)))
    };
    let there = points.iter().map(|point| place(point, point.high));
    let back = points.iter().rev().map(|point| place(point, point.low));
    let corners: Vec<String> = there.chain(back).collect();
    let class = format!("band {}", curve.look.class);
    plot.draw(Element::new("polygon").class(class).with("points", corners.join(" ")));
}

fn threads(cells: &[Cell]) -> Vec<u32> {
    cells.iter().map(|cell| cell.threads).collect()
}

/// A curve for each scenario of a group. A scenario looks the same in every group.
fn curves(
    report: Report<'_>,
    group: &Group<'_>,
    points: impl Fn(&str) -> Vec<Point>,
) -> Vec<Curve> {
    let number = |name: &str| report.suite.scenarios.iter().position(|one| one.name == name);
    let curve = |scenario: &&Scenario| Curve {
        name: scenario.name.clone(),
        look: Look::of(number(&scenario.name).unwrap_or(0)),
        points: points(&scenario.name),
        published: Vec::new(),
    };
    group.scenarios.iter().map(curve).collect()
}

/// A throughput, with the interval of its difference from the baseline.
fn rate(report: Report<'_>, cell: &Cell, scenario: &str, metric: Metric) -> Option<Point> {
    let threads = cell.threads;
    let tip = |value| {
        format!(
            "{scenario}, {threads} threads: {} {}",
            words::value(metric, value),
            words::unit(metric)
        )
    };
    if scenario == report.suite.baseline {
        let value = report.baseline(cell, metric).ok().filter(|value| value.is_finite())?;
        return Some(Point { threads, value, low: value, high: value, tip: tip(value) });
    }
    let one = report.answer(cell, scenario, metric).ok()?;
    let scaled = one.percent.map(|percent| one.baseline_value * (1.0 + percent / 100.0));
    let [low, value, high] = scaled.ends();
    let tip = format!("{}, {}", tip(one.arm_value), words::percent_interval(&one.percent));
    scaled.is_known().then_some(Point { threads, value, low, high, tip })
}

fn change(report: Report<'_>, cell: &Cell, scenario: &str, metric: Metric) -> Option<Point> {
    let one = report.answer(cell, scenario, metric).ok()?;
    let [low, value, high] = one.percent.ends();
    let change = words::percent_interval(&one.percent);
    let tip = format!("{scenario}, {} threads: {change}", cell.threads);
    one.percent.is_known().then_some(Point { threads: cell.threads, value, low, high, tip })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::assert_well_formed;

    fn curve(points: &[(u32, f64)]) -> Curve {
        let point = |(threads, value): &(u32, f64)| Point {
            threads: *threads,
            value: *value,
            low: value - 1.0,
            high: value + 1.0,
            tip: "here".to_owned(),
        };
        Curve {
            name: "off".to_owned(),
            look: Look::of(0),
            points: points.iter().map(point).collect(),
            published: vec![(1, -3.0)],
        }
    }

    fn drawn(curves: &[Curve], threads: &[u32], spread: Spread) -> String {
        let axis = Axis::linear("QPS (statements/s)", Scale::from_zero([10.0]));
        let svg = draw("t", axis, threads, curves, spread).to_string();
        assert_well_formed(&svg);
        svg
    }

    #[test]
    fn no_point_and_one_point_make_a_chart() {
        for spread in [Spread::Bars, Spread::Bands] {
            let none = drawn(&[], &[], spread);
            assert!(!none.contains("class=\"mark"), "{none}");
            let one = drawn(&[curve(&[(4, 5.0)])], &[4], spread);
            assert_eq!(one.matches("<title>here</title>").count(), 1);
            assert!(!one.contains("class=\"series"), "{one}");
        }
    }

    #[test]
    fn points_are_joined_and_have_their_interval() {
        let curves = [curve(&[(1, 2.0), (2, 5.0), (4, 6.0)])];
        let bars = drawn(&curves, &[1, 2, 4], Spread::Bars);
        assert_eq!(bars.matches("class=\"bar c0\"").count(), 3);
        assert_eq!(bars.matches("class=\"series c0\"").count(), 1);
        let bands = drawn(&curves, &[1, 2, 4], Spread::Bands);
        assert_eq!(bands.matches("class=\"band c0\"").count(), 1);
        assert_eq!(bands.matches("class=\"mark c0 hollow\"").count(), 1);
    }
}
