//! The digests, ranked.
//!
//! Where there is no room, columns go in this order: database, rows sent, p95, rows examined, share,
//! average, load over time, errors, p99, calls. The one that the rows are sorted by stays.

use ratatui_core::text::{Line, Span};

use super::bars::{bar, sparkline};
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
}

const fn column(title: &'static str, width: usize, goes: u8, what: What) -> Column<What> {
    Column { title, width, goes, what }
}

const COLUMNS: [Column<What>; 11] = [
    column("LOAD", 6, 0, What::Load),
    column("SHARE", 12, 6, What::Share),
    column("LOAD 3 MIN", 12, 4, What::OverTime),
    column("CALLS/S", 8, 1, What::Calls),
    column("AVG ms", 8, 5, What::Average),
    column("P95 ms", 8, 8, What::P95),
    column("P99 ms", 8, 2, What::P99),
    column("EXAM/CALL", 9, 7, What::Examined),
    column("SENT/CALL", 9, 9, What::Sent),
    column("ERR/S", 6, 3, What::Errors),
    column("DATABASE", 14, 10, What::Database),
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
        _ => None,
    }
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
    let columns = fitting(&COLUMNS, width.saturating_sub(MARK_WIDTH), text_min, |column| {
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
            line.push_span(cell(column, row, frame, all, &over_time));
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
        let title = text.trim_start();
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
) -> Span<'static> {
    let calls = row.calls as f64;
    let per_call = |sum: Option<f64>| plain(sum.filter(|_| calls > 0.0).map(|sum| sum / calls));
    let load = f64::from(row.load);
    let share = if all > 0.0 { load / all } else { 0.0 };
    let text = match column.what {
        What::Load => plain(Some(load)),
        What::Calls => plain(Some(frame.rate(calls))),
        What::Average => ms(row.avg_ns.get()),
        What::P95 => ms(row.p95_ns.get()),
        What::P99 => ms(row.p99_ns.get()),
        What::Examined => per_call(row.rows_examined.get()),
        What::Sent => per_call(row.rows_sent.get()),
        What::Errors => plain(row.errors.get().map(|n| frame.rate(n))),
        What::Database => {
            return Span::raw(left(row.name.schema.as_deref().unwrap_or("-"), column.width));
        }
        What::Share => {
            let shown = bar(share, column.width - PERCENT_WIDTH);
            return Span::styled(shown + &right(&percent(Some(share)), PERCENT_WIDTH), BAR);
        }
        What::OverTime => {
            let loads = over_time.values(|frame| frame.load_of(&row.key));
            return Span::styled(sparkline(&loads), BAR);
        }
    };
    let is_error = column.what == What::Errors && row.errors.get().is_some_and(|n| n > 0.0);
    Span::styled(right(&text, column.width), if is_error { WARN } else { PLAIN })
}
