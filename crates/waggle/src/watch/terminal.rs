//! The terminal view. It has its own thread that takes intervals and keys and draws, so that the
//! capture never waits for a slow terminal.

mod files;
mod inbox;
mod screen;
mod tty;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui_crossterm::crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use waggle_model::Record;
use waggle_observe::{News, RecordSink, Standing};
use waggle_tui::{Action, App, Key};

use super::snapshots::{Snapshots, view_options};
use inbox::{Inbox, Item};
use screen::Screen;
pub(crate) use screen::{can_be_drawn_on, look};

/// How often it is looked whether an interval has come while no key does.
const KEYS_AWAITED: Duration = Duration::from_millis(50);
/// How long the end of the view is waited for.
const END_AWAITED: Duration = Duration::from_secs(5);

/// The terminal view as it is seen from the capture.
pub(crate) struct Terminal {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Terminal {
    /// Takes the terminal over. `stop` is set when the user leaves. Prices are read from the directory `prices`.
    ///
    /// # Errors
    ///
    /// The terminal cannot be set to raw mode.
    pub(crate) fn open(
        stop: Arc<AtomicBool>,
        literals: bool,
        prices: Option<PathBuf>,
    ) -> io::Result<Terminal> {
        let inbox = Arc::new(Inbox::default());
        let screen = Screen::enter(inbox.closed())?;
        let of_view = inbox.clone();
        let options = view_options(literals);
        let view = move || {
            // However it ends, the capture ends with it.
            let _ended = SetAtEnd(stop);
            let snapshots = Snapshots::new(prices);
            View { app: App::new(options), screen, inbox: of_view, snapshots }.run()
        };
        let thread = thread::Builder::new().name("terminal".to_owned()).spawn(view)?;
        Ok(Terminal { inbox, thread: Some(thread) })
    }

    /// Gives the terminal back.
    ///
    /// # Errors
    ///
    /// The view ended by itself, because the terminal could not be read or written. `BrokenPipe`:
    /// it does not end, so that nothing should be said on the terminal any more.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.inbox.close();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let begin = Instant::now();
        while !thread.is_finished() {
            if begin.elapsed() > END_AWAITED {
                // The process ends now, and the thread with it.
                screen::leave();
                return Err(ErrorKind::BrokenPipe.into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the terminal view has failed")))
    }
}

impl RecordSink for Terminal {
    fn take(&mut self, records: &[Arc<Record>]) {
        self.inbox.put(records.to_vec());
    }

    fn news(&mut self, news: &News) {
        self.inbox.tell(&news.to_string());
    }

    fn tell(&mut self, words: &str) {
        self.inbox.tell(words);
    }

    fn standing(&mut self) -> Standing {
        // The user has left, or there is nobody to show anything to.
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        if has_ended { Standing::EndsAll } else { Standing::Takes }
    }
}

/// Sets a flag when it is dropped, also by a panic.
struct SetAtEnd(Arc<AtomicBool>);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The thread that owns the terminal.
struct View {
    app: App,
    screen: Screen,
    inbox: Arc<Inbox>,
    snapshots: Snapshots,
}

impl View {
    fn run(mut self) -> io::Result<()> {
        match self.follow() {
            // It was to end, and the terminal takes no output: what was to be drawn is old.
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(()),
            ended => ended,
        }
    }

    fn follow(&mut self) -> io::Result<()> {
        let mut is_stale = true;
        while !self.inbox.is_closed() {
            for item in self.inbox.take() {
                self.hand_over(item);
                is_stale = true;
            }
            if is_stale {
                self.screen.draw(&mut self.app)?;
            }
            is_stale = event::poll(KEYS_AWAITED)?;
            // Every key that waits, and one picture for all of them.
            while event::poll(Duration::ZERO)? {
                if self.on_event(event::read()?)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, item: Item) {
        match item {
            Item::Missed(missed) => self.app.miss(&missed),
            Item::News(news) => self.app.tell(news),
            Item::Records(records) => {
                for record in records {
                    self.app.take(self.snapshots.of(record));
                }
                self.app.end_of_interval();
            }
        }
    }

    /// Whether the user leaves.
    fn on_event(&mut self, event: Event) -> io::Result<bool> {
        let key = match event {
            Event::Key(key) => key_of(key),
            _ => None,
        };
        let action = key.map_or(Action::None, |key| self.app.on_key(key));
        match action {
            Action::None => {}
            Action::Quit => return Ok(true),
            Action::Redraw => self.screen.clear()?,
            Action::Copy(text) => {
                self.screen.copy(&text)?;
                let characters = text.chars().count();
                self.app.answer(format!("{characters} characters sent to the clipboard"));
            }
            Action::Write => {
                let picture = waggle_tui::picture(&self.app, self.screen.columns());
                let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H%M%S").to_string();
                match files::write_new(Path::new("."), &now, &picture) {
                    Ok(name) => self.app.answer(format!("written to {name}")),
                    Err(error) => self.app.answer(format!("not written: {error}")),
                }
            }
        }
        Ok(false)
    }
}

fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
