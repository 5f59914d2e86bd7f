//! Every metric of every cell that was run. Other tables have those that a source printed.

use crate::metric::Metric;
use crate::report::Report;
use crate::report::columns::Column;
use crate::report::document::{Block, Datum, Table};
use crate::report::group::Group;
use crate::report::words;
use crate::window::Cell;

/// A table for each cell; nothing where none was run.
pub(super) fn blocks(report: Report<'_>) -> Vec<Block> {
    let run = report.cells_run();
    let groups = Group::all(report);
    let of_group = |group: &Group<'_>| {
        let cells = group.cells.iter().filter(|cell| run.contains(cell));
        cells.map(|cell| Block::Table(table(report, group, cell))).collect::<Vec<_>>()
    };
    let tables: Vec<Block> = groups.iter().flat_map(of_group).collect();
    if tables.is_empty() {
        return Vec::new();
    }
    let title = format!("{}, by cell", words::count(tables.len(), "table", "tables"));
    vec![Block::Heading("Every metric".to_owned()), Block::Folded(title, tables)]
}

/// Metrics from top to bottom, scenarios from left to right.
fn table(report: Report<'_>, group: &Group<'_>, cell: &Cell) -> Table {
    let mut heads = vec!["figure, unit".to_owned()];
    heads.extend(group.scenarios.iter().map(|scenario| scenario.name.clone()));
    let mut table = Table::new(words::cell(cell), heads);
    for figure in figures(report, group, cell) {
        let mut row = vec![Datum::text(figure.head(report))];
        for scenario in &group.scenarios {
            row.push(figure.datum(report, cell, &scenario.name, &mut table.notes));
        }
        table.row(row);
    }
    table
}

/// Those of the metrics of which any scenario has a number in the cell.
fn figures(report: Report<'_>, group: &Group<'_>, cell: &Cell) -> Vec<Column> {
    let is_known = |metric: &Metric| {
        let mut others = group.others(report);
        others.any(|scenario| report.answer(cell, &scenario.name, *metric).is_ok())
    };
    let known = Metric::ALL.into_iter().filter(is_known);
    let both = known.flat_map(|metric| [Column::Ours(metric), Column::Percent(metric)]);
    both.chain([Column::HostShare]).collect()
}
