//! A line for each comparison: its interval, its verdict, and what the source printed.

use crate::analysis::Verdict;
use crate::metric::Metric;
use crate::report::chart::Figure;
use crate::report::chart::mark::{Look, Shape};
use crate::report::chart::picture::Picture;
use crate::report::chart::plot::{Axis, Plot, label};
use crate::report::chart::scale::Scale;
use crate::report::document::Kind;
use crate::report::group::Group;
use crate::report::{Absent, Report, words};
use crate::suite::Scenario;
use crate::window::{Cell, Load};

/// Height of a line, pixels.
const LINE: f64 = 17.0;
const CAPTION: &str = "Marks and bars: ours with the 95 % interval, by verdict. Hollow circles: the \
                       published figures. A bar that ends at the edge goes beyond it.";

/// One comparison.
#[derive(Clone, Debug)]
struct Line {
    name: String,
    /// The low end, the value, the high end.
    ours: Option<[f64; 3]>,
    verdict: Verdict,
    /// What the source printed, and whether it contradicts itself.
    published: Option<(f64, bool)>,
}

/// The change of a metric in every cell that was run of groups that have one name; `None` where
/// none was. What the source printed belongs to its own metric only.
pub(super) fn of(report: Report<'_>, groups: &[&Group<'_>], metric: Metric) -> Option<Figure> {
    let mut lines = Vec::new();
    let were_run = report.cells_run();
    for group in groups {
        for cell in group.cells.iter().filter(|cell| were_run.contains(cell)) {
            let others = group.others(report);
            lines.extend(others.map(|scenario| line(report, cell, scenario, metric)));
        }
    }
    let name = groups.first().map_or("", |group| group.name.as_str());
    let title = format!("{name}: change of {} in every cell", words::short(metric));
    let axis = format!("change of {} (%)", words::name(metric));
    let picture = draw(&title, axis, &lines);
    let figure = Figure::new(title, CAPTION, picture);
    groups.first().filter(|_| !lines.is_empty()).map(|group| figure.in_order(group))
}

fn line(report: Report<'_>, cell: &Cell, scenario: &Scenario, metric: Metric) -> Line {
    let answer = report.answer(cell, &scenario.name, metric);
    let (ours, verdict) = match answer {
        Ok(one) => (one.percent.is_known().then(|| one.percent.ends()), one.verdict.clone()),
        Err(Absent(verdict)) => (None, verdict),
    };
    let name = match cell.load {
        Load::Closed => format!("{} · {}", scenario.name, cell.threads),
        Load::Open { share } => format!("{} · {}", scenario.name, words::share(share * 100.0)),
    };
    let is_of_source = metric == report.source_metric();
    let percent = report.published_percent(cell, &scenario.name).filter(|_| is_of_source);
    let published = percent
        .map(|percent| (percent, report.contradiction_of_change(cell, &scenario.name).is_some()));
    Line { name, ours, verdict, published }
}

fn draw(title: &str, axis: String, lines: &[Line]) -> Picture {
    let values = lines.iter().filter_map(|line| line.ours).map(|ours| ours[1]);
    let published = lines.iter().filter_map(|line| line.published).map(|(percent, _)| percent);
    let x = Axis::linear(axis, Scale::around(values.chain(published).chain([0.0, -1.0, 1.0])));
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    let height = lines.len().max(1) as f64 * LINE;
    let mut plot = Plot::new(x, Axis::rows(&names), height);
    plot.upright("zero", 0.0);
    for (at, line) in lines.iter().enumerate() {
        draw_line(&mut plot, at as f64 + 0.5, line);
    }
    plot.finish(title, &legend(lines))
}

fn draw_line(plot: &mut Plot, row: f64, line: &Line) {
    let y = plot.y(row);
    let (look, words) = (look(&line.verdict), words::verdict(&line.verdict));
    if let Some((percent, contradicts)) = line.published {
        let more = if contradicts { "; the source contradicts itself" } else { "" };
        let tip = format!("{}: published {}{more}", line.name, words::percent(percent));
        plot.draw(published().mark(plot.x(percent), y, "hollow", &tip));
    }
    match line.ours {
        Some([low, value, high]) => {
            let class = format!("bar {}", look.class);
            plot.line(&class, (plot.x(low), y), (plot.x(high), y));
            let change = words::percent_interval(&crate::analysis::Interval { low, value, high });
            let tip = format!("{}: {change}, {words}", line.name);
            plot.draw(look.mark(plot.x(value), y, "", &tip));
        }
        None => {
            let short = match line.verdict {
                Verdict::NotRun(_) => "not run",
                Verdict::Overloaded(_) => "overloaded",
                Verdict::Void(_) => "void",
                _ => "no ratio",
            };
            let x = plot.right_of(0.0, short.len());
            let text = label(short, (x, y + 4.0), "start");
            plot.draw(text.tip(format!("{}: {words}", line.name)));
        }
    }
}

/// Colour and shape of a verdict.
fn look(verdict: &Verdict) -> Look {
    let shape = match verdict {
        Verdict::Cost => Shape::Triangle,
        Verdict::Gain => Shape::Wedge,
        Verdict::Below { .. } | Verdict::Change => Shape::Square,
        Verdict::Free { .. } => Shape::Diamond,
        Verdict::Overloaded(_) | Verdict::Void(_) | Verdict::NotRun(_) => Shape::Cross,
    };
    Look { class: Kind::of(verdict).class().to_owned(), shape }
}

fn published() -> Look {
    Look { class: "c0".to_owned(), shape: Shape::Circle }
}

fn legend(lines: &[Line]) -> Vec<(Look, String)> {
    let verdicts = [
        (Verdict::Cost, "cost"),
        (Verdict::Gain, "gain"),
        (Verdict::Below { detectable_percent: 0.0 }, "not shown"),
        (Verdict::Free { below_percent: 0.0 }, "proven small"),
    ];
    let mut legend: Vec<(Look, String)> =
        verdicts.iter().map(|(verdict, name)| (look(verdict), (*name).to_owned())).collect();
    if lines.iter().any(|line| line.published.is_some()) {
        let Look { class, shape } = published();
        legend.push((Look { class: format!("{class} hollow"), shape }, "published".to_owned()));
    }
    legend
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::assert_well_formed;

    #[test]
    fn every_verdict_is_drawn_in_its_own_way() {
        let line = |ours, verdict| Line {
            name: "all on · 32".to_owned(),
            ours,
            verdict,
            published: Some((-16.97, false)),
        };
        let measured = Some([-13.0, -12.0, -11.0]);
        let lines = [
            line(measured, Verdict::Cost),
            line(measured, Verdict::Gain),
            line(measured, Verdict::Below { detectable_percent: 1.0 }),
            line(measured, Verdict::Free { below_percent: 0.4 }),
            line(None, Verdict::Void("steal".to_owned())),
            line(None, Verdict::NotRun("budget".to_owned())),
        ];
        let svg = draw("t", "change of QPS (%)".to_owned(), &lines).to_string();
        assert_well_formed(&svg);
        for class in ["cost", "gain", "below", "free"] {
            assert_eq!(svg.matches(&format!("class=\"bar {class}\"")).count(), 1, "{class}");
        }
        assert!(svg.contains("void: steal") && svg.contains("not run: budget"), "{svg}");
        assert!(svg.contains("published −17.0 %"), "{svg}");
    }

    #[test]
    fn no_line_makes_a_chart() {
        assert_well_formed(&draw("t", "change of QPS (%)".to_owned(), &[]).to_string());
    }
}
