//! The lines above the lists: the server, its state, and its load.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use waggle_model::Loss;

use super::bars::{bar_with_mark, sparkline};
use super::classes;
use super::host;
use super::look::{BAD, BAR, BOLD, DIM, PLAIN, SELECTED, TITLE, WARN};
use super::number::{age, count, ms, percent, plain};
use super::over_time::OverTime;
use super::text::{columns, fit};
use crate::state::{App, Frame, Watched};

/// The widest that the bar of the load becomes.
const BAR_WIDTH_MAX: usize = 48;
/// Shares of the load that are told.
const TOLD_FROM: f64 = 0.005;
/// Columns of the number of those that are not.
const MORE_WIDTH: usize = 5;
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

/// The names of all servers, where there are several, and the header of the one in front.
pub(crate) fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if app.servers.len() > 1 {
        lines.push(tabs(app, width));
    }
    lines.extend(of_server(app, width));
    lines
}

/// The header of the server in front.
pub(crate) fn of_server(app: &App, width: usize) -> Vec<Line<'static>> {
    let Some((server, frame)) = app.shown() else {
        return vec![Line::styled(fit("waiting for the first interval …", width), DIM)];
    };
    let mut lines = flow(who(server), width);
    if !frame.standstill.is_empty() {
        // What follows is as it was when it last ran.
        lines.push(Line::styled(fit(&frame.standstill, width), BAD));
    }
    lines.extend(flow(numbers(server, frame), width));
    if !frame.before.is_empty() {
        // What is never known of a server with a pool must not hide who waits.
        let style = |is_known| if is_known { WARN } else { DIM };
        let before = frame.before.iter().map(|one| (one.words.clone(), style(one.is_known)));
        lines.extend(flow(before.collect(), width));
    }
    lines.push(load(app, server, frame, width));
    lines.push(time(frame, width));
    lines.extend(flow(host::parts(app, frame), width));
    lines
}

/// Where the time of the load went, or why that is not known. Where not all classes fit, the smallest are counted.
fn time(frame: &Frame, width: usize) -> Line<'static> {
    const HEAD: &str = "time";
    const NOT_MEASURED: &str = "where the time goes is not measured";
    let Some(by) = frame.load_by() else {
        let why = match &*frame.spent_absent {
            "" => "of some statements it is not known",
            why => why,
        };
        return Line::styled(fit(&format!("{NOT_MEASURED}: {why}"), width), DIM);
    };
    let all = frame.overview.active.unwrap_or_else(|| by.sum());
    let mut parts = classes::parts(by, all);
    parts.retain(|part| part.amount > 0.0 && part.amount >= all * TOLD_FROM);
    let words =
        |part: &classes::Part| format!(" {} {}", part.name, percent(Some(part.amount / all)));
    let used = |parts: &[classes::Part]| {
        let texts = parts.iter().map(|part| 3 + columns(&words(part)));
        HEAD.len() + texts.sum::<usize>()
    };
    let mut left_out = 0;
    while used(&parts) + MORE_WIDTH > width {
        let smallest = (0..parts.len()).min_by(|one, other| {
            let amount = |at: &usize| parts.get(*at).map_or(0.0, |part| part.amount);
            amount(one).total_cmp(&amount(other))
        });
        let Some(smallest) = smallest else { break };
        parts.remove(smallest);
        left_out += 1;
    }
    let mut line = Line::raw(HEAD);
    for part in &parts {
        line.push_span(Span::raw("  "));
        line.push_span(Span::styled(part.letter.to_string(), part.style));
        line.push_span(Span::raw(words(part)));
    }
    if parts.is_empty() && left_out == 0 {
        line.push_span(Span::styled("  nothing ran", DIM));
    }
    if left_out > 0 {
        line.push_span(Span::styled(format!("  +{left_out}"), DIM));
    }
    line
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
    let stands_still = one.history.newest().is_some_and(|frame| !frame.standstill.is_empty());
    let state = match (one.ended, stands_still) {
        (true, _) => " ended",
        (false, true) => " STOPPED",
        (false, false) => "",
    };
    let name = format!("{number}{} {}{state}", one.server.flavour, one.server.pid);
    if at == app.selected { format!("[{name}]") } else { format!(" {name} ") }
}

fn ended(one: &Watched, time: &str) -> String {
    let signal = one.history.newest().and_then(|frame| frame.signal.as_ref());
    let by = signal.map_or(String::new(), |signal| format!(" by {signal}"));
    format!("ENDED at {time}{by}")
}

fn who(one: &Watched) -> Vec<(String, Style)> {
    let Watched { server, uptime, price, .. } = one;
    let time = one.shown().map_or("", |frame| &frame.time);
    let behind = one.behind_ns();
    let place = match (one.is_held(), one.ended) {
        (true, _) if behind > 0 => (format!("BACK {} at {time}", age(behind)), WARN),
        (true, _) => (format!("PAUSED at {time}"), WARN),
        (false, true) => (ended(one, time), BAD),
        (false, false) => (format!("live {time}"), BOLD),
    };
    let uptime = uptime.map_or("not measured".to_owned(), |up| age(up.as_nanos() as u64));
    let mut parts = vec![
        (format!("{} {}", server.flavour, server.version), TITLE),
        (format!("pid {}", server.pid), PLAIN),
        (format!("up {uptime}"), PLAIN),
        place,
        (format!("kept {}", age(one.history.reach_ns())), DIM),
    ];
    parts.extend(price.iter().map(|price| (price.clone(), DIM)));
    if one.missed > 0 {
        let many = if one.missed == 1 { "" } else { "s" };
        parts.push((format!("{} interval{many} not shown", one.missed), WARN));
    }
    parts
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
        (now, all) => (format!("LOST {now}, {all} since the start"), BAD),
    };
    let mut parts = vec![
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
    ];
    if overview.is_pooled {
        parts.insert(3, ("without the queue of the pool".to_owned(), WARN));
    }
    if one.lost.get(Loss::ReadWrongly) > 0 {
        parts.push(("READ WRONGLY: run waggle verify".to_owned(), BAD));
    }
    parts
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
    let is_too_much = cpus > 0 && active.is_some_and(|active| active > cpus as f64);
    let is_by_class = frame.load_by().is_some();
    let words_style = if is_by_class && is_too_much { BAD } else { PLAIN };
    let mut line = Line::from(Span::styled(fit(&words, width), words_style));
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
    let style = if is_too_much { BAD } else { BAR };
    line.push_span(Span::raw(" ["));
    match frame.load_by() {
        Some(by) => {
            let parts = classes::parts(by, active);
            line.spans.extend(classes::bar(&parts, whole, bar_width, Some(bar_width / 2)));
        }
        None => line.push_span(Span::styled(bar_with_mark(active / whole, 0.5, bar_width), style)),
    }
    line.push_span(Span::raw("]"));
    if shows_time {
        let loads = over_time.values(|frame| frame.overview.active);
        line.push_span(Span::styled(format!("  last {}: ", over_time.length()), DIM));
        line.push_span(Span::styled(sparkline(&loads), BAR));
    }
    line
}
