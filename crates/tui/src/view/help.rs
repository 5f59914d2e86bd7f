//! The page of keys.

use ratatui_core::text::{Line, Span};
use waggle_model::TimeClass;

use super::classes;
use super::look::{BOLD, DIM, TITLE};
use super::text::{fit, left, wrapped};

const KEYS: [(&str, &str); 18] = [
    ("arrows, j k", "move; in what is open: scroll"),
    ("PgUp PgDn", "half a screen"),
    ("Home End", "first and last; Home comes back to live first"),
    ("Enter", "open the digest or the session"),
    ("Esc", "back; in the lists: take the filter away"),
    ("r", "go to the running sessions, and back to the digests"),
    (
        "s S, > <",
        "rank by load, calls, p95, p99, rows examined, errors, and each class of time that there is",
    ),
    ("/", "filter"),
    ("space", "pause, and follow again; capturing goes on"),
    ("[ ], left right", "an interval back or forth"),
    ("{ }", "60 intervals back or forth"),
    ("Tab, 1-9", "another server"),
    ("c", "copy the digest or the statement (OSC 52; the terminal must allow it)"),
    ("w", "write this view to a file in the current directory"),
    ("Ctrl-L", "draw everything anew"),
    ("?", "this page"),
    ("q, Ctrl-C", "leave"),
    ("", ""),
];

const FILTER: &str = "Filter: terms between blanks must all hold. A term is a part of the text; \
    db:NAME, user:NAME and kind:NAME look there (kind: select, insert, update, delete, replace, \
    write, call, set, show, begin, commit, rollback, ddl, users, prepare, load, other). re:PATTERN, \
    also db:re:PATTERN, is a regular expression. \"…\" keeps blanks together. Case does not count.";

const WORDS: &str = "LOAD is the average number of active sessions. `-` is not measured, never 0. A \
    blank in a sparkline is not known. WAIT is what a session does now, WAITED for how long, and BY \
    the session that holds the lock (11+2: two more hold it, too; ?: unknown, and Enter says why; -: \
    not read yet). With --no-waits: lock, the server says that the session waits for one; row?, it \
    probably waits for a row lock.";

/// What the letters in the bars mean.
fn letters() -> String {
    let of = |class: TimeClass| format!("{} {}", classes::letter(class), class.name());
    let all = TimeClass::ALL.map(of).join(", ");
    format!(
        "Letters in the bars say where the time went: {all}, {} {} (it still runs).",
        classes::NOT_TOLD,
        classes::NOT_TOLD_NAME
    )
}

/// The page.
pub(crate) fn lines(width: usize) -> Vec<Line<'static>> {
    let mut lines =
        vec![Line::styled(fit("KEYS   arrows scroll, any other key goes back", width), TITLE)];
    let key_width = 17.min(width / 2);
    for (key, what) in KEYS {
        for (at, text) in wrapped(what, width.saturating_sub(key_width)).into_iter().enumerate() {
            let key = left(if at == 0 { key } else { "" }, key_width);
            lines.push(Line::from(vec![Span::styled(key, BOLD), Span::raw(text)]));
        }
    }
    for text in [FILTER.to_owned(), WORDS.to_owned(), letters()] {
        lines.extend(wrapped(&text, width).into_iter().map(Line::raw));
        lines.push(Line::default());
    }
    lines.push(Line::styled("Guide: docs/guide/watch.md", DIM));
    lines
}
