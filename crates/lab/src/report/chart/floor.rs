//! The noise floor: what arms that are set alike show when they are compared.

use crate::analysis::{Comparison, Metric};
use crate::report::Report;
use crate::report::chart::Figure;
use crate::report::chart::mark::{Look, Shape};
use crate::report::chart::picture::Picture;
use crate::report::chart::plot::{Axis, Plot};
use crate::report::chart::scale::Scale;
use crate::report::words;

/// Height of the strip of a metric, pixels.
const STRIP: f64 = 44.0;
/// In how many lines the marks of a strip lie.
const LINES: usize = 5;
const CAPTION: &str = "A mark for each cell: the change between two arms that are set alike. All of it \
                       is noise. Filled: the 95 % interval leaves out 0, a false alarm. Dashed: the \
                       effect on processor time that the suite declares detectable.";

/// A strip for each metric.
pub(super) fn of(report: Report<'_>) -> Figure {
    let again: Vec<&Comparison> =
        report.analysis.comparisons.iter().filter(|one| is_shown(one)).collect();
    let metrics: Vec<Metric> = report.analysis.floor.iter().map(|floor| floor.metric).collect();
    let title = "Noise floor: arms that are set alike compared with each other (A/A)".to_owned();
    let picture = draw(&title, &metrics, &again, report.suite.detectable_percent);
    Figure::new(title, CAPTION, picture)
}

fn is_shown(comparison: &Comparison) -> bool {
    comparison.is_again() && comparison.verdict.is_known() && comparison.percent.is_known()
}

fn draw(title: &str, metrics: &[Metric], again: &[&Comparison], declared: f64) -> Picture {
    let changes = again.iter().map(|one| one.percent.value);
    let ends = [-declared, declared, 0.0];
    let x = Axis::linear("d% between equal arms (%)", Scale::around(changes.chain(ends)));
    let names: Vec<String> =
        metrics.iter().map(|metric| words::short(*metric).to_owned()).collect();
    let height = metrics.len().max(1) as f64 * STRIP;
    let mut plot = Plot::new(x, Axis::rows(&names), height);
    plot.upright("zero", 0.0);
    plot.upright("limit", -declared);
    plot.upright("limit", declared);
    for (row, metric) in metrics.iter().enumerate() {
        let of_metric = again.iter().filter(|one| one.metric == *metric);
        for (at, one) in of_metric.enumerate() {
            // Beside each other by their order, so that the same numbers give the same picture.
            let line = (at % LINES) as f64 / LINES as f64;
            let y = plot.y(row as f64 + 0.18 + 0.8 * line);
            let is_alarm = !one.percent.holds(0.0);
            let change = words::percent_interval(&one.percent);
            let tip = format!("{}: {change}", words::cell(&one.cell));
            plot.draw(look(is_alarm).mark(plot.x(one.percent.value), y, "", &tip));
        }
    }
    let legend = [(look(false), "interval holds 0"), (look(true), "false alarm")];
    let legend: Vec<(Look, String)> =
        legend.into_iter().map(|(look, name)| (look, name.to_owned())).collect();
    plot.finish(title, &legend)
}

fn look(is_alarm: bool) -> Look {
    match is_alarm {
        true => Look { class: "cost".to_owned(), shape: Shape::Triangle },
        false => Look { class: "gain hollow".to_owned(), shape: Shape::Circle },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Interval, Verdict};
    use crate::report::sample::comparison;
    use crate::report::tests::assert_well_formed;
    use crate::window::Window;

    #[test]
    fn a_false_alarm_stands_out() {
        let mut quiet = comparison(Window::AGAIN, Metric::CpuPerStatement, Verdict::Cost);
        quiet.percent = Interval { low: -0.4, value: 0.1, high: 0.6 };
        let mut alarm = quiet.clone();
        alarm.percent = Interval { low: 0.2, value: 0.5, high: 0.8 };
        let svg = draw("t", &[Metric::CpuPerStatement], &[&quiet, &alarm], 1.0).to_string();
        assert_well_formed(&svg);
        // One in the plot, one in the legend.
        assert_eq!(svg.matches("class=\"mark cost\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"limit\"").count(), 2, "{svg}");
    }

    #[test]
    fn no_comparison_makes_a_chart() {
        assert_well_formed(&draw("t", &[], &[], 1.0).to_string());
    }
}
