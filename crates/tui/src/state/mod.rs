//! What the view knows. Nothing here knows of colours, of a terminal or of a clock.

mod blocked;
mod filter;
mod frame;
mod history;
mod latencies;
mod measured;
mod ranking;
mod session;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;
mod watched;

pub(crate) use blocked::Wait;
pub(crate) use filter::{Filter, kind_name};
pub(crate) use frame::{Frame, Row};
pub(crate) use latencies::{Latencies, STEPS, lower_ns};
pub(crate) use measured::Measured;
pub(crate) use ranking::Sort;
pub(crate) use session::{Session, modes, printable};
pub use snapshot::Snapshot;
pub(crate) use watched::{Opened, Watched};

/// Servers that have ended and can still be looked at.
const ENDED_MAX: usize = 4;

/// What the history of all servers together may take, so that many servers share it.
const BUDGET_OF_ALL: usize = 64 << 20;
/// Intervals for which a sentence stays.
const MESSAGE_INTERVALS: u32 = 10;

/// What is known from the start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Processors of the host, to which the load is compared; 0 where their number is not known.
    pub cpus: usize,
    /// Literals of statements are shown, too. Secrets never are.
    pub literals: bool,
}

/// Which of the two lists the keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Digests,
    Sessions,
}

/// The whole state of the view.
#[derive(Debug)]
pub struct App {
    pub(crate) options: Options,
    /// In the order in which they came.
    pub(crate) servers: Vec<Watched>,
    pub(crate) selected: usize,
    pub(crate) pane: Pane,
    pub(crate) sort: Sort,
    pub(crate) filter: Filter,
    /// The line of the filter while it is typed.
    pub(crate) typing: Option<String>,
    /// The page of keys is in front, and so many lines of it are above the screen.
    pub(crate) help: Option<usize>,
    /// What there is to tell, until the next key or for some intervals.
    pub(crate) message: Option<String>,
    intervals_left: u32,
    /// Columns and lines of the screen: how far a page goes.
    pub(crate) size: (u16, u16),
    budget: usize,
}

impl App {
    /// Nothing is known yet.
    pub fn new(options: Options) -> App {
        App {
            options,
            servers: Vec::new(),
            selected: 0,
            pane: Pane::default(),
            sort: Sort::default(),
            filter: Filter::default(),
            typing: None,
            help: None,
            message: None,
            intervals_left: 0,
            size: (80, 24),
            budget: history::BUDGET_BYTES,
        }
    }

    /// Takes an interval that has ended.
    pub fn take(&mut self, snapshot: Snapshot) {
        let is_it = |one: &Watched| {
            one.server.pid == snapshot.server.pid
                && one.server.start_ticks == snapshot.server.start_ticks
        };
        let at = self.servers.iter().position(is_it).unwrap_or_else(|| {
            self.servers.push(Watched::new(snapshot.server.clone()));
            self.servers.len() - 1
        });
        let ended = snapshot.ended;
        let budget = self.budget.min(BUDGET_OF_ALL / self.servers.len().max(1));
        if let Some(server) = self.servers.get_mut(at) {
            server.take(snapshot, self.options.literals, budget);
        }
        if at == self.selected {
            self.list();
            self.intervals_left = self.intervals_left.saturating_sub(1);
            if self.intervals_left == 0 {
                self.message = None;
            }
        }
        if ended {
            self.forget_ended();
        }
    }

    /// Forgets the servers that ended first, where there are too many of them; never the one that
    /// is being looked at.
    fn forget_ended(&mut self) {
        let ended = || self.servers.iter().enumerate().filter(|(_, one)| one.ended);
        if ended().count() <= ENDED_MAX {
            return;
        }
        let oldest = ended().map(|(at, _)| at).find(|at| *at != self.selected);
        if let Some(at) = oldest {
            self.servers.remove(at);
            self.selected -= usize::from(at < self.selected);
        }
    }

    /// Shows a sentence until the next key, or for ten intervals.
    pub fn tell(&mut self, message: impl Into<String>) {
        self.intervals_left = MESSAGE_INTERVALS;
        self.message = Some(message.into());
    }

    /// The screen has so many columns and lines now.
    pub fn set_size(&mut self, columns: u16, lines: u16) {
        self.size = (columns, lines);
    }

    /// The server in front.
    pub(crate) fn server(&self) -> Option<&Watched> {
        self.servers.get(self.selected)
    }

    pub(crate) fn server_mut(&mut self) -> Option<&mut Watched> {
        self.servers.get_mut(self.selected)
    }

    /// Makes the lists of the server in front anew.
    pub(crate) fn list(&mut self) {
        if let Some(server) = self.servers.get_mut(self.selected) {
            server.list(self.sort, &self.filter);
        }
    }

    /// Puts another server in front.
    pub(crate) fn select(&mut self, at: usize) {
        if at < self.servers.len() {
            self.selected = at;
            self.list();
        }
    }

    #[cfg(test)]
    pub(crate) fn with_budget(mut self, bytes: usize) -> App {
        self.budget = bytes;
        self
    }
}
