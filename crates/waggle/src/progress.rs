//! How far a command is.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;
use waggle_model::visible::on_a_line;

use crate::streams::{stderr, tell};

/// How often it is told where a line cannot be written over.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The line that says how far it is: one that is written over, or where that cannot be, one a minute.
pub(crate) struct Line {
    is_terminal: bool,
    told: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line { is_terminal: io::stderr().is_terminal(), told: None }
    }

    pub(crate) fn tell(&mut self, text: &str) {
        let is_due = self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY);
        if self.is_terminal {
            // A line that is too long for the terminal could not be written over.
            let width = tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
            let text: String = on_a_line(text).chars().take(width.saturating_sub(1)).collect();
            let mut out = stderr();
            let _ = out.styled("\r\x1b[K").and_then(|()| write!(out, "{text}"));
        } else if is_due {
            // A closed terminal must not end the command, because a server may have to be restored.
            tell!("{text}");
        }
        if is_due {
            self.told = Some(Instant::now());
        }
    }

    /// Leaves the line.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.told.is_some() {
            tell!("");
        }
    }
}
