//! The terminal itself: taken over, drawn on, and restored however waggle ends.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, panic};

use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::{cursor, execute, terminal};
use rustix::termios::{QueueSelector, tcflush};
use waggle_tui::{App, Look};

use super::tty::{self, Tty};

/// Whether the terminal is ours now; what gives it back does so once.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Whether the standard output is a terminal with a size on which a view can be drawn, and we are
/// in its foreground. From the background, taking it over would stop us (termios(3), SIGTTOU).
pub(crate) fn can_be_drawn_on() -> bool {
    let kind = env::var_os("TERM").unwrap_or_default();
    let is_dumb = kind.is_empty() || kind == OsStr::new("dumb");
    let group = rustix::termios::tcgetpgrp(io::stdout());
    let is_in_front = group.is_ok_and(|group| group == rustix::process::getpgrp());
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let has_size = size.is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0);
    io::stdout().is_terminal() && !is_dumb && is_in_front && has_size
}

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Tty>>>,
    look: Look,
}

impl Screen {
    /// Takes the terminal over. `is_to_end` tells later that nothing is worth waiting for any more.
    pub(super) fn enter(is_to_end: Arc<AtomicBool>) -> io::Result<Screen> {
        let mut out = BufWriter::new(Tty::new(tty::open()?, is_to_end));
        terminal::enable_raw_mode()?;
        IS_OURS.store(true, Ordering::SeqCst);
        give_back_on_panic();
        let entered = execute!(out, terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(out)));
        match entered {
            Ok(terminal) => Ok(Screen { terminal, look: look() }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Draws what has changed.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        if !IS_OURS.load(Ordering::SeqCst) {
            return Err(io::Error::other("the terminal was given back"));
        }
        let look = self.look;
        self.terminal.draw(|frame| {
            let area = frame.area();
            app.set_size(area.width, area.height);
            waggle_tui::draw(app, look, area, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Forgets what the terminal shows, so that everything is redrawn.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // Not `clear`, which asks the terminal where the cursor is and waits for the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// The width of the terminal.
    pub(super) fn columns(&self) -> u16 {
        self.terminal.size().map_or(80, |size| size.width)
    }

    /// Puts a text into the clipboard of the terminal (xterm's OSC 52). A terminal that does not
    /// know the sequence, or does not allow it, says nothing.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let copy = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
        execute!(self.terminal.backend_mut(), copy)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back. What cannot be written to a terminal that is gone need not be.
pub(super) fn leave() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    // The mode first: it needs no room in the queue of the terminal.
    let _ = terminal::disable_raw_mode();
    let mut words = Vec::new();
    let _ = execute!(words, terminal::LeaveAlternateScreen, cursor::Show);
    let Ok(mut tty) = tty::open() else { return };
    if tty.write_all(&words).is_err() {
        // The queue is full: what waits there is for a view that is no more.
        let _ = tcflush(&tty, QueueSelector::OFlush);
        let _ = tty.write_all(&words);
    }
}

/// A message of a panic belongs on the terminal as it was before.
fn give_back_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        leave();
        before(panic);
    }));
}

/// What the environment says of the terminal: `NO_COLOR` (<https://no-color.org>), and the character
/// set of the locale, where one is set (locale(7): `LC_ALL`, `LC_CTYPE`, `LANG`, the first that is).
pub(crate) fn look() -> Look {
    let is_set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(is_set);
    let unicode = locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    Look { colour: is_set("NO_COLOR").is_none(), unicode }
}
