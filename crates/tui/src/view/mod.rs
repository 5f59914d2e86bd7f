//! Drawing: a pure function of state and area. The area limits what is drawn, however long the
//! lists are.

mod bars;
mod classes;
mod columns;
mod digests;
mod footer;
mod header;
mod help;
mod host;
mod look;
mod number;
mod opened;
mod over_time;
mod sessions;
mod sql;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Range;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Line;

use crate::state::{App, Pane};
pub use look::Look;

/// From this many lines on, both lists are shown.
const BOTH_LISTS_FROM: usize = 14;
/// Rows of a picture in text form.
const PICTURE_ROWS_MAX: usize = 1_000;
/// Title and heads of a list.
const HEADS: usize = 2;
/// Running sessions in a table.
const SESSIONS_OF_TABLE: usize = 10;
/// Below this, nothing can be read anyway.
const WIDTH_MIN: usize = 12;

/// Draws the view into `area`.
pub fn draw(app: &App, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width < WIDTH_MIN || height == 0 {
        return;
    }
    for (y, line) in (area.top()..area.bottom()).zip(screen(app, width, height)) {
        buffer.set_line(area.left(), y, &line, area.width);
    }
    look.apply(buffer);
}

/// The whole view as text without colours, with every row of its lists (1,000 at most).
pub fn picture(app: &App, columns: u16) -> String {
    let width = usize::from(columns).max(WIDTH_MIN);
    let mut lines = header::lines(app, width);
    lines.extend(body(app, width, PICTURE_ROWS_MAX, PICTURE_ROWS_MAX));
    lines.push(footer::line(app, width));
    lines.iter().map(plain_text).collect()
}

/// The newest interval of one server as text: numbers, at most `digests` of its digests, the first
/// of its running sessions, and what watching costs. Puts the server in front.
pub fn table(app: &mut App, pid: u32, look: Look, columns: u16, digests: usize) -> String {
    let width = usize::from(columns).max(WIDTH_MIN);
    if let Some(at) = app.servers.iter().rposition(|one| one.server.pid == pid) {
        app.select(at);
    }
    let mut lines = header::of_server(app, width);
    if let Some((one, frame)) = app.shown() {
        lines.extend(digests::lines(app, one, frame, width, digests.saturating_add(HEADS)));
        lines.extend(sessions::lines(app, one, frame, width, SESSIONS_OF_TABLE + HEADS));
        lines.push(Line::raw(text::fit(&footer::costs(frame).0, width)));
    }
    // There is no row to be selected.
    let plain = |line: String| line.strip_prefix("> ").map_or(line.clone(), |it| format!("  {it}"));
    lines.iter().map(plain_text).map(|line| look.text(plain(line))).collect()
}

fn plain_text(line: &Line<'_>) -> String {
    let line: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    line.trim_end().to_owned() + "\n"
}

/// Exactly `height` lines.
fn screen(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let footer: Vec<Line<'static>> =
        footer::message(app, width).into_iter().chain([footer::line(app, width)]).collect();
    let room = height.saturating_sub(footer.len());
    let mut lines = if app.help.is_some() { Vec::new() } else { header::lines(app, width) };
    // On a very low screen the lists matter more than all of the header.
    lines.truncate(room.saturating_sub(3).max(1));
    let room = room.saturating_sub(lines.len());
    lines.extend(front(app, width, room));
    lines.resize(height.saturating_sub(footer.len()), Line::default());
    lines.extend(footer);
    lines
}

/// What is between header and footer.
fn front(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    if let Some(above) = app.help {
        return help::lines(width).into_iter().skip(above).take(height).collect();
    }
    let lines = body(app, width, height, height);
    let scrolled = app.server().filter(|server| server.opened.is_some());
    let above =
        scrolled.map_or(0, |server| server.scrolled.min(lines.len().saturating_sub(height)));
    lines.into_iter().skip(above).take(height).collect()
}

/// What is open, or the lists.
fn body(app: &App, width: usize, height: usize, rows_max: usize) -> Vec<Line<'static>> {
    let Some((one, frame)) = app.shown() else { return Vec::new() };
    if let Some(opened) = &one.opened {
        return opened::lines(app, one, frame, opened, width);
    }
    let (digests, sessions) = (one.listed.len() + 2, one.sessions.len() + 2);
    if height < BOTH_LISTS_FROM {
        return match app.pane {
            Pane::Digests => self::digests::lines(app, one, frame, width, height),
            Pane::Sessions => self::sessions::lines(app, one, frame, width, height),
        };
    }
    // The list that the keys move in gets two thirds where both need more than there is.
    let (third, both) = (height / 3, height.saturating_sub(1));
    let sessions_height = match app.pane {
        Pane::Digests => sessions.min(third.max(both.saturating_sub(digests))),
        Pane::Sessions => sessions.min((both - third).max(both.saturating_sub(digests))),
    };
    let digests_height = (both - sessions_height).min(digests.max(3)).min(rows_max);
    let mut lines = self::digests::lines(app, one, frame, width, digests_height);
    lines.push(Line::default());
    lines.extend(self::sessions::lines(app, one, frame, width, sessions_height));
    lines
}

/// Lines that can be above the screen in what is open.
pub(crate) fn scroll_max(app: &App) -> usize {
    let (width, height) = (usize::from(app.size.0), usize::from(app.size.1));
    let Some((one, frame)) = app.shown() else { return 0 };
    let Some(opened) = &one.opened else { return 0 };
    let all = opened::lines(app, one, frame, opened, width).len();
    let beside = header::lines(app, width).len() + 1;
    all.saturating_sub(height.saturating_sub(beside))
}

/// The same for the page of keys.
pub(crate) fn help_scroll_max(app: &App) -> usize {
    let (width, height) = (usize::from(app.size.0), usize::from(app.size.1));
    help::lines(width).len().saturating_sub(height.saturating_sub(1))
}

/// The lines of a list that are in sight: the selected one in the middle where that is possible.
fn window(selected: usize, all: usize, height: usize) -> Range<usize> {
    let first = selected.saturating_sub(height / 2).min(all.saturating_sub(height));
    first..(first + height).min(all)
}
