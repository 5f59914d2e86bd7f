//! The lines above the lists: which server, how it is, and how loaded.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::bars::{bar_with_mark, sparkline};
use super::look::{BAD, BAR, BOLD, DIM, PLAIN, SELECTED, TITLE, WARN};
use super::number::{age, count, ms, plain};
use super::over_time::OverTime;
use super::text::{columns, fit};
use crate::state::{App, Frame, Watched};

/// The widest that the bar of the load becomes.
const BAR_WIDTH_MAX: usize = 48;
/// Columns of the load over time.
const OVER_TIME_WIDTH: usize = 36;

/// Parts of a line with two blanks between; a part that does not fit begins the next line.
pub(crate) fn flow(parts: Vec<(String, Style)>, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = vec![Line::default()];
    let mut used = 0;
    for (text, style) in parts {
        let text = fit(&text, width);
        let needed = columns(&text);
        if used > 0 && used + 2 + needed > width {
            lines.push(Line::default());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { continue };
        if used > 0 {
            line.push_span(Span::raw("  "));
            used += 2;
        }
        used += needed;
        line.push_span(Span::styled(text, style));
    }
    lines
}

/// The header of the server in front.
pub(crate) fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if app.servers.len() > 1 {
        lines.push(tabs(app, width));
    }
    let Some((server, frame)) = app.server().and_then(|it| Some((it, it.shown()?))) else {
        lines.push(Line::styled(fit("waiting for the first interval …", width), DIM));
        return lines;
    };
    lines.extend(flow(who(server), width));
    lines.extend(flow(numbers(server, frame), width));
    lines.push(load(app, server, frame, width));
    lines
}

/// One word per server; the one in front is in brackets. Where not all fit, those around it, and
/// `<` or `>` where there are more.
fn tabs(app: &App, width: usize) -> Line<'static> {
    let words: Vec<String> =
        app.servers.iter().enumerate().map(|(at, one)| tab(app, at, one)).collect();
    let room = width.saturating_sub(4);
    let (mut first, mut last) = (app.selected, app.selected);
    let mut used = words.get(app.selected).map_or(0, |word| columns(word));
    loop {
        let before = first.checked_sub(1).and_then(|at| Some((at, words.get(at)?)));
        let behind = words.get(last + 1);
        let fits = |word: &String| used + columns(word) <= room;
        if let Some((at, word)) = before.filter(|(_, word)| fits(word)) {
            (first, used) = (at, used + columns(word));
        } else if let Some(word) = behind.filter(|word| fits(word)) {
            (last, used) = (last + 1, used + columns(word));
        } else {
            break;
        }
    }
    let mut line = Line::raw(if first > 0 { "< " } else { "" });
    for (at, word) in words.iter().enumerate().take(last + 1).skip(first) {
        let style = if at == app.selected { SELECTED } else { PLAIN };
        line.push_span(Span::styled(fit(word, room), style));
    }
    line.push_span(Span::raw(if last + 1 < words.len() { " >" } else { "" }));
    line
}

fn tab(app: &App, at: usize, one: &Watched) -> String {
    let number = if at < 9 { format!("{} ", at + 1) } else { String::new() };
    let ended = if one.ended { " ended" } else { "" };
    let name = format!("{number}{} {}{ended}", one.server.flavour, one.server.pid);
    if at == app.selected { format!("[{name}]") } else { format!(" {name} ") }
}

fn who(one: &Watched) -> Vec<(String, Style)> {
    let Watched { server, uptime, .. } = one;
    let time = one.shown().map_or("", |frame| &frame.time);
    let behind = one.behind_ns();
    let place = match (one.is_held(), one.ended) {
        (true, _) if behind > 0 => (format!("BACK {} at {time}", age(behind)), WARN),
        (true, _) => (format!("PAUSED at {time}"), WARN),
        (false, true) => (format!("ENDED at {time}"), BAD),
        (false, false) => (format!("live {time}"), BOLD),
    };
    let uptime = uptime.map_or("not measured".to_owned(), |up| age(up.as_nanos() as u64));
    vec![
        (format!("{} {}", server.flavour, server.version), TITLE),
        (format!("pid {}", server.pid), PLAIN),
        (format!("up {uptime}"), PLAIN),
        place,
        (format!("kept {}", age(one.history.reach_ns())), DIM),
    ]
}

fn numbers(one: &Watched, frame: &Frame) -> Vec<(String, Style)> {
    let overview = &frame.overview;
    let errors = overview.errors.map(|n| frame.rate(n as f64));
    let errors_style = if errors.is_some_and(|rate| rate > 0.0) { WARN } else { PLAIN };
    let quantile = |ns: Option<u64>| ms(ns.map(|ns| ns as f64));
    let running = overview.running.map(|n| n as f64);
    let (lost, lost_before) = (overview.losses.statements(), one.lost.statements());
    let lost = match (lost, lost_before) {
        (0, 0) => ("lost 0".to_owned(), PLAIN),
        (now, all) => (format!("LOST {now} of {all} in all"), BAD),
    };
    vec![
        (format!("{} statements/s", plain(Some(frame.rate(overview.statements as f64)))), BOLD),
        (format!("errors {}/s", plain(errors)), errors_style),
        (
            format!(
                "p50 {} p95 {} p99 {} ms",
                quantile(overview.p50_ns),
                quantile(overview.p95_ns),
                quantile(overview.p99_ns)
            ),
            PLAIN,
        ),
        (format!("running {}", count(running)), PLAIN),
        lost,
    ]
}

/// Active sessions against the processors, as a bar whose mark is at the number of processors.
fn load(app: &App, one: &Watched, frame: &Frame, width: usize) -> Line<'static> {
    let active = frame.overview.active;
    let cpus = app.options.cpus;
    let words = match (active, cpus) {
        (None, _) => "active not measured".to_owned(),
        (active, 0) => format!("active {}", plain(active)),
        (active, cpus) => format!("active {} of {cpus} CPUs", plain(active)),
    };
    let mut line = Line::raw(fit(&words, width));
    let Some(active) = active.filter(|_| cpus > 0) else { return line };
    let room = width.saturating_sub(columns(&words) + 3);
    let over_time = OverTime::of(one, frame, OVER_TIME_WIDTH);
    let shows_time = room >= BAR_WIDTH_MAX + OVER_TIME_WIDTH + 16;
    let bar_width = room.min(BAR_WIDTH_MAX);
    if bar_width < 6 {
        return line;
    }
    // Twice the processors fill the bar: what is beyond them is seen growing.
    let whole = cpus as f64 * 2.0;
    let style = if active > cpus as f64 { BAD } else { BAR };
    line.push_span(Span::raw(" ["));
    line.push_span(Span::styled(bar_with_mark(active / whole, 0.5, bar_width), style));
    line.push_span(Span::raw("]"));
    if shows_time {
        let loads = over_time.values(|frame| frame.overview.active);
        line.push_span(Span::styled(format!("  last {}: ", over_time.length()), DIM));
        line.push_span(Span::styled(sparkline(&loads), BAR));
    }
    line
}
