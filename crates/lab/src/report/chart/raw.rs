//! Every window of a cell over time, so that drift and outliers can be seen.

use jiff::Timestamp;

use crate::metric::Metric;
use crate::report::Report;
use crate::report::chart::Figure;
use crate::report::chart::mark::{Look, Shape};
use crate::report::chart::picture::Picture;
use crate::report::chart::plot::{Axis, HEIGHT, Plot};
use crate::report::chart::scale::Scale;
use crate::report::words;
use crate::window::{Cell, Window};

const CAPTION: &str = "A mark for each window; crosses are void and count for nothing, those at the \
                       foot were not measured.";

/// The windows of a cell.
pub(super) fn of(report: Report<'_>, cell: &Cell) -> Figure {
    let windows: Vec<&Window> = report.windows.iter().filter(|one| one.cell == *cell).collect();
    let mut arms: Vec<&str> =
        report.suite.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    arms.extend([Window::AGAIN, Window::ALONE]);
    let begin = report.windows.iter().map(|window| window.begin).min();
    let title = format!("{}: every window", words::cell(cell));
    let begin = begin.unwrap_or(Timestamp::UNIX_EPOCH);
    let picture = draw(&title, &windows, &arms, report.verdict_metric(), begin);
    Figure::new(title, CAPTION, picture)
}

fn draw(
    title: &str,
    windows: &[&Window],
    arms: &[&str],
    metric: Metric,
    begin: Timestamp,
) -> Picture {
    let value = |window: &Window| value(window, metric);
    let minutes = |window: &Window| window.begin.duration_since(begin).as_secs_f64() / 60.0;
    let x = Scale::around(windows.iter().map(|window| minutes(window)));
    let y = Scale::around(windows.iter().filter_map(|window| value(window)));
    let title_of_y = format!("{} ({})", words::short(metric), words::unit(metric));
    let x = Axis::linear("time since the first window (min)", x);
    let mut plot = Plot::new(x, Axis::linear(title_of_y, y), HEIGHT);
    let foot = plot.foot();
    for window in windows {
        let number = arms.iter().position(|arm| *arm == window.arm).unwrap_or(arms.len());
        let x = plot.x(minutes(window));
        let y = value(window).map_or(foot, |value| plot.y(value));
        let shape = if window.void.is_some() || value(window).is_none() {
            Shape::Cross
        } else {
            Look::of(number).shape
        };
        let look = Look { shape, ..Look::of(number) };
        plot.draw(look.mark(x, y, "", &tip(window, metric)));
    }
    let legend: Vec<(Look, String)> = arms
        .iter()
        .enumerate()
        .filter(|(_, arm)| windows.iter().any(|window| window.arm == **arm))
        .map(|(number, arm)| (Look::of(number), (*arm).to_owned()))
        .chain([(Look { shape: Shape::Cross, ..Look::of(0) }, "void".to_owned())])
        .collect();
    plot.finish(title, &legend)
}

/// In the unit of the axis.
fn value(window: &Window, metric: Metric) -> Option<f64> {
    let value = metric.of(window.measured.as_ref()?)? * words::factor(metric);
    value.is_finite().then_some(value)
}

fn tip(window: &Window, metric: Metric) -> String {
    let Window { number, block, arm, server_start, .. } = window;
    let what = match value(window, metric) {
        Some(value) => format!("{} {}", words::plain(value), words::unit(metric)),
        None => words::NOT_MEASURED.to_owned(),
    };
    let void = window.void.as_ref().map_or(String::new(), |why| format!("; {}", words::void(why)));
    format!("window {number}, block {block}, server start {server_start}, {arm}: {what}{void}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::window;
    use crate::report::tests::assert_well_formed;

    #[test]
    fn a_void_window_is_a_cross_and_one_that_was_not_measured_lies_at_the_foot() {
        let mut windows = [window(0, "off", 20.0), window(1, "on", 21.0), window(2, "on", 0.0)];
        windows[1].void = Some("steal was 9 %".to_owned());
        windows[2].measured = None;
        let windows: Vec<&Window> = windows.iter().collect();
        let cpu = Metric::CpuPerStatement;
        let svg = draw("t", &windows, &["off", "on"], cpu, windows[0].begin).to_string();
        assert_well_formed(&svg);
        assert!(svg.contains("void: steal was 9 %"), "{svg}");
        assert!(svg.contains("window 2, block 0, server start 0, on: not measured"), "{svg}");
    }

    #[test]
    fn no_window_makes_a_chart() {
        let svg = draw("t", &[], &[], Metric::Qps, Timestamp::UNIX_EPOCH).to_string();
        assert_well_formed(&svg);
    }
}
