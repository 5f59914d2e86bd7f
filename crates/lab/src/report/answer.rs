//! The answer of a run: a line and a bar for each scenario.

use crate::analysis::{Interval, Verdict};
use crate::metric::Metric;
use crate::report::bar::{Bar, Scale};
use crate::report::document::{Block, Datum, Kind, Notes, Table};
use crate::report::group::Group;
use crate::report::line::Line;
use crate::report::{Report, published, span, words};
use crate::window::Window;

/// Where there is no line.
pub(super) const NOTHING: &str = "No comparison has been run.";

/// What is said of one kind of load and one order.
pub(super) struct Answer<'a> {
    group: &'a Group<'a>,
    /// The columns: what the verdict is on first.
    metrics: Vec<Metric>,
    /// What its bars are of, one of these.
    figure: Metric,
    scale: Scale,
    rows: Vec<Row<'a>>,
}

/// One scenario.
struct Row<'a> {
    line: Line<'a>,
    verdict: Verdict,
    /// By metric: the change in %, or where [`words::is_absolute`] the difference.
    sizes: Vec<(Metric, Option<Interval>)>,
    /// The lowest and the highest published figure of the same cells.
    published: Option<[f64; 2]>,
}

/// The answer over all workloads, with what it is of where there are several.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let groups = Group::over_workloads(report);
    let answers = Answer::all(report, &groups, &report.suite.baseline);
    if answers.is_empty() {
        return vec![Block::Paragraph(NOTHING.to_owned())];
    }
    let mut blocks = Vec::new();
    for answer in answers {
        blocks.push(Block::Paragraph(answer.in_a_sentence()));
        blocks.push(Block::Table(answer.table(String::new())));
    }
    blocks.push(Block::Paragraph(how_to_read(report)));
    blocks
}

/// The same by workload, and against the other scenarios that the suite asks for.
pub(super) fn further(report: Report<'_>) -> Vec<Block> {
    let (all, by_workload) = (Group::over_workloads(report), Group::all(report));
    let mut blocks = Vec::new();
    for baseline in report.suite.compared_with() {
        let is_told = |answer: &Answer<'_>| {
            // A table over the only workload is there already.
            let is_new = all.iter().all(|group| group.workload != answer.group.workload);
            is_new || *baseline != report.suite.baseline
        };
        let answers = Answer::all(report, &by_workload, baseline);
        let told = answers.iter().filter(|answer| is_told(answer));
        blocks.extend(told.map(|answer| Block::Table(answer.table(answer.caption()))));
    }
    if !blocks.is_empty() {
        blocks.insert(0, Block::Heading("By workload".to_owned()));
    }
    blocks
}

/// How the tables are read.
fn how_to_read(report: Report<'_>) -> String {
    let on = match report.verdict_metric() {
        Metric::CpuPerStatement => {
            "The verdict is on the CPU time of the server per statement, which tells the cost at any load"
        }
        _ => {
            "The verdict is on the throughput, since the CPU time of the server was not measured: where the server is \
             not saturated, it shows no cost"
        }
    };
    format!(
        "{}. Ours: the mean over cells and its 95 % interval. Bars: ├─●─┤ ours, ░ (grey) from the lowest to the highest \
         published cell. \"Noise\" is the baseline against itself: an effect that is not clearly larger is not shown. {on}. \
         A cost or a gain holds among all lines of its table (Holm, 5 %). \"Not shown\" is no proof of zero: an effect of \
         the size beside it would have been found in 4 of 5 cases. \"Proven below\" is a proof.",
        words::DEFINITION
    )
}

impl<'a> Answer<'a> {
    /// One for each group in which anything was run.
    pub(super) fn all(
        report: Report<'a>,
        groups: &'a [Group<'a>],
        baseline: &'a str,
    ) -> Vec<Answer<'a>> {
        let answers = groups.iter().map(|group| Answer::of(report, group, baseline));
        answers.filter(|answer| !answer.rows.is_empty()).collect()
    }

    fn of(report: Report<'a>, group: &'a Group<'a>, baseline: &'a str) -> Answer<'a> {
        let metric = report.verdict_metric();
        let (figure, other) = match group {
            // Memory is what a source looks at that starts a server for each scenario.
            Group { order: Some(order), .. } if order.restart => (Metric::Rss, Metric::Rss),
            // A rate that is given tells nothing.
            Group { is_open: true, .. } => (metric, Metric::LatencyP99),
            _ => (report.source_metric(), report.source_metric()),
        };
        let mut metrics = vec![metric, other];
        metrics.dedup();
        let lines = Line::all(report, group, baseline).into_iter();
        let rows: Vec<Row<'_>> = lines.map(|line| Row::of(line, &metrics, figure)).collect();
        let ends = |row: &Row<'_>| {
            let (ours, published) = row.in_unit(figure);
            let ours = ours.into_iter().flatten();
            ours.chain(published.into_iter().flatten()).collect::<Vec<f64>>()
        };
        let scale = Scale::around(rows.iter().flat_map(ends));
        Answer { group, metrics, figure, scale, rows }
    }

    /// The lines of scenarios. For one that was also measured alone on a server, that line stands.
    fn scenarios(&self) -> impl Iterator<Item = &Row<'a>> {
        let is_told_alone = |row: &Row<'_>| {
            let mut others = self.rows.iter();
            others.any(|other| {
                let is_alone = other.line.arm == Window::ALONE && row.line.arm != Window::ALONE;
                let is_same = other.line.scenario() == row.line.scenario();
                is_alone && is_same && other.verdict.is_known()
            })
        };
        let is_scenario =
            move |row: &&Row<'_>| row.line.arm != Window::AGAIN && !is_told_alone(row);
        self.rows.iter().filter(is_scenario)
    }

    /// How many scenarios cost, and what the most expensive one costs.
    pub(super) fn in_a_sentence(&self) -> String {
        let Some(Row { line: Line { report, baseline, .. }, .. }) = self.rows.first() else {
            return NOTHING.to_owned();
        };
        let metric = report.verdict_metric();
        let counts = counts(self.scenarios().map(|row| &row.verdict));
        let cells = words::count(self.group.cells.len(), "cell", "cells");
        let head = format!(
            "{} ({cells}), against {baseline}: {}, {counts}.",
            self.group.name,
            words::count(self.scenarios().count(), "scenario", "scenarios")
        );
        let costs = self.scenarios().filter(|row| row.verdict == Verdict::Cost);
        let most_expensive = costs.max_by(|one, other| {
            let of = |row: &Row<'_>| row.size(metric).map_or(0.0, |change| change.value.abs());
            of(one).total_cmp(&of(other))
        });
        let Some(row) = most_expensive else { return head };
        let by = |(metric, size): &(Metric, Option<Interval>)| {
            Some(format!("{} {}", words::short(*metric), words::size_interval(*metric, &(*size)?)))
        };
        let sizes: Vec<String> = row.sizes.iter().filter_map(by).collect();
        let published = row.published.map(|it| format!(", published {}", range(self.figure, it)));
        let published = published.unwrap_or_default();
        format!(
            "{head} The most expensive is {}: {}{published}.",
            row.line.name(),
            sizes.join("; ")
        )
    }

    /// What it is of.
    fn caption(&self) -> String {
        let baseline = self.rows.first().map_or("", |row| row.line.baseline);
        let is_told = !self.group.is_open || self.group.workload.is_none();
        let load = if is_told { "" } else { ", at a fixed rate" };
        format!("{}{load}, against {baseline}", self.group.name)
    }

    /// A row and a bar for each line.
    fn table(&self, caption: String) -> Table {
        let is_published = self.rows.iter().any(|row| row.published.is_some());
        let mut heads = vec!["scenario".to_owned(), "verdict".to_owned()];
        heads.extend(self.metrics.iter().copied().map(head));
        heads.extend(is_published.then(|| "published".to_owned()));
        let mut table = Table { scale: Some(self.scale), ..Table::new(caption, heads) };
        for row in &self.rows {
            let mut data = row.data(&mut table.notes);
            if is_published {
                data.push(row.published(self.figure));
            }
            data.push(Datum::bar(row.bar(self.figure, self.scale)));
            table.rows.push(data);
        }
        table
    }

    /// The same as plain text, a line each; the bars have this many characters.
    pub(super) fn in_text(&self, places: usize) -> Vec<String> {
        let size = |(metric, size): &(Metric, Option<Interval>)| match size {
            Some(size) => words::size_interval(*metric, size),
            None => words::NOT_MEASURED.to_owned(),
        };
        let columns = |row: &Row<'_>| {
            let of_verdict = row.sizes.first().filter(|(_, size)| size.is_some()).map(size);
            let verdict = words::verdict_in_a_word(&row.verdict);
            [
                row.line.name(),
                of_verdict.map_or_else(|| verdict.to_owned(), |size| format!("{size}, {verdict}")),
                row.sizes.get(1).map(size).unwrap_or_default(),
                row.published.map(|it| range(self.figure, it)).unwrap_or_default(),
                row.bar(self.figure, self.scale).in_text(places),
            ]
        };
        let mut heads = self.metrics.iter().copied().map(head);
        let mut rows = vec![[
            "scenario".to_owned(),
            heads.next().unwrap_or_default(),
            heads.next().unwrap_or_default(),
            "published".to_owned(),
            self.scale.axis_in_text(places),
        ]];
        rows.extend(self.rows.iter().map(columns));
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        let line = |row: &[String; 5]| {
            let padded = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
            padded.collect::<Vec<_>>().join("  ")
        };
        rows.iter().map(line).collect()
    }
}

impl<'a> Row<'a> {
    fn of(line: Line<'a>, metrics: &[Metric], figure: Metric) -> Row<'a> {
        let report = line.report;
        let cells: Vec<_> = line.cells_run().collect();
        let size = |metric: Metric| match words::is_absolute(metric) {
            true => line.size(metric, &cells),
            false => line.change(metric),
        };
        let is_of_suite = line.baseline == report.suite.baseline && line.arm != Window::AGAIN;
        let published = cells.iter().filter(|_| is_of_suite).filter_map(|cell| {
            let scenario = line.scenario();
            let figure = published::Figure { report, cell, scenario, metric: figure };
            figure.size().filter(|_| figure.contradicts().is_none())
        });
        Row {
            verdict: line.verdict(),
            sizes: metrics.iter().map(|metric| (*metric, size(*metric))).collect(),
            published: span(published).map(|(low, high)| [low, high]),
            line,
        }
    }

    fn size(&self, metric: Metric) -> Option<Interval> {
        self.sizes.iter().find(|(known, _)| *known == metric)?.1
    }

    /// The scenario, the verdict and what was measured, with what has to be known of them.
    fn data(&self, notes: &mut Notes) -> Vec<Datum> {
        let mut name = Datum::text(self.line.name());
        let warnings = [self.line.group.warning().map(str::to_owned), self.line.cells_that_count()];
        for note in warnings.into_iter().flatten() {
            name = name.note(notes.number(&note));
        }
        let verdict = match self.verdict.is_known() {
            true => Datum::verdict(&self.verdict),
            false => {
                let number = notes.number(&words::verdict(&self.verdict));
                let word = words::verdict_in_a_word(&self.verdict);
                Datum::new(word, Kind::of(&self.verdict)).note(number)
            }
        };
        let mut data = vec![name, verdict];
        let cells: Vec<_> = self.line.group.cells.iter().collect();
        for (metric, size) in &self.sizes {
            let below = self.line.below_saturation(*metric, &cells);
            let datum = match size {
                Some(size) => Datum::number(words::size_interval(*metric, size)),
                None => Datum::new(words::NOT_MEASURED, Kind::NotRun),
            };
            let note = below.map(|note| notes.number(&note));
            data.push(note.into_iter().fold(datum, Datum::note));
        }
        data
    }

    fn published(&self, figure: Metric) -> Datum {
        let text = self.published.map(|it| range(figure, it));
        Datum::published(text.unwrap_or_else(|| words::NOT_PUBLISHED.to_owned()))
    }

    fn bar(&self, figure: Metric, scale: Scale) -> Bar {
        let (ours, published) = self.in_unit(figure);
        Bar { ours, published, class: Kind::of(&self.verdict).class(), scale }
    }

    /// What its bar shows: in %, or in the unit in which the metric is printed.
    fn in_unit(&self, figure: Metric) -> (Option<[f64; 3]>, Option<[f64; 2]>) {
        let factor = if words::is_absolute(figure) { words::factor(figure) } else { 1.0 };
        let ours = self.size(figure).map(|size| size.ends().map(|end| end * factor));
        (ours, self.published.map(|ends| ends.map(|end| end * factor)))
    }
}

/// How many verdicts of each kind there are; costs and gains also where there is none.
fn counts<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let verdicts: Vec<&str> = verdicts.map(words::verdict_in_a_word).collect();
    let kinds = [
        "cost",
        "gain",
        "change",
        "not shown",
        "proven small",
        "overloaded",
        "void",
        "not measured",
        "not run",
    ];
    let count = |kind: &&str| {
        let count = verdicts.iter().filter(|one| *one == kind).count();
        (count > 0 || ["cost", "gain"].contains(kind)).then(|| format!("{count} {kind}"))
    };
    kinds.iter().filter_map(count).collect::<Vec<_>>().join(", ")
}

fn head(metric: Metric) -> String {
    match metric {
        Metric::CpuPerStatement => "change of CPU time".to_owned(),
        metric if words::is_absolute(metric) => words::short(metric).to_owned(),
        metric => format!("change of {}", words::short(metric)),
    }
}

/// From the lowest to the highest; the only one alone.
fn range(metric: Metric, [low, high]: [f64; 2]) -> String {
    match low == high {
        true => words::size(metric, low),
        false => format!("{} to {}", words::size(metric, low), words::size(metric, high)),
    }
}
