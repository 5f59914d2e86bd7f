//! The noise floor: what arms that are set alike show when they are compared.

use crate::analysis::{Comparison, Floor};
use crate::metric::Metric;
use crate::report::Report;
use crate::report::chart::Figure;
use crate::report::chart::mark::{Look, Shape};
use crate::report::chart::picture::Picture;
use crate::report::chart::plot::{Axis, Plot, label, line};
use crate::report::chart::scale::Scale;
use crate::report::words;
use crate::window::Window;

/// Height of the strip of a metric, pixels.
const STRIP: f64 = 44.0;
/// In how many lines the marks of a strip lie.
const LINES: usize = 5;
const AXIS: &str = "change between equal arms (%), each metric as far as it reaches";
const CAPTION: &str = "A mark for each cell: the change between two arms that are set alike. All of it \
                       is noise. Filled: the 95 % interval leaves out 0, a false alarm. Dashed: the \
                       effect that the suite declares detectable. Dotted: half of the 95 % interval, \
                       median.";

/// The strip of a metric.
struct Strip {
    metric: Metric,
    /// Half of the 95 % interval, median, %; not a number where no ratio could be formed.
    half_width_percent: f64,
    /// The effect that the suite declares detectable, %.
    declared_percent: Option<f64>,
}

impl Strip {
    /// What lies at the same distance on both sides of 0: the class of its lines, what the pointer shows,
    /// and where it is, %.
    fn limits(&self) -> Vec<(&'static str, String, f64)> {
        let half_width = self.half_width_percent;
        let half = format!("half of the 95 % interval, median: {}", words::share(half_width));
        let half = Some(("limit dotted", half, half_width)).filter(|_| half_width.is_finite());
        let declared = self.declared_percent.map(|declared| {
            ("limit", format!("declared detectable: {}", words::share(declared)), declared)
        });
        half.into_iter().chain(declared).collect()
    }

    /// How far marks and limits reach to either side of 0, %.
    fn reach(&self, changes: impl Iterator<Item = f64>) -> f64 {
        let limits = self.limits().into_iter().map(|(.., end)| end);
        let reach = changes.chain(limits).map(f64::abs).fold(0.0, f64::max);
        if reach > 0.0 { reach } else { 1.0 }
    }
}

/// A strip for each metric.
pub(super) fn of(report: Report<'_>) -> Figure {
    let again: Vec<&Comparison> =
        report.analysis.of_noise(report.suite).filter(|one| is_shown(one)).collect();
    let strip = |floor: &Floor| Strip {
        metric: floor.metric,
        half_width_percent: floor.half_width_percent,
        declared_percent: report.suite.declared_percent(floor.metric),
    };
    let strips: Vec<Strip> = report.analysis.floor.iter().map(strip).collect();
    let title = "Noise floor: arms that are set alike compared with each other (A/A)".to_owned();
    let picture = draw(&title, &strips, &again);
    Figure::new(title, CAPTION, picture)
}

fn is_shown(comparison: &Comparison) -> bool {
    comparison.arm == Window::AGAIN
        && comparison.verdict.is_known()
        && comparison.percent.is_known()
}

fn draw(title: &str, strips: &[Strip], again: &[&Comparison]) -> Picture {
    let scale = Scale::around([-1.0, 1.0]);
    let x = Axis { title: AXIS.to_owned(), scale, ticks: vec![(0.0, "0".to_owned())] };
    let names: Vec<String> =
        strips.iter().map(|strip| words::short(strip.metric).to_owned()).collect();
    let height = strips.len().max(1) as f64 * STRIP;
    let mut plot = Plot::new(x, Axis::rows(&names), height);
    plot.upright("zero", 0.0);
    for (row, strip) in strips.iter().enumerate() {
        let (top, bottom) = (plot.y(row as f64), plot.y(row as f64 + 1.0));
        let of_metric = || again.iter().filter(|one| one.metric == strip.metric);
        let reach = strip.reach(of_metric().map(|one| one.percent.value));
        let reach_in_words = format!("± {}", words::share(reach));
        plot.draw(label(&reach_in_words, (plot.x(1.0), top + 12.0), "end"));
        for (class, tip, end) in strip.limits() {
            let end = end / reach;
            for x in [plot.x(-end), plot.x(end)] {
                plot.draw(line(class, (x, top), (x, bottom)).tip(&tip));
            }
        }
        for (at, one) in of_metric().enumerate() {
            // Beside each other by their order, so that the same numbers give the same picture.
            let place = (at % LINES) as f64 / LINES as f64;
            let y = plot.y(row as f64 + 0.18 + 0.8 * place);
            let is_alarm = !one.percent.holds(0.0);
            let change = words::percent_interval(&one.percent);
            let tip = format!("{}: {change}", words::cell(&one.cell));
            plot.draw(look(is_alarm).mark(plot.x(one.percent.value / reach), y, "", &tip));
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

    fn strip(metric: Metric, half_width_percent: f64, declared_percent: Option<f64>) -> Strip {
        Strip { metric, half_width_percent, declared_percent }
    }

    #[test]
    fn a_false_alarm_stands_out() {
        let mut quiet = comparison(Window::AGAIN, Metric::CpuPerStatement, Verdict::Cost);
        quiet.percent = Interval { low: -0.4, value: 0.1, high: 0.6 };
        let mut alarm = quiet.clone();
        alarm.percent = Interval { low: 0.2, value: 0.5, high: 0.8 };
        let strips = [strip(Metric::CpuPerStatement, 0.4, Some(1.0))];
        let svg = draw("t", &strips, &[&quiet, &alarm]).to_string();
        assert_well_formed(&svg);
        // One in the plot, one in the legend.
        assert_eq!(svg.matches("class=\"mark cost\"").count(), 2, "{svg}");
    }

    #[test]
    fn each_metric_has_its_own_limits_and_none_where_nothing_is_known() {
        let strips = [
            strip(Metric::CpuPerStatement, 0.4, Some(1.0)),
            strip(Metric::Qps, 0.7, None),
            strip(Metric::PerformanceSchemaMemory, f64::NAN, Some(3.0)),
        ];
        let svg = draw("t", &strips, &[]).to_string();
        assert_well_formed(&svg);
        // On both sides of 0.
        for tip in ["declared detectable: 1.0 %", "declared detectable: 3.0 %"] {
            assert_eq!(svg.matches(tip).count(), 2, "{tip}: {svg}");
        }
        for tip in ["median: 0.40 %", "median: 0.70 %"] {
            assert_eq!(svg.matches(tip).count(), 2, "{tip}: {svg}");
        }
        assert_eq!(svg.matches("class=\"limit\"").count(), 4, "{svg}");
        assert_eq!(svg.matches("class=\"limit dotted\"").count(), 4, "{svg}");
    }

    #[test]
    fn no_comparison_makes_a_chart() {
        assert_well_formed(&draw("t", &[], &[]).to_string());
    }
}
