//! Every effect on throughput that the source published, cell by cell, beside ours.

use crate::report::Report;
use crate::report::columns::Column;
use crate::report::document::{Block, Datum, Table};
use crate::report::group::Group;
use crate::report::words;
use crate::suite::Scenario;
use crate::window::Cell;

/// A table for each workload of which several closed cells were run, and published.
pub(super) fn tables(report: Report<'_>) -> Vec<Block> {
    let groups = Group::all(report);
    let closed = groups.iter().filter(|group| !group.is_open);
    closed.filter_map(|group| table(report, group)).map(Block::Table).collect()
}

/// Threads from top to bottom, scenarios from left to right; `None` for fewer than two cells.
fn table(report: Report<'_>, group: &Group<'_>) -> Option<Table> {
    let source = report.source_metric();
    let scenarios: Vec<&Scenario> = group.others(report).collect();
    let is_there = |cell: &&Cell| {
        let mut names = scenarios.iter().map(|one| one.name.as_str());
        let is_published = |name: &str| report.published_percent(cell, name).is_some();
        names.any(|name| is_published(name) && report.answer(cell, name, source).is_ok())
    };
    let cells: Vec<&Cell> = group.cells.iter().filter(is_there).collect();
    let mut heads = vec!["threads (sessions)".to_owned()];
    for scenario in &scenarios {
        heads.push(format!("{}: published, d%", scenario.name));
        heads.push("ours, d% (95 % interval)".to_owned());
    }
    let caption = format!("{}: change of {} in each cell", group.name, words::name(source));
    let mut table = Table::new(caption, heads);
    for cell in &cells {
        let mut row = vec![Datum::text(cell.threads.to_string())];
        for scenario in &scenarios {
            let columns = [Column::PublishedPercent, Column::Percent(source)];
            row.extend(columns.map(|it| it.datum(report, cell, &scenario.name, &mut table.notes)));
        }
        table.row(row);
    }
    (cells.len() > 1).then_some(table)
}
