//! The ranked digests.
//!
//! If the width is too small, columns are dropped in this order: database, rows sent, p95, rows
//! examined, share, average, load over time, errors, p99, calls. The sort column stays.

use ratatui_core::text::{Line, Span};
use waggle_model::TimeClass;

use super::bars::{bar, sparkline};
use super::classes;
use super::columns::{Column, fitting};
use super::look::{BAR, BOLD, DIM, PLAIN, SORTED, TITLE, WARN, selected};
use super::number::{ms, percent, plain};
use super::over_time::OverTime;
use super::text::{fit, left, right};
use crate::state::{App, Frame, Pane, Row, Sort, Watched};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load,
    Share,
    OverTime,
    Calls,
    Average,
    P95,
    P99,
    Examined,
    Sent,
    Errors,
    Database,
    /// Load of a class, while digests are ranked by it.
    InClass(TimeClass),
}

const COLUMNS: [Column<What>; 11] = [
    Column::new("LOAD", 6, 0, What::Load),
    Column::new("SHARE", 12, 6, What::Share),
    Column::new("LOAD 3 MIN", 12, 4, What::OverTime),
    Column::new("CALLS/S", 8, 1, What::Calls),
    Column::new("AVG ms", 8, 5, What::Average),
    Column::new("P95 ms", 8, 8, What::P95),
    Column::new("P99 ms", 8, 2, What::P99),
    Column::new("EXAM/CALL", 9, 7, What::Examined),
    Column::new("SENT/CALL", 9, 9, What::Sent),
    Column::new("ERR/S", 6, 3, What::Errors),
    Column::new("DATABASE", 14, 10, What::Database),
];

/// Columns of the share beside its bar.
const PERCENT_WIDTH: usize = 5;
/// Columns of the mark of the selected row.
const MARK_WIDTH: usize = 2;

fn sorts(what: What) -> Option<Sort> {
    match what {
        What::Load => Some(Sort::Load),
        What::Calls => Some(Sort::Calls),
        What::P95 => Some(Sort::P95),
        What::P99 => Some(Sort::P99),
        What::Examined => Some(Sort::Examined),
        What::Errors => Some(Sort::Errors),
        What::InClass(class) => Some(Sort::Time(class)),
        _ => None,
    }
}

/// The columns that there are while digests are ranked in this way.
fn columns_of(sort: Sort) -> Vec<Column<What>> {
    let mut columns = COLUMNS.to_vec();
    if let Sort::Time(class) = sort {
        let width = class.name().len().max(6);
        columns.insert(1, Column::new(class.name(), width, 0, What::InClass(class)));
    }
    columns
}

/// Title, heads and rows, `height` lines at most.
pub(crate) fn lines(
    app: &App,
    one: &Watched,
    frame: &Frame,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let text_min = (width / 3).max(20);
    let columns =
        fitting(&columns_of(app.sort), width.saturating_sub(MARK_WIDTH), text_min, |column| {
            sorts(column.what) == Some(app.sort)
        });
    let used: usize = columns.iter().map(|column| column.width + 1).sum();
    let text_width = width.saturating_sub(MARK_WIDTH + used);
    let mut lines = vec![title(app, one, frame, width), heads(app, &columns)];
    let room = height.saturating_sub(lines.len());
    let over_time = OverTime::of(one, frame, 12);
    let all = frame.load_of_all();
    let is_in_front = app.pane == Pane::Digests;
    for at in super::window(one.digest.at, one.listed.len(), room) {
        let Some(row) = one.row(frame, at) else { break };
        let is_selected = is_in_front && at == one.digest.at;
        let mark = if is_selected { "> " } else { "  " };
        let mut line = Line::raw(mark);
        for column in &columns {
            line.spans.extend(cell(column, row, frame, all, &over_time));
            line.push_span(Span::raw(" "));
        }
        line.push_span(Span::raw(fit(&row.name.text, text_width)));
        lines.push(if is_selected { selected(line) } else { line });
    }
    if one.listed.is_empty() {
        let why = match app.filter.typed() {
            "" => "  no statement ran in this interval",
            _ => "  no digest passes the filter; Esc takes it away",
        };
        lines.push(Line::styled(fit(why, width), DIM));
    }
    lines.truncate(height);
    lines
}

fn title(app: &App, one: &Watched, frame: &Frame, width: usize) -> Line<'static> {
    let all = frame.rows.len();
    let counted = match one.listed.len() {
        shown if shown == all => format!("{all}"),
        shown => format!("{shown} of {all}"),
    };
    let left_out = match frame.rows_left_out {
        0 => String::new(),
        n => format!(", {n} more were not kept"),
    };
    let other = match frame.other_calls {
        0 => String::new(),
        n => format!(", {n} calls of others beyond the limit"),
    };
    let filter = match app.filter.typed() {
        "" => String::new(),
        typed => format!("  filter: {typed}"),
    };
    let title = format!("DIGESTS by {}: {counted}{left_out}{other}{filter}", app.sort.name());
    Line::styled(fit(&title, width), if app.pane == Pane::Digests { TITLE } else { BOLD })
}

fn heads(app: &App, columns: &[Column<What>]) -> Line<'static> {
    let mut line = Line::raw("  ");
    for column in columns {
        let text = match column.what {
            What::Database | What::Share | What::OverTime => left(column.title, column.width),
            _ => right(column.title, column.width),
        };
        let style = if sorts(column.what) == Some(app.sort) { SORTED } else { DIM };
        // The blanks before a title are not underlined.
        let title = match column.what {
            What::InClass(_) => text.to_uppercase(),
            _ => text.trim_start().to_owned(),
        };
        let title = title.trim_start();
        line.push_span(Span::raw(" ".repeat(text.len() - title.len())));
        line.push_span(Span::styled(title.to_owned(), style));
        line.push_span(Span::raw(" "));
    }
    line.push_span(Span::styled("DIGEST", DIM));
    line
}

fn cell(
    column: &Column<What>,
    row: &Row,
    frame: &Frame,
    all: f64,
    over_time: &OverTime,
) -> Vec<Span<'static>> {
    let calls = row.calls as f64;
    let per_call = |sum: Option<f64>| plain(sum.filter(|_| calls > 0.0).map(|sum| sum / calls));
    let load = row.load.get();
    let share = load.map(|load| if all > 0.0 { load / all } else { 0.0 });
    let text = match column.what {
        What::Load => plain(load),
        What::Calls => plain(Some(frame.rate(calls))),
        What::Average => ms(row.avg_ns.get()),
        What::P95 => ms(row.p95_ns.get()),
        What::P99 => ms(row.p99_ns.get()),
        What::Examined => per_call(row.rows_examined.get()),
        What::Sent => per_call(row.rows_sent.get()),
        What::Errors => plain(row.errors.get().map(|n| frame.rate(n))),
        What::Database => {
            let database = row.name.schema.as_deref().unwrap_or("-");
            return vec![Span::raw(left(database, column.width))];
        }
        What::Share => return share_bar(row, all, share, column.width),
        What::InClass(class) => plain(row.load_in(class)),
        What::OverTime => {
            let loads = over_time.values(|frame| frame.load_of(&row.key));
            return vec![Span::styled(sparkline(&loads), BAR)];
        }
    };
    let is_error = column.what == What::Errors && row.errors.get().is_some_and(|n| n > 0.0);
    vec![Span::styled(right(&text, column.width), if is_error { WARN } else { PLAIN })]
}

/// The share of a digest in the load of all, by class where that was measured.
fn share_bar(row: &Row, all: f64, share: Option<f64>, width: usize) -> Vec<Span<'static>> {
    let (width, percent) = (width - PERCENT_WIDTH, right(&percent(share), PERCENT_WIDTH));
    let (share, load) = (share.unwrap_or(0.0), row.load.get());
    let Some((by, load)) = row.load_by().zip(load) else {
        return vec![Span::styled(bar(share, width) + &percent, BAR)];
    };
    // What is told in percent has a column at least.
    let whole = if share >= 0.005 { all.min(load * width as f64) } else { all };
    let mut spans = classes::bar(&classes::parts(by, load), whole, width, None);
    spans.push(Span::raw(percent));
    spans
}
