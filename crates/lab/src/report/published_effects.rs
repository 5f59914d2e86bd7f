//! Direction and size of every effect that the source published, beside ours.

use waggle_stats::percent;

use crate::analysis::{Interval, Verdict};
use crate::metric::Metric;
use crate::report::columns;
use crate::report::document::{Block, Datum, Notes, Table};
use crate::report::effect::Effect;
use crate::report::explanation::{self, Arms, Difference, of_the_same};
use crate::report::group::Group;
use crate::report::words;
use crate::report::{Absent, Report, cell_by_cell, left_out, machines, published_ranges, span};
use crate::suite::Scenario;
use crate::window::{Cell, Window};

/// What tables of sources have columns for.
pub(super) const FIGURES: [Metric; 5] =
    [Metric::Qps, Metric::Tps, Metric::LatencyMean, Metric::ServerShare, Metric::Rss];

/// How to read the table; the rule of explanations comes after it.
const RULES: [&str; 5] = [
    "Published: changes in % that follow from the figures of the source: the lowest cell, the highest, and the geometric \
     mean. Left out are cells that contradict the source and, where we ran any of the others, those that we did not run. \
     Memory: MiB more than the baseline.",
    "Ours: of the same cells as the published figures, over several numbers of threads the mean, each \
     with the same weight, formed in each block; its interval is that of the sign-flip test over the \
     blocks, 95 %, as that of a single cell is. Beside it the lowest and the highest cell.",
    "Processor time: the change of that of the server per statement in the same cells. It tells the cost also where the \
     throughput does not, below saturation.",
    "A scenario that shares a server with others is there again, alone on a server of its own: what others leave behind on \
     the one that is shared is no part of that.",
    "Direction: that of the published mean against ours, where our interval leaves out 0. Each is taken by itself: where \
     there is no effect, a direction is given in about 5 of 100 cases.",
];

/// Beside the share of the processors that the server used.
const FULL: &str = "the processors were full: the share of the server grows only where that of the load shrinks; the \
                    source prints a use of the processors and does not say whose";

/// How to read the tables.
pub(super) fn rules() -> Block {
    let rules = RULES.into_iter().chain([explanation::RULE]);
    Block::List(rules.map(str::to_owned).collect())
}

/// A section for a run, with [`rules`] or without.
pub(super) fn blocks(report: Report<'_>, with_rules: bool) -> Vec<Block> {
    let Report { suite, facts, .. } = report;
    let (run, host, source) = (&facts.run, &facts.host, &suite.source);
    let model = host.cpu_model.as_deref().unwrap_or("a model that is not known");
    let ours = format!(
        "Ours: {}, on {} processors ({model}); scale {}, {} blocks, windows of {}, seed {}, begun {}, waggle {}.",
        facts.server.version,
        host.processors,
        run.scale,
        run.blocks,
        words::duration(run.window_s),
        run.seed,
        run.begin.strftime("%Y-%m-%d"),
        run.waggle_version
    );
    let ours: Vec<String> = std::iter::once(ours).chain(machines::caveats(report)).collect();
    let mut blocks = vec![
        Block::Heading(format!(
            "{} on {}, scale {}, seed {}",
            suite.name, facts.server.version, run.scale, run.seed
        )),
        Block::Paragraph(format!("Source: {}; {}; {}.", source.what, source.server, source.load)),
        Block::Paragraph(ours.join(" ")),
    ];
    let (table, ranges) = (table(report), published_ranges::blocks(report));
    if table.rows.is_empty() && ranges.is_empty() {
        let text = "The source prints no figures of what was run.";
        blocks.push(Block::Paragraph(text.to_owned()));
        return blocks;
    }
    blocks.extend(with_rules.then(rules));
    blocks.extend((!table.rows.is_empty()).then_some(Block::Table(table)));
    blocks.extend(cell_by_cell::tables(report));
    blocks.extend(ranges);
    let left_out = left_out::in_words(report);
    if !left_out.is_empty() {
        blocks.push(Block::List(left_out));
    }
    blocks
}

fn table(report: Report<'_>) -> Table {
    let heads = [
        "scenario",
        "workload",
        "figure",
        "cells compared, of those published (number)",
        "published, d% or MiB",
        "ours, d% or MiB (95 % interval)",
        "ours, lowest to highest cell",
        "processor time, ours, d% (95 % interval)",
        "direction",
        "explanation",
    ];
    let caption = format!("Against {}: what was published, and ours", report.suite.baseline);
    let mut table = Table::new(caption, heads.map(str::to_owned).to_vec());
    let baseline = &report.suite.baseline;
    let others = report.suite.scenarios.iter().filter(|one| one.name != *baseline);
    let arms: Vec<Arms<'_>> = others.map(|scenario| Arms::of(report, scenario)).collect();
    let groups = Group::all(report);
    for group in groups.iter().filter(|group| !group.is_open) {
        for arms in arms.iter().filter(|arms| group.scenarios.contains(&arms.scenario())) {
            for metric in FIGURES {
                for line in Line::both(report, group, arms.scenario(), metric) {
                    let Some(printed) = line.printed() else { continue };
                    let others = line.under_other_workloads(&groups);
                    let data = line.data(&printed, arms, &others, &mut table.notes);
                    table.row(data);
                }
            }
        }
    }
    table
}

/// A figure of a scenario under a workload.
pub(super) struct Line<'a> {
    pub(super) report: Report<'a>,
    pub(super) group: &'a Group<'a>,
    pub(super) scenario: &'a Scenario,
    /// That, or [`Window::ALONE`] with what it sets.
    pub(super) arm: &'a str,
    pub(super) metric: Metric,
}

/// What the source printed of it, in the cells that can be used, or in all where none can.
struct Printed {
    /// Cells that it printed.
    cells: usize,
    /// Those of them that contradict the source.
    contradicting: usize,
    /// How many of the rest we have too.
    shared: usize,
    sizes: Vec<f64>,
}

impl<'a> Line<'a> {
    /// That of a scenario, and that of the arm that is alone on a server with what it sets, where there is one.
    fn both(
        report: Report<'a>,
        group: &'a Group<'a>,
        scenario: &'a Scenario,
        metric: Metric,
    ) -> Vec<Line<'a>> {
        let was_run = |cell: &Cell| report.was_run(&report.suite.baseline, cell, Window::ALONE);
        let is_alone = |arm: &&str| *arm == Window::ALONE;
        let arms = report.suite.arms_of(scenario);
        let arms = arms.filter(|arm| !is_alone(arm) || group.cells.iter().any(was_run));
        arms.map(|arm| Line { report, group, scenario, arm, metric }).collect()
    }

    /// The same figure in the same order under each other workload.
    fn under_other_workloads(&self, groups: &'a [Group<'a>]) -> Vec<Line<'a>> {
        let others = groups.iter().map(|group| Line { group, ..*self });
        others.filter(|other| other.is_under_other_workload(self)).collect()
    }
}

impl Line<'_> {
    /// Whether it is in the same order under another workload than another line.
    pub(super) fn is_under_other_workload(&self, other: &Line<'_>) -> bool {
        let (group, other) = (self.group, other.group);
        let is_alike = group.order_of_cells() == other.order_of_cells() && !group.is_open;
        is_alike && group.workload != other.workload
    }

    /// `None` where the source has no such figure.
    fn printed(&self) -> Option<Printed> {
        let cells = self.group.cells.iter();
        let all: Vec<(&Cell, f64)> =
            cells.filter_map(|cell| Some((cell, self.published(cell)?))).collect();
        let (contradicting, sound): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(|(cell, _)| self.contradicts(cell));
        let shared = self.shared();
        let shared: Vec<(&Cell, f64)> =
            sound.iter().copied().filter(|(cell, _)| shared.contains(cell)).collect();
        let first = [&shared, &sound, &all].into_iter().find(|cells| !cells.is_empty())?;
        Some(Printed {
            cells: all.len(),
            contradicting: contradicting.len(),
            shared: shared.len(),
            sizes: first.iter().map(|(_, size)| *size).collect(),
        })
    }

    /// The size of the effect in a cell from the figures of the source.
    fn published(&self, cell: &Cell) -> Option<f64> {
        let value = |scenario: &str| {
            let published = self.report.published_in_any_order(cell, scenario, self.metric)?;
            columns::published_value(published, self.metric)
        };
        let own = value(&self.scenario.name)?;
        if words::is_absolute(self.metric) {
            return Some(own / words::factor(self.metric));
        }
        let baseline = value(&self.report.suite.baseline).filter(|baseline| *baseline > 0.0)?;
        Some(100.0 * (own / baseline - 1.0))
    }

    /// Whether the figure of the scenario or that of the baseline contradicts the source.
    fn contradicts(&self, cell: &Cell) -> bool {
        [&self.scenario.name, &self.report.suite.baseline].into_iter().any(|scenario| {
            let published = self.report.published_in_any_order(cell, scenario, self.metric);
            let source = self.report.source_metric();
            published.is_some_and(|it| columns::contradiction(it, source, self.metric).is_some())
        })
    }

    /// The size of our effect in a cell.
    fn ours(&self, cell: &Cell) -> Option<f64> {
        let one = self.report.answer(cell, self.arm, self.metric).ok()?;
        let is_absolute = words::is_absolute(self.metric);
        let size = if is_absolute { &one.difference } else { &one.percent };
        size.is_known().then_some(size.value)
    }

    /// The cells that we have and that the source printed without contradicting itself.
    fn shared(&self) -> Vec<&Cell> {
        let is_shared = |cell: &&Cell| {
            let is_there = self.ours(cell).is_some() && self.published(cell).is_some();
            is_there && !self.contradicts(cell)
        };
        self.group.cells.iter().filter(is_shared).collect()
    }

    /// The cells of which ours is: the shared ones, or all where there is none.
    pub(super) fn cells(&self) -> Vec<&Cell> {
        let shared = self.shared();
        if shared.is_empty() { self.group.cells.iter().collect() } else { shared }
    }

    /// The size of our effect over them.
    pub(super) fn effect(&self) -> Option<Interval> {
        self.effect_by(self.metric)
    }

    fn effect_by(&self, metric: Metric) -> Option<Interval> {
        let effect = Effect {
            arm: self.arm,
            baseline: &self.report.suite.baseline,
            metric,
            workload: self.group.workload,
            order: self.group.order_of_cells(),
            is_open: false,
        };
        effect.size(self.report.analysis, self.report.windows, &self.cells())
    }

    fn data(
        &self,
        printed: &Printed,
        arms: &Arms<'_>,
        others: &[Line<'_>],
        notes: &mut Notes,
    ) -> Vec<Datum> {
        let Printed { cells, contradicting, shared, .. } = printed;
        let [scenario, workload, figure] = self.names(notes);
        let mut published = Datum::published(self.range(&printed.sizes, true));
        if *contradicting > 0 && contradicting < cells {
            let note = format!("{contradicting} of {cells} cells contradict the source: left out");
            published = published.note(notes.number(&note));
        }
        let [ours, lowest_to_highest] = self.ours_in_words(notes);
        let [direction, explanation] = self.answer(printed, arms, others);
        vec![
            scenario,
            workload,
            figure,
            Datum::number(format!("{shared} of {cells}")),
            published,
            ours,
            lowest_to_highest,
            self.processor_time(),
            direction,
            explanation,
        ]
    }

    /// Beside a rate: what a statement takes, over the same cells.
    fn processor_time(&self) -> Datum {
        if !self.metric.is_rate() {
            return Datum::text("");
        }
        match self.effect_by(Metric::CpuPerStatement) {
            Some(change) => Datum::number(words::percent_interval(&change)),
            None => self.absent(),
        }
    }

    /// The scenario, the workload and the figure.
    pub(super) fn names(&self, notes: &mut Notes) -> [Datum; 3] {
        let workload = Datum::text(&self.group.name);
        let warning = self.group.warning().map(|warning| notes.number(warning));
        [
            Datum::text(words::arm(&self.scenario.name, self.arm)),
            warning.into_iter().fold(workload, Datum::note),
            Datum::text(words::name(self.metric)),
        ]
    }

    /// Ours over the cells, and from the lowest to the highest.
    pub(super) fn ours_in_words(&self, notes: &mut Notes) -> [Datum; 2] {
        let Some(size) = self.effect() else { return [self.absent(), self.absent()] };
        let sizes: Vec<f64> = self.cells().into_iter().filter_map(|cell| self.ours(cell)).collect();
        let ours = Datum::number(words::size_interval(self.metric, &size));
        [self.marked(ours, notes), Datum::number(self.range(&sizes, false))]
    }

    /// The direction, and the explanation of the difference.
    fn answer(&self, printed: &Printed, arms: &Arms<'_>, others: &[Line<'_>]) -> [Datum; 2] {
        if printed.contradicting == printed.cells {
            return ["the source contradicts itself (left out)", "left out"].map(Datum::text);
        }
        let Some(ours) = self.effect() else {
            return [self.absent(), Datum::text("nothing to compare")];
        };
        let mean = self.mean(&printed.sizes);
        let explanation = match self.difference() {
            None => of_the_same(&ours, mean == 0.0).to_owned(),
            Some(difference) => {
                let others: Vec<_> = others.iter().filter_map(Line::difference).collect();
                arms.explain(self.metric, &difference, &others)
            }
        };
        [Datum::text(direction(mean, &ours)), Datum::text(explanation)]
    }

    /// What is to be explained; `None` where nothing is.
    fn difference(&self) -> Option<Difference<'_>> {
        let printed = self.printed().filter(|it| it.contradicting < it.cells)?;
        let (ours, mean) = (self.effect()?, self.mean(&printed.sizes));
        (!ours.holds(mean)).then(|| Difference {
            workload: self.group.workload,
            cells: self.cells(),
            size: beyond(self.metric, mean, ours.value),
        })
    }

    /// Of changes the geometric mean, as ours is.
    fn mean(&self, sizes: &[f64]) -> f64 {
        let count = sizes.len() as f64;
        match words::is_absolute(self.metric) {
            true => sizes.iter().sum::<f64>() / count,
            false => {
                let logs = sizes.iter().map(|percent| (percent / 100.0).ln_1p());
                percent(logs.sum::<f64>() / count)
            }
        }
    }

    /// The lowest and the highest of sizes, and their mean where it is asked for; the only one alone.
    pub(super) fn range(&self, sizes: &[f64], with_mean: bool) -> String {
        let size = |size: f64| words::size(self.metric, size);
        let Some((low, high)) = span(sizes.iter().copied()) else {
            return words::NOT_MEASURED.to_owned();
        };
        match sizes.len() {
            1 => size(low),
            _ if with_mean => {
                format!("{} to {}, mean {}", size(low), size(high), size(self.mean(sizes)))
            }
            _ => format!("{} to {}", size(low), size(high)),
        }
    }

    /// With a note where the load left processors idle, in which case rates say little, and where it left none idle, in
    /// which case the share of the server does.
    fn marked(&self, ours: Datum, notes: &mut Notes) -> Datum {
        let answer = |cell: &Cell| self.report.answer(cell, self.arm, self.metric).ok();
        let cells = self.cells();
        let counted = || cells.iter().filter_map(|cell| answer(cell));
        if self.metric == Metric::ServerShare {
            let is_full = counted().any(|one| one.is_saturated == Some(true));
            return if is_full { ours.note(notes.number(FULL)) } else { ours };
        }
        let note = columns::cells_below_saturation(counted()).filter(|_| self.metric.is_rate());
        note.into_iter().fold(ours, |ours, note| ours.note(notes.number(&note)))
    }

    /// Why there are no numbers of ours.
    pub(super) fn absent(&self) -> Datum {
        let answer = |cell| self.report.answer(cell, self.arm, self.metric).err();
        let first = self.group.cells.iter().find_map(answer);
        let no_ratio = || Absent(Verdict::Void(words::NO_RATIO.to_owned()));
        first.unwrap_or_else(no_ratio).datum()
    }
}

/// Whether ours is on the side of what was published.
pub(super) fn direction(published: f64, ours: &Interval) -> &'static str {
    if ours.holds(0.0) {
        "ours not distinguishable from zero"
    } else if published == 0.0 {
        "published as zero"
    } else if (published > 0.0) == (ours.value > 0.0) {
        "same direction"
    } else {
        "other direction"
    }
}

/// What has to be added to ours to be at what was published.
pub(super) fn beyond(metric: Metric, published: f64, ours: f64) -> f64 {
    match words::is_absolute(metric) {
        true => published - ours,
        false => 100.0 * ((100.0 + published) / (100.0 + ours) - 1.0),
    }
}
