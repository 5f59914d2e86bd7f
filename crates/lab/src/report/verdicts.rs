//! A verdict for each scenario and workload, over its cells.

use crate::analysis::{Comparison, Interval, Metric, Verdict};
use crate::report::document::{Block, Datum, Row, Table};
use crate::report::effect::Effect;
use crate::report::group::Group;
use crate::report::{Absent, Report, columns, words};
use crate::suite::Scenario;
use crate::window::Cell;

/// What a verdict is on.
pub(super) const METRIC: Metric = Metric::CpuPerStatement;

/// The table, and how to read it.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let source = words::name(report.source_metric());
    let text = format!(
        "Change against {}. Over several cells: their mean effect, each with the same weight. Its \
         interval rests on the blocks: all cells of a block are measured on the same servers, and what \
         sets two servers apart is common to them. The verdict is on the processor time of the server \
         per statement, which is defined at any load; at saturation it is the throughput. It is \
         corrected by Holm for the number of means in this table, or of cells where a line is of one \
         cell.",
        report.suite.baseline
    );
    let heads = vec![
        "scenario".to_owned(),
        "workload".to_owned(),
        "verdict on the processor time per statement".to_owned(),
        "cells that count (number)".to_owned(),
        "processor time per statement, d% (95 % interval)".to_owned(),
        "processor time, µs/statement, lowest to highest cell".to_owned(),
        format!("{source}, d% (95 % interval)"),
        format!("published {source}, d%, lowest to highest cell"),
    ];
    let mut table = Table::new("Scenario by workload", heads);
    let groups = Group::all(report);
    let mut last = None;
    for line in lines(report, &groups) {
        let note = line.group.warning().map(|warning| table.notes.number(warning));
        let workload = line.workload();
        let is_first = last.as_ref() != Some(&workload);
        table.rows.push(Row { data: line.data(note), is_first });
        last = Some(workload);
    }
    match table.rows.is_empty() {
        true => vec![Block::Paragraph("No comparison has been run.".to_owned())],
        false => vec![Block::Paragraph(text), Block::Table(table)],
    }
}

/// Every scenario under every workload of which something was run.
pub(super) fn lines<'a>(report: Report<'a>, groups: &'a [Group<'a>]) -> Vec<Line<'a>> {
    let of_group = |group: &'a Group<'a>| {
        group.others(report).map(move |scenario| Line { report, scenario, group })
    };
    groups.iter().flat_map(of_group).filter(Line::was_run).collect()
}

/// One scenario under one workload, in one order.
pub(super) struct Line<'a> {
    report: Report<'a>,
    pub(super) scenario: &'a Scenario,
    group: &'a Group<'a>,
}

impl Line<'_> {
    /// `note` is the number of the note on the order.
    fn data(&self, note: Option<usize>) -> Vec<Datum> {
        let counted = self.counted(METRIC);
        let workload = Datum::text(self.workload());
        let absent = self.absent();
        let or_absent = |text: Option<String>| match (text, &absent) {
            (Some(text), _) => Datum::number(text),
            (None, verdict) => columns::verdict(verdict),
        };
        let change = self.change(METRIC);
        let source = self.change(self.report.source_metric());
        vec![
            Datum::text(&self.scenario.name),
            note.into_iter().fold(workload, Datum::note),
            columns::verdict(&self.verdict()),
            Datum::number(format!("{} of {}", counted.len(), self.group.cells.len())),
            or_absent(change.map(|it| words::percent_interval(&it))),
            or_absent(micros(&counted)),
            or_absent(source.map(|it| words::percent_interval(&it))),
            self.published(),
        ]
    }

    /// Its workload, with the order where there are several.
    pub(super) fn workload(&self) -> String {
        match self.group.is_open {
            true => format!("{}, fixed rate", self.group.name),
            false => self.group.name.clone(),
        }
    }

    /// Whether it was run in any cell, also where nothing of that counts.
    fn was_run(&self) -> bool {
        self.group.cells.iter().any(|cell| {
            let answer = self.report.answer(cell, &self.scenario.name, METRIC);
            !matches!(answer, Err(Absent(Verdict::NotRun(_))))
        })
    }

    /// The comparisons that have numbers.
    fn counted(&self, metric: Metric) -> Vec<&Comparison> {
        let answer = |cell| self.report.answer(cell, &self.scenario.name, metric).ok();
        self.group.cells.iter().filter_map(answer).collect()
    }

    /// The mean over cells; that of the cell where only one has numbers.
    pub(super) fn change(&self, metric: Metric) -> Option<Interval> {
        self.effect(metric).change(self.report.analysis)
    }

    fn effect(&self, metric: Metric) -> Effect<'_> {
        Effect {
            arm: &self.scenario.name,
            baseline: &self.report.suite.baseline,
            metric,
            workload: self.group.workload,
            order: self.group.order_of_cells(),
            is_open: self.group.is_open,
        }
    }

    /// Why there are no numbers. One reason stands for all cells where they have the same; void ones
    /// come before those that were not run.
    fn absent(&self) -> Verdict {
        let answer = |cell| self.report.answer(cell, &self.scenario.name, METRIC).err();
        let all: Vec<Verdict> =
            self.group.cells.iter().filter_map(answer).map(|Absent(verdict)| verdict).collect();
        let is_void = |one: &&Verdict| matches!(one, Verdict::Void(_));
        let first = all.iter().find(is_void).or(all.first());
        first.cloned().unwrap_or_else(|| Verdict::Void("no ratio could be formed".to_owned()))
    }

    /// That of the only cell, or that on the mean over cells.
    pub(super) fn verdict(&self) -> Verdict {
        let pooled = self.effect(METRIC).pooled(self.report.analysis);
        match (self.counted(METRIC).as_slice(), pooled) {
            ([one], _) => one.verdict.clone(),
            ([_, ..], Some(pooled)) => pooled.verdict.clone(),
            _ => self.absent(),
        }
    }

    fn published(&self) -> Datum {
        let trusted = |cell: &&Cell| {
            let name = &self.scenario.name;
            columns::contradiction_of_change(self.report, cell, name).is_none()
        };
        let percent = |cell| self.report.published_percent(cell, &self.scenario.name);
        let cells = self.group.cells.iter();
        let all: Vec<f64> = cells.filter(trusted).filter_map(percent).collect();
        match range(&all) {
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
    let values: Vec<f64> = counted.iter().map(|one| one.difference.value).collect();
    let (low, high) = range(&values)?;
    let factor = words::factor(counted.first()?.metric);
    let micros = |ns: f64| words::signed(ns * factor, 2);
    Some(format!("{} to {}", micros(low), micros(high)))
}

/// The lowest and the highest finite value.
fn range(values: &[f64]) -> Option<(f64, f64)> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite.map(|value| (value, value)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}
