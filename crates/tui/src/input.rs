//! What a key does.

use waggle_model::visible::in_lines;

use crate::state::{App, Filter, Opened, Pane, Sort, Watched};
use crate::view;

/// Characters of a filter.
const FILTER_MAX: usize = 200;
/// Intervals that `{` and `}` go.
const LONG_STEP: isize = 60;

/// A key, whatever the terminal calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, also a blank.
    Char(char),
    /// A letter together with Ctrl.
    Ctrl(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tabulator.
    Tab,
    /// Shift and tabulator.
    BackTab,
    /// Backspace.
    Backspace,
}

/// What is to be done outside of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// To leave.
    Quit,
    /// To put this text into the clipboard.
    Copy(String),
    /// To write the view to a file.
    Write,
    /// To draw everything anew, since something else wrote to the terminal.
    Redraw,
}

impl App {
    /// Takes a key.
    pub fn on_key(&mut self, key: Key) -> Action {
        self.messages.dismiss();
        self.is_settled = true;
        match key {
            Key::Ctrl('c') => return Action::Quit,
            Key::Ctrl('l') => return Action::Redraw,
            _ => {}
        }
        if let Some(line) = self.typing.take() {
            self.typed(line, key);
            return Action::None;
        }
        if let Some(scrolled) = self.help.take() {
            match key {
                Key::Char('q') => return Action::Quit,
                key if is_move(key) => {
                    self.help = Some(self.scrolled_to(key, scrolled, view::help_scroll_max(self)));
                }
                _ => {}
            }
            return Action::None;
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('?') => self.help = Some(0),
            Key::Char('/') => self.typing = Some(self.filter.typed().to_owned()),
            Key::Char('c') => return self.copy(),
            Key::Char('w') => return Action::Write,
            Key::Tab => self.next_server(1),
            Key::BackTab => self.next_server(-1),
            Key::Char(digit @ '1'..='9') => self.select(digit as usize - '1' as usize),
            Key::Char('s' | '>') => self.resort(1),
            Key::Char('S' | '<') => self.resort(-1),
            Key::Char('r') => {
                self.pane = match self.pane {
                    Pane::Digests => Pane::Sessions,
                    Pane::Sessions => Pane::Digests,
                };
            }
            Key::Char(' ') => self.go(Watched::hold_or_follow),
            Key::Char('[') | Key::Left => self.go(|server| server.step(-1)),
            Key::Char(']') | Key::Right => self.go(|server| server.step(1)),
            Key::Char('{') => self.go(|server| server.step(-LONG_STEP)),
            Key::Char('}') => self.go(|server| server.step(LONG_STEP)),
            Key::Home if self.server().is_some_and(Watched::is_held) => self.go(Watched::follow),
            Key::Enter => self.open(),
            Key::Esc | Key::Backspace => self.close(),
            key => self.move_by(key),
        }
        Action::None
    }

    fn typed(&mut self, mut line: String, key: Key) {
        match key {
            Key::Enter => match Filter::parse(&line) {
                Ok(filter) => {
                    self.filter = filter;
                    self.list();
                    return;
                }
                Err(why) => self.answer(why),
            },
            Key::Esc => return,
            Key::Ctrl('u') => line.clear(),
            Key::Backspace => drop(line.pop()),
            Key::Char(c) if line.chars().count() < FILTER_MAX && !c.is_control() => line.push(c),
            _ => {}
        }
        self.typing = Some(line);
    }

    fn next_server(&mut self, by: isize) {
        let servers = self.servers.len() as isize;
        if servers > 0 {
            self.select((self.selected as isize + by).rem_euclid(servers) as usize);
        }
    }

    fn resort(&mut self, by: isize) {
        let orders = self.shown().map_or(Sort::ALWAYS.to_vec(), |(_, frame)| frame.orders());
        self.sort = self.sort.moved(by, &orders);
        self.list();
    }

    /// Changes which interval is looked at.
    fn go(&mut self, change: impl FnOnce(&mut Watched)) {
        if let Some(server) = self.server_mut() {
            change(server);
        }
        self.list();
    }

    fn open(&mut self) {
        let pane = self.pane;
        let Some(server) = self.server_mut().filter(|server| server.opened.is_none()) else {
            return;
        };
        let Some(frame) = server.shown() else { return };
        let opened = match pane {
            Pane::Digests => server.row(frame, server.digest.at).map(|row| Opened::Digest(row.key)),
            Pane::Sessions => server
                .session_at(frame, server.session.at)
                .map(|session| Opened::Session(Box::new(session.clone()), frame.end_ns)),
        };
        server.opened = opened;
        server.scrolled = 0;
    }

    /// Back: what is open first, then the filter.
    fn close(&mut self) {
        let Some(server) = self.server_mut() else { return };
        if server.opened.take().is_none() {
            self.filter = Filter::default();
            self.list();
        }
    }

    /// The line to which a key leads from the line `at`; `last` is the last one.
    fn scrolled_to(&self, key: Key, at: usize, last: usize) -> usize {
        let page = usize::from(self.size.1 / 2).max(1);
        let to = match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => at + 1,
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at + page,
            Key::Home => 0,
            Key::End => last,
            _ => at,
        };
        to.min(last)
    }

    fn move_by(&mut self, key: Key) {
        let Some(server) = self.server().filter(|_| is_move(key)) else { return };
        let pane = self.pane;
        let (at, last) = match (&server.opened, pane) {
            (Some(_), _) => (server.scrolled, view::scroll_max(self)),
            (None, Pane::Digests) => (server.digest.at, server.listed.len().saturating_sub(1)),
            (None, Pane::Sessions) => (server.session.at, server.sessions.len().saturating_sub(1)),
        };
        let to = self.scrolled_to(key, at.min(last), last);
        let Some(server) = self.server_mut() else { return };
        match (&server.opened, pane) {
            (Some(_), _) => server.scrolled = to,
            (None, Pane::Digests) => server.select_digest(to),
            (None, Pane::Sessions) => server.select_session(to),
        }
    }

    fn copy(&mut self) -> Action {
        let text = self.server().and_then(|server| {
            let frame = server.shown()?;
            let digest = |key| {
                let row = frame.row(key).map(|row| row.name.clone());
                row.or_else(|| server.history.name(key)).map(|name| name.text.to_string())
            };
            match (&server.opened, self.pane) {
                (Some(Opened::Digest(key)), _) => digest(key),
                (Some(Opened::Session(session, _)), _) => Some(session.text.to_string()),
                (None, Pane::Digests) => digest(&server.row(frame, server.digest.at)?.key),
                (None, Pane::Sessions) => {
                    Some(server.session_at(frame, server.session.at)?.text.to_string())
                }
            }
        });
        match text {
            // It may be pasted into another terminal.
            Some(text) => Action::Copy(in_lines(&text).into_owned()),
            None => {
                self.answer("nothing is selected that could be copied");
                Action::None
            }
        }
    }
}

fn is_move(key: Key) -> bool {
    use Key::{Char, Down, End, Home, PageDown, PageUp, Up};
    matches!(key, Up | Down | PageUp | PageDown | Home | End | Char('j' | 'k'))
}

#[cfg(test)]
mod tests;
