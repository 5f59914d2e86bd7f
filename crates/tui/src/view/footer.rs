//! The last line: the cost of watching, and the keys. The line above it shows messages, or the
//! filter while you type it.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::look::{BAD, BOLD, DIM, PLAIN, SELECTED};
use super::number::{ABSENT, plain};
use super::text::{columns, fit};
use crate::state::{App, Frame};

const KEYS: [&str; 4] = [
    "? help  / filter  s sort  r running  Enter open  q quit",
    "? help  / filter  q quit",
    "? help",
    "?",
];

/// The line above the last one, where there is something to tell.
pub(crate) fn message(app: &App, width: usize) -> Option<Line<'static>> {
    if let Some(typed) = &app.typing {
        let mut line = Line::styled("filter: ", BOLD);
        let room = width.saturating_sub(9);
        // The end of a long line is where one types.
        let skipped = typed.chars().count().saturating_sub(room);
        line.push_span(Span::raw(fit(&typed.chars().skip(skipped).collect::<String>(), room)));
        line.push_span(Span::styled(" ", SELECTED));
        if let Some((why, _)) = app.messages.shown() {
            let used = line.width() + 2;
            let room = width.saturating_sub(used);
            line.push_span(Span::styled(format!("  {}", fit(why, room)), BAD));
        }
        return Some(line);
    }
    let (message, more) = app.messages.shown()?;
    let Some(more) = more else { return Some(Line::styled(fit(message, width), BOLD)) };
    let room = width.saturating_sub(columns(&more) + 1);
    let mut line = Line::styled(fit(message, room), BOLD);
    line.push_span(Span::raw(format!(" {more}")));
    Some(line)
}

/// The last line.
pub(crate) fn line(app: &App, width: usize) -> Line<'static> {
    let Some(frame) = app.server().and_then(|server| server.shown()) else {
        return Line::styled(fit(KEYS[1], width), DIM);
    };
    let (long, short) = costs(frame);
    let lost = app.server().map_or(0, |server| server.lost.statements());
    let style = if lost > 0 { BAD } else { PLAIN };
    let lost = if lost > 0 { format!("LOST {lost}") } else { "lost 0".to_owned() };
    for (cost, keys) in [(&long, 0), (&long, 1), (&short, 1), (&short, 2), (&short, 3)] {
        let used = columns(cost) + 2 + columns(&lost) + 2 + columns(KEYS[keys]);
        if used <= width {
            return assembled(cost, &lost, style, KEYS[keys], width);
        }
    }
    Line::from(vec![Span::styled(fit(&format!("{lost}  ?"), width), style)])
}

fn assembled(cost: &str, lost: &str, style: Style, keys: &str, width: usize) -> Line<'static> {
    let used = columns(cost) + 2 + columns(lost) + columns(keys);
    Line::from(vec![
        Span::styled(format!("{cost}  "), DIM),
        Span::styled(lost.to_owned(), style),
        Span::raw(" ".repeat(width.saturating_sub(used))),
        Span::styled(keys.to_owned(), DIM),
    ])
}

/// What watching costs, in words and without them.
pub(crate) fn costs(frame: &Frame) -> (String, String) {
    let cost = &frame.cost;
    let ns = cost.bpf_ns_per_statement.map_or(ABSENT.to_owned(), |ns| format!("{ns:.0}"));
    let cores = cost.agent_cores.map_or(ABSENT.to_owned(), |cores| format!("{cores:.3}"));
    let mib = plain(cost.rss_bytes.map(|bytes| bytes as f64 / 1_048_576.0));
    let Some(switches) = cost.switches_cores else {
        return (
            format!("cost {ns} ns per statement in the kernel, {cores} cores, {mib} MiB"),
            format!("{ns} ns {cores} cores {mib} MiB"),
        );
    };
    (
        format!(
            "cost {ns} ns per statement and {switches:.3} cores in the kernel, {cores} cores, {mib} MiB"
        ),
        format!("{ns} ns {switches:.3}+{cores} cores {mib} MiB"),
    )
}
