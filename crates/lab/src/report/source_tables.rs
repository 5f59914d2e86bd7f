//! Tables in the shape of the source, ours beside the published figures.

use crate::analysis::Comparison;
use crate::metric::Metric;
use crate::report::columns::{self, Column};
use crate::report::document::{Block, Datum, Table};
use crate::report::group::Group;
use crate::report::words::{self, DEFINITION};
use crate::report::{Report, explanation, published_ranges};
use crate::suite::{Order, Published};
use crate::window::{Cell, Window};

/// Per workload and order: a grid of threads and scenarios where there are several numbers of threads,
/// else a line for each scenario; then the loads at a fixed rate.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("Results in the shape of the source".to_owned()),
        Block::Paragraph(format!(
            "{DEFINITION}; below 0 is a loss of throughput, or less processor time. Published changes \
             are recomputed from the published figures. Ours stand with their 95 % interval."
        )),
    ];
    let (open, closed): (Vec<Group<'_>>, Vec<Group<'_>>) =
        Group::all(report).into_iter().partition(|group| group.is_open);
    blocks.extend(summary(report, &closed).map(Block::Table));
    for group in &closed {
        blocks.extend(head(report, group));
        match group.cells.as_slice() {
            [cell] => blocks.push(Block::Table(lines(report, group, cell))),
            _ => blocks.push(Block::Table(grid(report, group))),
        }
        blocks.extend(steps(report, group).map(Block::Table));
    }
    let ranges = published_ranges::blocks(report);
    if !ranges.is_empty() {
        blocks.push(Block::Subheading("Said by the source without figures".to_owned()));
        blocks.extend(ranges);
        blocks.push(Block::Paragraph(explanation::RULE.to_owned()));
    }
    if !open.is_empty() {
        blocks.push(Block::Heading("Loads at a fixed rate (open loop)".to_owned()));
        blocks.push(Block::Paragraph(
            "The same rate for every scenario, at which the named share of the processors is in use with the \
             baseline: of those that the server may use, by whatever runs there. Throughput is given here, so read the processor time \
             and the latency. Latency counts from the instant at which a transaction was due."
                .to_owned(),
        ));
    }
    for group in &open {
        blocks.extend(head(report, group));
        let tables = group.cells.iter().map(|cell| at_fixed_rate(report, group, cell));
        blocks.extend(tables.map(Block::Table));
        blocks.extend(steps(report, group).map(Block::Table));
    }
    blocks
}

/// What a group is, and what has to be known of its order.
fn head(report: Report<'_>, group: &Group<'_>) -> Vec<Block> {
    let mut head = vec![Block::Subheading(group.name.clone())];
    if let Some(order) = group.order.filter(|_| report.suite.orders.len() > 1) {
        head.push(Block::Paragraph(format!("Order {}: {}.", order.name, order.title)));
    }
    head.extend(group.warning().map(|warning| Block::Paragraph(warning.to_owned())));
    head
}

/// Scenarios from top to bottom, workloads from left to right, at the number of threads that also has the loads at a fixed
/// rate; `None` where fewer than two workloads have it.
fn summary(report: Report<'_>, closed: &[Group<'_>]) -> Option<Table> {
    let threads = report.suite.open_threads;
    let at = |group: &Group<'_>| {
        let cell = group.cells.iter().find(|cell| cell.threads == threads)?;
        Some(cell.clone()).filter(|cell| cell.order.is_none())
    };
    let cells: Vec<Cell> = closed.iter().filter_map(at).collect();
    let source = report.source_metric();
    let list = [
        Column::Ours(source),
        Column::Published(source),
        Column::Percent(source),
        Column::PublishedPercent,
    ];
    let mut heads = vec!["scenario".to_owned()];
    for Cell { workload, .. } in &cells {
        let first = heads.len();
        heads.extend(list.map(|column| column.head(report)));
        heads[first] = format!("{workload}: {}", heads[first]);
    }
    let (name, threads) = (words::name(source), words::threads(threads));
    let mut table = Table::new(format!("{name} of every workload with {threads}"), heads);
    for scenario in &report.suite.scenarios {
        let mut data = vec![Datum::text(&scenario.name)];
        for cell in &cells {
            let mut datum =
                |column: Column| column.datum(report, cell, &scenario.name, &mut table.notes);
            data.extend(list.map(&mut datum));
        }
        table.row(data);
    }
    (cells.len() > 1).then_some(table)
}

/// Threads from top to bottom, scenarios from left to right.
fn grid(report: Report<'_>, group: &Group<'_>) -> Table {
    let source = words::name(report.source_metric());
    let caption = format!("{}: {source} and processor time by threads", group.name);
    let mut heads = vec!["threads (sessions)".to_owned(), "figure, unit".to_owned()];
    heads.extend(group.scenarios.iter().map(|scenario| scenario.name.clone()));
    let mut table = Table::new(caption, heads);
    for cell in &group.cells {
        level(report, group, cell, &mut table);
    }
    table
}

/// The rows of one number of threads.
fn level(report: Report<'_>, group: &Group<'_>, cell: &Cell, table: &mut Table) {
    let source = report.source_metric();
    let (name, unit) = (words::name(source), words::unit(source));
    let cpu = Metric::CpuPerStatement;
    let mut arms = group.scenarios.iter().map(|one| one.name.as_str()).chain([Window::AGAIN]);
    let was_run = arms.any(|arm| report.was_run(&report.suite.baseline, cell, arm));
    let figures = [
        (true, format!("{name}, {unit}"), Column::Ours(source)),
        (true, format!("published {name}, {unit}"), Column::Published(source)),
        (was_run, format!("{name}, d%"), Column::Percent(source)),
        (true, format!("published {name}, d%"), Column::PublishedPercent),
        (was_run, "processor time, µs/statement".to_owned(), Column::Difference(cpu)),
        (was_run, "processor time, d%".to_owned(), Column::Percent(cpu)),
        (was_run, words::verdict_on(report.verdict_metric()), Column::Verdict),
    ];
    for (at, (_, figure, column)) in
        figures.into_iter().filter(|(is_there, ..)| *is_there).enumerate()
    {
        let mut row = vec![Datum::text(cell.threads.to_string()), Datum::text(figure)];
        for scenario in &group.scenarios {
            let column = match column {
                // In place of a change against itself.
                Column::Difference(metric) if scenario.name == report.suite.baseline => {
                    Column::Ours(metric)
                }
                column => column,
            };
            row.push(column.datum(report, cell, &scenario.name, &mut table.notes));
        }
        match at {
            0 => table.first_row(row),
            _ => table.row(row),
        }
    }
}

/// A line for each scenario, with the columns that the source has. Its own figures of a metric are left
/// out where it has none of the cell, as in an order that is not that of the source.
fn lines(report: Report<'_>, group: &Group<'_>, cell: &Cell) -> Table {
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
        list.push(Column::Ours(Metric::PerformanceSchemaMemory));
    }
    let cpu = Metric::CpuPerStatement;
    list.extend([Column::Difference(cpu), Column::Percent(cpu), Column::Verdict]);
    let is_there = |metric| {
        group.scenarios.iter().any(|one| report.published(cell, &one.name, metric).is_some())
    };
    list.retain(|column| column.published(source).is_none_or(is_there));
    columns::table(report, group, cell, &list)
}

fn at_fixed_rate(report: Report<'_>, group: &Group<'_>, cell: &Cell) -> Table {
    let cpu = Metric::CpuPerStatement;
    let mut list = vec![
        Column::Ours(Metric::Tps),
        Column::Ours(Metric::ServerShare),
        Column::HostShare,
        Column::Difference(cpu),
        Column::Percent(cpu),
        Column::Verdict,
    ];
    for metric in [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99] {
        list.extend([Column::Ours(metric), Column::Percent(metric)]);
    }
    columns::table(report, group, cell, &list)
}

/// Comparisons with something else than the baseline of the suite, as the order asks; `None` where it
/// asks for none.
fn steps(report: Report<'_>, group: &Group<'_>) -> Option<Table> {
    let (source, cpu) = (report.source_metric(), Metric::CpuPerStatement);
    let is_asked = |one: &&Comparison| {
        let against = |order: &Order| order.against.contains(&one.baseline);
        one.metric == cpu
            && one.baseline != report.suite.baseline
            && group.cells.contains(&one.cell)
            && group.order.is_some_and(against)
    };
    let heads = [
        "cell".to_owned(),
        "scenario".to_owned(),
        "in place of the baseline".to_owned(),
        format!("{}, d% (95 % interval)", words::name(source)),
        "processor time, µs/statement (95 % interval)".to_owned(),
        "processor time per statement, d% (95 % interval)".to_owned(),
        words::verdict_on(report.verdict_metric()),
    ];
    let caption = format!("{}: beside another scenario than the baseline", group.name);
    let mut table = Table::new(caption, heads.to_vec());
    for one in report.analysis.comparisons.iter().filter(is_asked) {
        let answer = |metric| report.answer_against(&one.baseline, &one.cell, &one.arm, metric);
        table.row(vec![
            Datum::text(words::cell(&one.cell)),
            Datum::text(&one.arm),
            Datum::text(&one.baseline),
            columns::of(answer(source), |it| words::percent_interval(&it.percent)),
            columns::of(answer(cpu), |it| words::difference(cpu, &it.difference)),
            columns::of(answer(cpu), |it| words::percent_interval(&it.percent)),
            columns::verdict_of(answer(report.verdict_metric())),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
