//! Running sessions: blocked ones first, then the oldest.
//!
//! If the width is too small, columns are dropped in this order: host, database, user, state, id, waited, by.

use ratatui_core::text::{Line, Span};
use waggle_model::TimeClass;

use super::columns::{Column, fitting};
use super::look::{BAD, BOLD, DIM, PLAIN, TITLE, WARN, selected};
use super::number::{ABSENT, age};
use super::text::{fit, left, right};
use crate::state::{App, Frame, LastSeen, Pane, Session, Wait, Watched};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Wait,
    Waited,
    By,
    Id,
    Age,
    User,
    Host,
    Database,
    State,
}

const COLUMNS: [Column<What>; 9] = [
    Column::new("WAIT", 10, 0, What::Wait),
    Column::new("WAITED", 7, 2, What::Waited),
    Column::new("BY", 9, 1, What::By),
    Column::new("ID", 8, 3, What::Id),
    Column::new("AGE", 8, 0, What::Age),
    Column::new("USER", 12, 5, What::User),
    Column::new("HOST", 15, 7, What::Host),
    Column::new("DATABASE", 12, 6, What::Database),
    Column::new("STATE", 20, 4, What::State),
];

/// What stands for a holder whom nobody knows.
const UNKNOWN: &str = "?";

/// Title, heads and rows, `height` lines at most.
pub(crate) fn lines(
    app: &App,
    one: &Watched,
    frame: &Frame,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let text_min = (width * 3 / 10).max(20);
    let columns = fitting(&COLUMNS, width.saturating_sub(2), text_min, |_| false);
    let used: usize = columns.iter().map(|column| column.width + 1).sum();
    let is_in_front = app.pane == Pane::Sessions;
    let style = if is_in_front { TITLE } else { BOLD };
    let mut head = Line::raw("  ");
    for column in &columns {
        let title = match column.what {
            What::Waited | What::Id | What::Age => right(column.title, column.width),
            _ => left(column.title, column.width),
        };
        head.push_span(Span::styled(title + " ", DIM));
    }
    head.push_span(Span::styled("STATEMENT", DIM));
    let mut lines = vec![Line::styled(fit(&title(one, frame), width), style), head];
    let room = height.saturating_sub(lines.len());
    for at in super::window(one.session.at, one.sessions.len(), room) {
        let Some(session) = one.session_at(frame, at) else { break };
        let is_selected = is_in_front && at == one.session.at;
        let mut line = Line::raw(if is_selected { "> " } else { "  " });
        for column in &columns {
            line.push_span(cell(column, session, frame.has_failed(session)));
            line.push_span(Span::raw(" "));
        }
        line.push_span(Span::raw(fit(&session.text, width.saturating_sub(2 + used))));
        lines.push(if is_selected { selected(line) } else { line });
    }
    lines.truncate(height);
    lines
}

fn title(one: &Watched, frame: &Frame) -> String {
    let Some(running) = frame.overview.running else {
        return match frame.last_look {
            None => "RUNNING: not measured".to_owned(),
            Some(LastSeen { at_end: true, ran, .. }) => format!("RAN WHEN IT ENDED: {ran}"),
            Some(LastSeen { before_ns, ran, .. }) => format!(
                "RAN AT THE LAST LOOK, {} before the end: {ran}; what began later is not known",
                age(before_ns)
            ),
        };
    };
    let waiting = |which: &dyn Fn(Wait) -> bool| {
        frame.sessions.iter().filter(|session| which(session.wait)).count()
    };
    let blocked = waiting(&|wait| matches!(wait, Wait::Lock | Wait::Row));
    let others = match waiting(&|wait| wait == Wait::NoLock) {
        0 => String::new(),
        count => format!(", {count} for something else"),
    };
    let shown = one.sessions.len();
    let of = if shown == running { String::new() } else { format!("{shown} of ") };
    format!("RUNNING: {of}{running}, {blocked} waiting for a lock{others}")
}

fn cell(column: &Column<What>, session: &Session, has_failed: bool) -> Span<'static> {
    let width = column.width;
    match column.what {
        What::Wait => {
            let (word, style) = match session.now {
                _ if has_failed => ("FAILED", BAD),
                Some((class, _)) => (now(class), style_of(class)),
                None => wait(session.wait),
            };
            Span::styled(left(word, width), style)
        }
        What::Waited => Span::raw(right(&waited(session), width)),
        What::By => {
            let by = held_by(session);
            let style = if by == UNKNOWN { WARN } else { PLAIN };
            Span::styled(left(&by, width), style)
        }
        What::Id => Span::raw(right(&session.connection_id.to_string(), width)),
        What::Age => Span::raw(right(&session.age_ns.map_or(ABSENT.to_owned(), age), width)),
        What::User => Span::raw(left(&session.user, width)),
        What::Host => Span::raw(left(&session.host, width)),
        What::Database => Span::raw(left(&session.database, width)),
        What::State => Span::raw(left(&session.state, width)),
    }
}

/// What a session does, in a column.
fn now(class: TimeClass) -> &'static str {
    match class {
        TimeClass::MetadataLock => "metadata",
        TimeClass::NetworkRead => "net read",
        TimeClass::NetworkWrite => "net write",
        _ => class.name(),
    }
}

/// For how long it waits.
fn waited(session: &Session) -> String {
    match session.now {
        Some((TimeClass::Cpu, _)) => String::new(),
        Some((_, ns)) => age(ns),
        None if session.wait == Wait::None => String::new(),
        None => ABSENT.to_owned(),
    }
}

/// Who holds what it waits for: the first of them, and how many more there are.
fn held_by(session: &Session) -> String {
    let by = session.blocked.as_ref().map(|blocked| blocked.by.as_slice());
    match by {
        Some([id]) => id.to_string(),
        Some([id, more @ ..]) => format!("{id}+{}", more.len()),
        Some([]) => UNKNOWN.to_owned(),
        None if matches!(session.wait, Wait::None | Wait::NoLock) => String::new(),
        None => ABSENT.to_owned(),
    }
}

fn style_of(class: TimeClass) -> ratatui_core::style::Style {
    match class {
        TimeClass::Cpu => DIM,
        _ if class.is_lock() => BAD,
        _ => PLAIN,
    }
}

/// The word for what is known of a session's waiting.
pub(crate) fn wait(wait: Wait) -> (&'static str, ratatui_core::style::Style) {
    match wait {
        Wait::Lock => ("lock", BAD),
        Wait::Row => ("row?", WARN),
        Wait::NoLock => ("no lock", WARN),
        Wait::None => ("", PLAIN),
    }
}
