//! Tables in the shape of the source, ours beside the published figures.

use crate::analysis::{Comparison, Metric};
use crate::report::columns::{self, Column};
use crate::report::document::{Block, Datum, Table};
use crate::report::words::{self, DEFINITION};
use crate::report::{Absent, Report};
use crate::suite::{Published, Scenario};
use crate::window::{Cell, Window};

/// Per workload: a grid of threads and scenarios where there are several numbers of threads, else a
/// line for each scenario; then the loads at a fixed rate.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("Results in the shape of the source".to_owned()),
        Block::Paragraph(format!(
            "{DEFINITION}; below 0 is a loss of throughput, or less processor time. Published changes \
             are recomputed from the published figures. Ours stand with their 95 % interval."
        )),
    ];
    let workloads = report.suite.workloads.iter();
    for workload in workloads.clone() {
        blocks.push(Block::Subheading(workload.name.clone()));
        let cells = report.closed(&workload.name);
        if cells.len() > 1 {
            blocks.push(Block::Table(grid(report, &workload.name, &cells)));
        } else {
            blocks.extend(cells.iter().map(|cell| Block::Table(lines(report, cell))));
        }
    }
    let open: Vec<Cell> = workloads.flat_map(|workload| report.open(&workload.name)).collect();
    if !open.is_empty() {
        blocks.push(Block::Heading("Loads at a fixed rate (open loop)".to_owned()));
        blocks.push(Block::Paragraph(
            "The same rate for every scenario, at which the baseline uses the named share of all \
             processors. Throughput is given here, so read the processor time and the latency. \
             Latency counts from the instant at which a transaction was due."
                .to_owned(),
        ));
        blocks.extend(open.iter().map(|cell| Block::Table(at_fixed_rate(report, cell))));
    }
    blocks.extend(other_baselines(report));
    blocks
}

/// Threads from top to bottom, scenarios from left to right.
fn grid(report: Report<'_>, workload: &str, cells: &[Cell]) -> Table {
    let source = report.source_metric();
    let caption = format!("{workload}: {} and processor time by threads", words::name(source));
    let mut heads = vec!["threads (sessions)".to_owned(), "figure, unit".to_owned()];
    heads.extend(report.suite.scenarios.iter().map(|scenario| scenario.name.clone()));
    let mut table = Table::new(caption, heads);
    for cell in cells {
        level(report, cell, &mut table);
    }
    table
}

/// The rows of one number of threads.
fn level(report: Report<'_>, cell: &Cell, table: &mut Table) {
    let source = report.source_metric();
    let (name, unit) = (words::name(source), words::unit(source));
    let cpu = Metric::CpuPerStatement;
    let mut notes = std::mem::take(&mut table.notes);
    let mut rows = vec![row(report, cell, format!("{name}, {unit}"), &mut |scenario| {
        columns::ours(report, cell, &scenario.name, source, &mut notes)
    })];
    rows.push(row(report, cell, format!("published {name}, {unit}"), &mut |scenario| {
        columns::published(report, cell, &scenario.name, source, &mut notes)
    }));
    let was_run = arms(report).any(|arm| report.answer(cell, arm, cpu).is_ok());
    if was_run {
        rows.push(row(report, cell, format!("{name}, d%"), &mut |scenario| {
            percent(report, cell, scenario, source)
        }));
    }
    rows.push(row(report, cell, format!("published {name}, d%"), &mut |scenario| {
        columns::published_percent(report, cell, &scenario.name, &mut notes)
    }));
    if was_run {
        rows.push(row(report, cell, "processor time, µs/statement".to_owned(), &mut |scenario| {
            match scenario.name == report.suite.baseline {
                true => columns::ours(report, cell, &scenario.name, cpu, &mut notes),
                false => columns::of(report.answer(cell, &scenario.name, cpu), |one| {
                    words::difference(cpu, &one.difference)
                }),
            }
        }));
        rows.push(row(report, cell, "processor time, d%".to_owned(), &mut |scenario| {
            percent(report, cell, scenario, cpu)
        }));
    }
    table.notes = notes;
    let mut rows = rows.into_iter();
    rows.next().into_iter().for_each(|first| table.first_row(first));
    rows.for_each(|row| table.row(row));
}

/// A row with a place for each scenario.
fn row(
    report: Report<'_>,
    cell: &Cell,
    figure: String,
    datum: &mut dyn FnMut(&Scenario) -> Datum,
) -> Vec<Datum> {
    let mut data = vec![Datum::text(cell.threads.to_string()), Datum::text(figure)];
    data.extend(report.suite.scenarios.iter().map(datum));
    data
}

fn arms<'a>(report: Report<'a>) -> impl Iterator<Item = &'a str> {
    let scenarios = report.suite.scenarios.iter().map(|scenario| scenario.name.as_str());
    scenarios.chain([Window::AGAIN])
}

fn percent(report: Report<'_>, cell: &Cell, scenario: &Scenario, metric: Metric) -> Datum {
    if scenario.name == report.suite.baseline {
        return Datum::text("baseline");
    }
    let answer = report.answer(cell, &scenario.name, metric);
    columns::of(answer, |one| words::percent_interval(&one.percent))
}

/// A line for each scenario, with the columns that the source has.
fn lines(report: Report<'_>, cell: &Cell) -> Table {
    let source = report.source_metric();
    let is_published = |figure: fn(&Published) -> bool| report.suite.published.iter().any(figure);
    let mut list = Vec::new();
    for (metric, is_there) in [
        (Metric::Qps, is_published(|one| one.qps.is_some())),
        (Metric::Tps, is_published(|one| one.tps.is_some())),
    ] {
        if is_there || metric == source {
            list.extend([Column::Ours(metric), Column::Published(metric)]);
        }
    }
    if source == Metric::Tps {
        list.extend([Column::Ratio, Column::PublishedRatio]);
    }
    list.extend([Column::Percent(source), Column::PublishedPercent]);
    list.push(Column::Ours(Metric::LatencyMean));
    if is_published(|one| one.latency_ms.is_some()) {
        list.push(Column::Published(Metric::LatencyMean));
    }
    list.push(Column::Ours(Metric::ServerShare));
    if is_published(|one| one.cpu_percent.is_some()) {
        list.push(Column::Published(Metric::ServerShare));
    }
    if is_published(|one| one.memory_bytes.is_some()) {
        list.extend([Column::Difference(Metric::Rss), Column::Published(Metric::Rss)]);
        list.push(Column::PerformanceSchemaMemory);
    }
    let cpu = Metric::CpuPerStatement;
    list.extend([Column::Difference(cpu), Column::Percent(cpu), Column::Verdict]);
    columns::table(report, words::cell(cell), cell, &list)
}

fn at_fixed_rate(report: Report<'_>, cell: &Cell) -> Table {
    let cpu = Metric::CpuPerStatement;
    let mut list = vec![
        Column::Ours(Metric::Tps),
        Column::Ours(Metric::ServerShare),
        Column::Difference(cpu),
        Column::Percent(cpu),
        Column::Verdict,
    ];
    for metric in [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99] {
        list.extend([Column::Ours(metric), Column::Percent(metric)]);
    }
    columns::table(report, words::cell(cell), cell, &list)
}

/// Comparisons with something else than the baseline of the suite, as the orders of the suite ask.
fn other_baselines(report: Report<'_>) -> Vec<Block> {
    let source = report.source_metric();
    let cpu = Metric::CpuPerStatement;
    let is_asked = |one: &Comparison| {
        let orders = report.suite.orders.iter();
        let mut asked = orders.filter(|order| order.scenarios.contains(&one.arm));
        asked.any(|order| order.against.contains(&one.baseline))
    };
    let is_other = |one: &&Comparison| {
        one.baseline != report.suite.baseline && one.metric == cpu && is_asked(one)
    };
    let others: Vec<&Comparison> = report.analysis.comparisons.iter().filter(is_other).collect();
    if others.is_empty() {
        return Vec::new();
    }
    let heads = [
        "cell".to_owned(),
        "scenario".to_owned(),
        "in place of the baseline".to_owned(),
        format!("{}, d% (95 % interval)", words::name(source)),
        "processor time, µs/statement (95 % interval)".to_owned(),
        "processor time per statement, d% (95 % interval)".to_owned(),
        "verdict on the processor time per statement".to_owned(),
    ];
    let mut table = Table::new("Beside another scenario than the baseline", heads.to_vec());
    for one in others {
        let is_same = |other: &&Comparison| {
            other.metric == source
                && other.cell == one.cell
                && other.arm == one.arm
                && other.baseline == one.baseline
        };
        let of_source = report.analysis.comparisons.iter().find(is_same);
        table.row(vec![
            Datum::text(words::cell(&one.cell)),
            Datum::text(&one.arm),
            Datum::text(&one.baseline),
            columns::of(numbers(of_source), |other| words::percent_interval(&other.percent)),
            columns::of(numbers(Some(one)), |one| words::difference(cpu, &one.difference)),
            columns::of(numbers(Some(one)), |one| words::percent_interval(&one.percent)),
            columns::verdict(&one.verdict),
        ]);
    }
    let title = "Steps between scenarios".to_owned();
    vec![Block::Heading(title), Block::Table(table)]
}

/// A comparison where it has numbers, or why it has none.
fn numbers(comparison: Option<&Comparison>) -> Result<&Comparison, Absent> {
    let not_run = || crate::analysis::Verdict::NotRun("the run has not come to it".to_owned());
    match comparison {
        Some(one) if one.verdict.is_known() => Ok(one),
        Some(one) => Err(Absent(one.verdict.clone())),
        None => Err(Absent(not_run())),
    }
}
