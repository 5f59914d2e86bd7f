//! A verdict for each scenario and workload, over its cells.

use crate::analysis::{Comparison, Interval, Verdict};
use crate::metric::Metric;
use crate::report::document::{Block, Datum, Row, Table};
use crate::report::effect::Effect;
use crate::report::group::Group;
use crate::report::{Absent, Report, columns, span, words};
use crate::suite::Scenario;
use crate::window::{Cell, Window};

/// A table for each scenario that others are compared with, and how to read them.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let groups = Group::all(report);
    let tables = report.suite.compared_with().into_iter().filter_map(|baseline| {
        let lines = lines_against(report, &groups, baseline);
        (!lines.is_empty()).then(|| Block::Table(table(report, baseline, &lines)))
    });
    let tables: Vec<Block> = tables.collect();
    if tables.is_empty() {
        return vec![Block::Paragraph("No comparison has been run.".to_owned())];
    }
    let on = match report.verdict_metric() {
        Metric::CpuPerStatement => {
            "the processor time of the server per statement, which is defined at any load; at saturation \
             throughput follows it, but less, since the load has a part of the processors"
        }
        _ => {
            "the throughput: the processor time of the server was not measured. Where the server is not \
             saturated, it shows no cost"
        }
    };
    let text = format!(
        "Over several cells: their mean effect, each with the same weight. Its interval rests on the \
         blocks: all cells of a block are measured on the same servers, and what sets two servers \
         apart is common to them. The verdict is on {on}. It is corrected by Holm for the number of means in its \
         table, or of cells where a line is of one cell; the arm that is alone on a server is apart from the others."
    );
    std::iter::once(Block::Paragraph(text)).chain(tables).collect()
}

fn table(report: Report<'_>, baseline: &str, lines: &[Line<'_>]) -> Table {
    let source = words::name(report.source_metric());
    let mut heads = vec![
        "scenario".to_owned(),
        "workload".to_owned(),
        words::verdict_on(report.verdict_metric()),
        "cells that count (number)".to_owned(),
        "processor time per statement, d% (95 % interval)".to_owned(),
        "processor time, µs/statement, lowest to highest cell".to_owned(),
        format!("{source}, d% (95 % interval)"),
    ];
    if baseline == report.suite.baseline {
        heads.push(format!("published {source} of these cells, d%, lowest to highest"));
    }
    let mut table = Table::new(format!("Change against {baseline}"), heads);
    let mut last = None;
    for line in lines {
        let order = line.group.warning().map(|warning| table.notes.number(warning));
        let rate = line.cells_below_saturation().map(|note| table.notes.number(&note));
        let workload = line.workload();
        let is_first = last.as_ref() != Some(&workload);
        table.rows.push(Row { data: line.data(order, rate), is_first });
        last = Some(workload);
    }
    table
}

/// Every scenario under every workload of which something was run, against the baseline of the suite.
pub(super) fn lines<'a>(report: Report<'a>, groups: &'a [Group<'a>]) -> Vec<Line<'a>> {
    lines_against(report, groups, &report.suite.baseline)
}

fn lines_against<'a>(
    report: Report<'a>,
    groups: &'a [Group<'a>],
    baseline: &'a str,
) -> Vec<Line<'a>> {
    let is_of_suite = baseline == report.suite.baseline;
    let of_group = |group: &'a Group<'a>| {
        let scenarios = group.scenarios.iter().copied();
        scenarios.flat_map(move |scenario| {
            let arms = report.suite.arms_of(scenario);
            // Beside its like that shares a server stands no verdict, but how far the two are apart.
            let arms = arms.filter(move |arm| is_of_suite || *arm != Window::ALONE);
            arms.map(move |arm| Line { report, scenario, arm, baseline, group })
        })
    };
    groups.iter().flat_map(of_group).filter(Line::was_run).collect()
}

/// One scenario under one workload, in one order, against another one.
pub(super) struct Line<'a> {
    report: Report<'a>,
    scenario: &'a Scenario,
    /// That, or [`Window::ALONE`] with what it sets.
    arm: &'a str,
    baseline: &'a str,
    pub(super) group: &'a Group<'a>,
}

impl Line<'_> {
    /// With the numbers of the notes on the order, and on the throughput.
    fn data(&self, order: Option<usize>, rate: Option<usize>) -> Vec<Datum> {
        let cpu = Metric::CpuPerStatement;
        let counted = self.counted(cpu);
        let workload = Datum::text(self.workload());
        let source = self.report.source_metric();
        let or_absent = |text: Option<String>, metric| match text {
            Some(text) => Datum::number(text),
            None => columns::verdict(&self.absent(metric)),
        };
        let change = |metric| {
            let change = self.change(metric).map(|it| words::percent_interval(&it));
            or_absent(change, metric)
        };
        let mut data = vec![
            Datum::text(self.name()),
            order.into_iter().fold(workload, Datum::note),
            columns::verdict(&self.verdict()),
            Datum::number(self.cells()),
            change(cpu),
            or_absent(micros(&counted), cpu),
            rate.into_iter().fold(change(source), Datum::note),
        ];
        if self.baseline == self.report.suite.baseline {
            data.push(self.published());
        }
        data
    }

    /// The scenario, and whether it is alone on a server.
    pub(super) fn name(&self) -> String {
        words::arm(&self.scenario.name, self.arm)
    }

    /// Whether it is of the same scenario as another one, alone on a server.
    pub(super) fn is_alone_of(&self, other: &Line<'_>) -> bool {
        let is_same =
            self.scenario.name == other.scenario.name && self.workload() == other.workload();
        self.arm == Window::ALONE && other.arm != Window::ALONE && is_same
    }

    /// Its workload, with the order where there are several.
    pub(super) fn workload(&self) -> String {
        match self.group.is_open {
            true => format!("{}, fixed rate", self.group.name),
            false => self.group.name.clone(),
        }
    }

    /// Whether it was run in any cell.
    fn was_run(&self) -> bool {
        self.cells_run().next().is_some()
    }

    fn cells_run(&self) -> impl Iterator<Item = &Cell> {
        let was_run = |cell: &&Cell| self.report.was_run(self.baseline, cell, self.arm);
        self.group.cells.iter().filter(was_run)
    }

    fn answer(&self, cell: &Cell, metric: Metric) -> Result<&'_ Comparison, Absent> {
        self.report.answer_against(self.baseline, cell, self.arm, metric)
    }

    /// The comparisons that have numbers.
    fn counted(&self, metric: Metric) -> Vec<&Comparison> {
        let answer = |cell| self.answer(cell, metric).ok();
        self.group.cells.iter().filter_map(answer).collect()
    }

    /// How many cells have a part in the verdict, and in which the arm could not keep up: these are missing in a mean.
    fn cells(&self) -> String {
        let metric = self.report.verdict_metric();
        let is_overloaded =
            |cell: &&Cell| matches!(self.answer(cell, metric), Err(Absent(Verdict::Overloaded(_))));
        let overloaded =
            self.group.cells.iter().filter(is_overloaded).map(|cell| words::load(cell.load));
        let overloaded: Vec<String> = overloaded.collect();
        let count = format!("{} of {}", self.parts(), self.group.cells.len());
        match overloaded.is_empty() {
            true => count,
            false => format!("{count}; overloaded: {}", overloaded.join(", ")),
        }
    }

    /// A note on the throughput, where the load left processors idle. At a fixed rate it does in every cell.
    fn cells_below_saturation(&self) -> Option<String> {
        let counted = self.counted(self.report.source_metric()).into_iter();
        columns::cells_below_saturation(counted).filter(|_| !self.group.is_open)
    }

    /// How many cells have a part in the verdict.
    fn parts(&self) -> usize {
        let metric = self.report.verdict_metric();
        let pooled = self.effect(metric).pooled(self.report.analysis);
        pooled.map_or_else(|| self.counted(metric).len(), |pooled| pooled.cells)
    }

    /// The mean over cells; that of the cell where only one has numbers.
    pub(super) fn change(&self, metric: Metric) -> Option<Interval> {
        self.effect(metric).change(self.report.analysis)
    }

    fn effect(&self, metric: Metric) -> Effect<'_> {
        Effect {
            arm: self.arm,
            baseline: self.baseline,
            metric,
            workload: self.group.workload,
            order: self.group.order_of_cells(),
            is_open: self.group.is_open,
        }
    }

    /// Why there are no numbers of the cells that were run. One reason stands for all of them where they have the same;
    /// what was not run comes last.
    fn absent(&self, metric: Metric) -> Verdict {
        let answer = |cell| self.answer(cell, metric).err().map(|Absent(verdict)| verdict);
        let is_not_run = |one: &Verdict| matches!(one, Verdict::NotRun(_));
        let first = self.cells_run().filter_map(answer).min_by_key(is_not_run);
        first.unwrap_or_else(|| Verdict::Void(words::NO_RATIO.to_owned()))
    }

    /// That of the only cell, or that on the mean over cells.
    pub(super) fn verdict(&self) -> Verdict {
        let metric = self.report.verdict_metric();
        let pooled = self.effect(metric).pooled(self.report.analysis);
        match (self.counted(metric).as_slice(), pooled) {
            ([one], _) => one.verdict.clone(),
            ([_, _, ..], Some(pooled)) => pooled.verdict.clone(),
            ([_, _, ..], None) => {
                Verdict::Void("its cells have too few blocks in common".to_owned())
            }
            ([], _) => self.absent(metric),
        }
    }

    /// That of the cells that were run.
    fn published(&self) -> Datum {
        let trusted = |cell: &&Cell| {
            let name = &self.scenario.name;
            columns::contradiction_of_change(self.report, cell, name).is_none()
        };
        let percent = |cell| self.report.published_percent(cell, &self.scenario.name);
        let all: Vec<f64> = self.cells_run().filter(trusted).filter_map(percent).collect();
        match span(all.iter().copied()) {
            None => Datum::published(words::NOT_PUBLISHED),
            Some((low, high)) => Datum::published(match all.len() {
                1 => words::percent(low),
                _ => format!("{} to {}", words::percent(low), words::percent(high)),
            }),
        }
    }
}

/// What a statement takes longer: the interval of the only cell, or the span over several.
fn micros(counted: &[&Comparison]) -> Option<String> {
    if let [one] = counted {
        return Some(words::difference(one.metric, &one.difference));
    }
    let (low, high) = span(counted.iter().map(|one| one.difference.value))?;
    let factor = words::factor(counted.first()?.metric);
    let micros = |ns: f64| words::signed(ns * factor, 2);
    Some(format!("{} to {}", micros(low), micros(high)))
}
