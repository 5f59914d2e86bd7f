//! What the source published, beside ours: looked up for every format, and printed here.

use waggle_stats::percent;

use crate::analysis::Interval;
use crate::metric::Metric;
use crate::report::document::{Block, Datum, Notes, Table};
use crate::report::group::Group;
use crate::report::line::Line;
use crate::report::{Report, left_out, machines, span, words};
use crate::suite::{self, Published, PublishedRange};
use crate::window::{Cell, Load, Window};

const MIB: f64 = (1 << 20) as f64;

/// How to read the tables.
const RULES: [&str; 4] = [
    "Published: the change that follows from the figures of the source, from the lowest cell to the highest, and their \
     geometric mean. Cells that contradict the source are left out, and so are cells that we did not run where we ran any \
     of the others. Memory: MiB more than the baseline.",
    "Ours: the mean over the same cells, each with the same weight, and its interval of 95 %: that of the sign-flip test over \
     the blocks. \"(alone)\" is a scenario that shares a server, once more on a server of its own.",
    "Direction: that of the published mean against ours. \"None shown\": our interval holds 0. Where there is no effect, \
     a direction is given in about 5 of 100 cases.",
    "Said: the source names a range of changes without figures.",
];

/// Beside the share of the processors that the server used.
const FULL: &str = "the CPUs were full: the share of the server grows only where that of the load shrinks; the \
                    source prints a use of CPUs and does not say whose";

/// A figure that the source may have of a scenario in a cell.
#[derive(Clone, Copy)]
pub(super) struct Figure<'a> {
    pub(super) report: Report<'a>,
    pub(super) cell: &'a Cell,
    pub(super) scenario: &'a str,
    pub(super) metric: Metric,
}

impl<'a> Figure<'a> {
    /// Beside every order in which servers stay, where the metric does not belong to one server start.
    fn of(&self, scenario: &str) -> Option<&'a Published> {
        let Figure { report, cell, metric, .. } = *self;
        let has_restarts = report.suite.order(cell).is_some_and(|order| order.restart);
        match metric.is_per_server_start() || has_restarts {
            true => report.published(cell, scenario, metric),
            false if cell.load == Load::Closed => report.suite.published(cell, scenario),
            false => None,
        }
    }

    /// The size of the effect from the figures of the source.
    pub(super) fn size(&self) -> Option<f64> {
        let value = |scenario| value(self.of(scenario)?, self.metric);
        let own = value(self.scenario)?;
        if words::is_absolute(self.metric) {
            return Some(own / words::factor(self.metric));
        }
        let baseline = value(&self.report.suite.baseline).filter(|baseline| *baseline > 0.0)?;
        Some(100.0 * (own / baseline - 1.0))
    }

    /// Why the figure of the scenario or that of the baseline contradicts the source.
    pub(super) fn contradicts(&self) -> Option<&'a str> {
        let why = |scenario| contradiction(self.of(scenario)?, self.metric);
        why(self.scenario).or_else(|| why(&self.report.suite.baseline))
    }
}

impl<'a> Report<'a> {
    /// What the source printed for a cell, to stand beside ours by a metric. It has none at a fixed rate,
    /// and only one order: the first of the suite. What belongs to one server start stands beside the order
    /// that starts a server for each scenario, where there is one; in others it cannot be told apart.
    pub(super) fn published(
        &self,
        cell: &Cell,
        scenario: &str,
        metric: Metric,
    ) -> Option<&'a Published> {
        let orders = &self.suite.orders;
        let per_server_start =
            orders.iter().find(|order| metric.is_per_server_start() && order.restart);
        let own = per_server_start.or(orders.first()).map(|order| &order.name);
        let is_of_source = cell.order.is_none() || cell.order.as_ref() == own;
        match cell.load {
            Load::Closed if is_of_source => self.suite.published(cell, scenario),
            _ => None,
        }
    }

    /// The change in per cent of the metric of the source, from the published figures.
    pub(super) fn published_percent(&self, cell: &Cell, scenario: &str) -> Option<f64> {
        let published = |scenario| self.published(cell, scenario, self.source_metric());
        let baseline = published(&self.suite.baseline)?;
        let percent = published(scenario)?.recomputed_percent(baseline, self.suite.metric.figure());
        percent.filter(|it| it.is_finite())
    }

    /// Why that change cannot be trusted: its own figure, or that of the baseline.
    pub(super) fn contradiction_of_change(&self, cell: &Cell, scenario: &str) -> Option<&'a str> {
        let metric = self.source_metric();
        let of = |scenario| contradiction(self.published(cell, scenario, metric)?, metric);
        of(scenario).or_else(|| of(&self.suite.baseline))
    }
}

/// Why a figure contradicts something else in the source.
pub(super) fn contradiction(published: &Published, metric: Metric) -> Option<&str> {
    published.contradictions.get(&figure(metric)?).map(String::as_str)
}

/// Ours of what a source prints.
pub(super) fn metric(figure: suite::Figure) -> Metric {
    match figure {
        suite::Figure::Qps => Metric::Qps,
        suite::Figure::Tps => Metric::Tps,
        suite::Figure::Latency => Metric::LatencyMean,
        suite::Figure::Cpu => Metric::ServerShare,
        suite::Figure::Memory => Metric::Rss,
    }
}

/// What a source prints of ours.
fn figure(metric: Metric) -> Option<suite::Figure> {
    suite::Figure::ALL.into_iter().find(|figure| self::metric(*figure) == metric)
}

/// A figure of the source in the unit in which the metric is printed.
pub(super) fn value(published: &Published, metric: Metric) -> Option<f64> {
    let figure = figure(metric)?;
    let unit = if figure == suite::Figure::Memory { MIB } else { 1.0 };
    Some(published.figures.get(&figure)? / unit)
}

/// How to read the tables.
pub(super) fn rules() -> Block {
    Block::List(RULES.map(str::to_owned).to_vec())
}

/// A section for a run, with [`rules`] or without.
pub(super) fn blocks(report: Report<'_>, with_rules: bool) -> Vec<Block> {
    let Report { suite, info, .. } = report;
    let (run, host, source) = (&info.run, &info.host, &suite.source);
    let model = host.cpu_model.as_deref().unwrap_or("a model that is not known");
    let ours = format!(
        "Ours: {}, on {} CPUs ({model}); scale {}, {} blocks, windows of {}, seed {}, begun {}, waggle {}.",
        info.server.version,
        host.processors,
        run.scale,
        run.blocks,
        words::duration(run.window_s),
        run.seed,
        run.begin.strftime("%Y-%m-%d"),
        run.waggle_version
    );
    let ours: Vec<String> = std::iter::once(ours).chain(machines::caveats(report)).collect();
    let title = format!(
        "{} on {}, scale {}, seed {}",
        suite.name, info.server.version, run.scale, run.seed
    );
    let groups = Group::all(report);
    let effects = Beside::all(report, &groups);
    let mut blocks = vec![Block::Heading(title), Block::Paragraph(in_a_sentence(&effects))];
    for group in &groups {
        let is_of = |it: &&Beside<'_>| std::ptr::eq(it.line.group, group);
        let of_group: Vec<&Beside<'_>> = effects.iter().filter(is_of).collect();
        blocks.extend((!of_group.is_empty()).then(|| Block::Table(table(group, &of_group))));
    }
    let left_out = left_out::in_words(report);
    if !effects.is_empty() && !left_out.is_empty() {
        blocks.push(Block::List(left_out));
    }
    blocks.push(Block::Paragraph(format!(
        "Source: {}; {}; {}.",
        source.what, source.server, source.load
    )));
    blocks.push(Block::Paragraph(ours.join(" ")));
    blocks.extend((with_rules && !effects.is_empty()).then(rules));
    blocks
}

/// How many effects of each direction there are.
pub(super) fn summary(report: Report<'_>) -> Option<String> {
    let groups = Group::all(report);
    let effects = Beside::all(report, &groups);
    (!effects.is_empty()).then(|| in_a_sentence(&effects))
}

fn in_a_sentence(effects: &[Beside<'_>]) -> String {
    // That a scenario is there again on a server of its own makes no further effect.
    let effects: Vec<_> = effects.iter().filter(|it| it.line.arm != Window::ALONE).collect();
    if effects.is_empty() {
        return "The source prints no figures of what was run.".to_owned();
    }
    let directions = [
        (SAME, "in the same direction as ours"),
        (NOT_SHOWN, "where ours shows none"),
        (OTHER, "in the other direction"),
        (ZERO, "published as zero where ours shows one"),
        (CONTRADICTS, "where the source contradicts itself"),
    ];
    let count = |direction| effects.iter().filter(|it| it.direction() == direction).count();
    let counted = directions.map(|(direction, words)| (count(direction), words));
    let without = effects.len() - counted.iter().map(|(count, _)| count).sum::<usize>();
    let all = counted.into_iter().chain([(without, "without a number of ours")]);
    let parts: Vec<String> = all
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let all = words::count(effects.len(), "published effect", "published effects");
    format!("{all}: {}.", parts.join(", "))
}

fn table(group: &Group<'_>, effects: &[&Beside<'_>]) -> Table {
    let has_cells = group.cells.len() > 1;
    let mut heads = vec!["scenario", "figure"];
    heads.extend(has_cells.then_some("cells"));
    heads.extend(["published", "ours (95 % interval)", "direction"]);
    let heads = heads.into_iter().map(str::to_owned).collect();
    let mut table = Table::new(group.name.clone(), heads);
    for effect in effects {
        let data = effect.data(has_cells, &mut table.notes);
        table.rows.push(data);
    }
    table
}

const SAME: &str = "same";
const OTHER: &str = "other";
const NOT_SHOWN: &str = "none shown";
const ZERO: &str = "published as zero";
const CONTRADICTS: &str = "source contradicts itself";

/// What was published of an effect beside ours.
struct Beside<'a> {
    line: Line<'a>,
    metric: Metric,
    published: Sizes<'a>,
}

/// What the source has of it.
enum Sizes<'a> {
    /// From its figures, in the cells that can be used, or in all where none can.
    Printed {
        /// Cells that it printed.
        cells: usize,
        /// Those of them that contradict the source.
        contradicting: usize,
        sizes: Vec<f64>,
    },
    Said(&'a PublishedRange),
}

impl<'a> Beside<'a> {
    /// Everything that the source has of what a suite runs.
    fn all(report: Report<'a>, groups: &'a [Group<'a>]) -> Vec<Beside<'a>> {
        let baseline = &report.suite.baseline;
        let mut all = Vec::new();
        for group in groups.iter().filter(|group| !group.is_open) {
            let was_run =
                |arm: &str| group.cells.iter().any(|it| report.was_run(baseline, it, arm));
            for scenario in group.others(report) {
                let arms = report.suite.arms_of(scenario);
                let arms: Vec<&str> =
                    arms.filter(|arm| *arm != Window::ALONE || was_run(arm)).collect();
                for metric in suite::Figure::ALL.map(metric) {
                    let of_arm = |arm: &&'a str| {
                        Beside::printed(Line { report, group, arm, baseline }, metric)
                    };
                    all.extend(arms.iter().filter_map(of_arm));
                }
                let said = report
                    .suite
                    .published_ranges
                    .iter()
                    .filter(|range| range.scenario == scenario.name && is_beside(group, range));
                all.extend(said.map(|range| Beside {
                    line: Line { report, group, arm: &scenario.name, baseline },
                    metric: metric(range.figure),
                    published: Sizes::Said(range),
                }));
            }
        }
        all
    }

    /// `None` where the source has no such figure.
    fn printed(line: Line<'a>, metric: Metric) -> Option<Beside<'a>> {
        let mut it = Beside { line, metric, published: Sizes::NONE };
        let all: Vec<(&Cell, f64)> = line
            .group
            .cells
            .iter()
            .filter_map(|cell| Some((cell, it.figure(cell).size()?)))
            .collect();
        let (contradicting, sound): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(|(cell, _)| it.figure(cell).contradicts().is_some());
        let shared = it.shared();
        let is_shared = |(cell, _): &(&Cell, f64)| shared.contains(cell);
        let shared: Vec<_> = sound.iter().copied().filter(is_shared).collect();
        let first = [&shared, &sound, &all].into_iter().find(|cells| !cells.is_empty())?;
        it.published = Sizes::Printed {
            cells: all.len(),
            contradicting: contradicting.len(),
            sizes: first.iter().map(|(_, size)| *size).collect(),
        };
        Some(it)
    }

    fn figure(&self, cell: &'a Cell) -> Figure<'a> {
        let Line { report, .. } = self.line;
        Figure { report, cell, scenario: self.line.scenario(), metric: self.metric }
    }

    /// The cells that we have and that the source printed without contradicting itself.
    fn shared(&self) -> Vec<&'a Cell> {
        let is_shared = |cell: &&'a Cell| {
            let size = self.line.answer(cell, self.metric).map(|one| {
                if words::is_absolute(self.metric) { one.difference } else { one.percent }
            });
            let figure = self.figure(cell);
            let is_ours = size.is_ok_and(|size| size.is_known());
            is_ours && figure.size().is_some() && figure.contradicts().is_none()
        };
        self.line.group.cells.iter().filter(is_shared).collect()
    }

    /// The cells of which ours is: the shared ones, or all where there is none.
    fn cells(&self) -> Vec<&'a Cell> {
        let shared = self.shared();
        if shared.is_empty() { self.line.group.cells.iter().collect() } else { shared }
    }

    fn ours(&self) -> Option<Interval> {
        self.line.size(self.metric, &self.cells())
    }

    /// Whether ours is on the side of what was published, or why that cannot be said.
    fn direction(&self) -> String {
        let published = match &self.published {
            Sizes::Printed { cells, contradicting, .. } if cells == contradicting => {
                return CONTRADICTS.to_owned();
            }
            Sizes::Printed { sizes, .. } => mean(self.metric, sizes),
            // Zero where the range holds it.
            Sizes::Said(range) => 0.0_f64.clamp(range.low_percent, range.high_percent),
        };
        match self.ours() {
            None => words::verdict(&self.line.absent(self.metric)),
            Some(ours) if ours.holds(0.0) => NOT_SHOWN.to_owned(),
            Some(_) if published == 0.0 => ZERO.to_owned(),
            Some(ours) if (published > 0.0) == (ours.value > 0.0) => SAME.to_owned(),
            Some(_) => OTHER.to_owned(),
        }
    }

    fn data(&self, has_cells: bool, notes: &mut Notes) -> Vec<Datum> {
        let name = Datum::text(self.line.name());
        let warning = self.line.group.warning().map(|warning| notes.number(warning));
        let short = words::short(self.metric);
        let (figure, cells, published) = match &self.published {
            Sizes::Printed { cells, contradicting, sizes } => {
                let mut published = Datum::published(range(self.metric, sizes));
                if *contradicting > 0 && contradicting < cells {
                    let note =
                        format!("{contradicting} of {cells} cells contradict the source: left out");
                    published = published.note(notes.number(&note));
                }
                (short.to_owned(), format!("{} of {cells}", self.shared().len()), published)
            }
            Sizes::Said(said) => {
                let [low, high] = [said.low_percent, said.high_percent].map(words::percent);
                let published = Datum::published(format!("{low} to {high}"));
                (
                    format!("{short}, said"),
                    "none".to_owned(),
                    published.note(notes.number(&said.says)),
                )
            }
        };
        let ours = match self.ours() {
            Some(size) => Datum::number(words::size_interval(self.metric, &size)),
            None => Datum::text(words::verdict_in_a_word(&self.line.absent(self.metric))),
        };
        let below = self.line.below_saturation(self.metric, &self.cells());
        let full = self.is_full().then(|| FULL.to_owned());
        let note = below.or(full).map(|note| notes.number(&note));
        let mut data = vec![warning.into_iter().fold(name, Datum::note), Datum::text(figure)];
        data.extend(has_cells.then(|| Datum::text(cells)));
        data.extend([
            published,
            note.into_iter().fold(ours, Datum::note),
            Datum::text(self.direction()),
        ]);
        data
    }

    /// Whether it is the share of the server, and the load left no processor idle.
    fn is_full(&self) -> bool {
        let counted = self.line.counted(self.metric);
        self.metric == Metric::ServerShare
            && counted.iter().any(|one| one.is_saturated == Some(true))
    }
}

impl Sizes<'_> {
    const NONE: Sizes<'static> = Sizes::Printed { cells: 0, contradicting: 0, sizes: Vec::new() };
}

/// A restart for each scenario is for what belongs to one server start, not for changes of rates and times.
fn is_beside(group: &Group<'_>, range: &PublishedRange) -> bool {
    let is_per_server_start = group.order.is_some_and(|order| order.restart);
    !is_per_server_start && group.workload == Some(&range.workload)
}

/// Of changes the geometric mean, as ours is.
fn mean(metric: Metric, sizes: &[f64]) -> f64 {
    let count = sizes.len() as f64;
    match words::is_absolute(metric) {
        true => sizes.iter().sum::<f64>() / count,
        false => {
            let logs = sizes.iter().map(|percent| (percent / 100.0).ln_1p());
            percent(logs.sum::<f64>() / count)
        }
    }
}

/// The lowest and the highest of sizes, and their mean; the only one alone.
fn range(metric: Metric, sizes: &[f64]) -> String {
    let size = |size: f64| words::size(metric, size);
    match span(sizes.iter().copied()) {
        None => words::NOT_PUBLISHED.to_owned(),
        Some((low, _)) if sizes.len() == 1 => size(low),
        Some((low, high)) => {
            format!("{} to {}, mean {}", size(low), size(high), size(mean(metric, sizes)))
        }
    }
}
