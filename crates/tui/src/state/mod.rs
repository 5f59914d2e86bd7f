//! The data of the view. It knows no colours, no terminal and no clock.

mod blocked;
mod filter;
mod frame;
mod history;
mod latencies;
mod measured;
mod messages;
mod ranking;
mod session;
mod snapshot;
mod spent;
#[cfg(test)]
pub(crate) mod tests;
mod waits_now;
mod watched;

use waggle_model::Server;

pub(crate) use blocked::Wait;
pub(crate) use filter::{Filter, kind_name};
pub(crate) use frame::{Frame, LastSeen, Row};
pub(crate) use latencies::{Latencies, STEPS, lower_ns};
pub(crate) use measured::Measured;
pub(crate) use messages::Messages;
pub(crate) use ranking::Sort;
pub(crate) use session::{Session, modes, printable};
pub use snapshot::{Missed, Snapshot};
pub(crate) use spent::ByClass;
pub(crate) use waits_now::WaitsNow;
pub(crate) use watched::{Opened, Watched};

/// Servers that have ended and can still be looked at.
const ENDED_MAX: usize = 4;

/// What the history of all servers together may take, so that many servers share it.
const BUDGET_OF_ALL: usize = 64 << 20;

/// What is known from the start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Processors of the host, to which the load is compared; 0 if their number is not known.
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
    /// The page of keys is in front, scrolled down by this many lines.
    pub(crate) help: Option<usize>,
    /// What there is to tell.
    pub(crate) messages: Messages,
    /// A server was put in front, by its load or by the user.
    pub(crate) is_settled: bool,
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
            messages: Messages::default(),
            is_settled: false,
            size: (80, 24),
            budget: history::BUDGET_BYTES,
        }
    }

    /// Takes an interval that has ended.
    pub fn take(&mut self, snapshot: Snapshot) {
        let at = self.place_of(&snapshot.record.server);
        let ended = snapshot.record.ended.is_some();
        let budget = self.budget.min(BUDGET_OF_ALL / self.servers.len().max(1));
        if let Some(server) = self.servers.get_mut(at) {
            server.take(snapshot, self.options.literals, budget);
        }
        if at == self.selected {
            self.list();
        }
        if ended {
            self.forget_ended();
        }
    }

    /// Counts intervals that are not taken. What was lost in them counts as everywhere.
    pub fn miss(&mut self, missed: &Missed) {
        let at = self.place_of(&missed.server);
        if let Some(server) = self.servers.get_mut(at) {
            server.missed += missed.intervals;
            server.lost = server.lost.plus(&missed.losses);
            server.ended = missed.ended;
        }
        if missed.ended {
            self.forget_ended();
        }
    }

    /// All intervals that ended at the same time were taken.
    pub fn end_of_interval(&mut self) {
        self.messages.end_of_interval();
        self.open_on_busiest();
    }

    /// The place of one life of a server, which is new where it was not seen before.
    fn place_of(&mut self, server: &Server) -> usize {
        let is_it = |one: &Watched| {
            one.server.pid == server.pid && one.server.start_ticks == server.start_ticks
        };
        self.servers.iter().position(is_it).unwrap_or_else(|| {
            self.servers.push(Watched::new(server.clone()));
            self.servers.len() - 1
        })
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

    /// Puts the server with the highest load in front: once, at the first intervals in which any
    /// has some, and never after a key.
    fn open_on_busiest(&mut self) {
        let load = |one: &Watched| one.shown().and_then(|frame| frame.overview.active);
        let loads = self.servers.iter().map(|one| load(one).unwrap_or(0.0)).enumerate();
        // Of two that are alike, the first.
        let busiest = loads.rev().max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((at, load)) = busiest
            && !self.is_settled
            && load > 0.0
        {
            self.is_settled = true;
            self.select(at);
        }
    }

    /// Shows a sentence when those before it have been shown.
    pub fn tell(&mut self, message: impl Into<String>) {
        self.messages.tell(message.into());
    }

    /// Shows at once what a key did, until the next one.
    pub fn answer(&mut self, message: impl Into<String>) {
        self.messages.answer(message.into());
    }

    /// The screen now has this many columns and lines.
    pub fn set_size(&mut self, columns: u16, lines: u16) {
        self.size = (columns, lines);
    }

    /// The server in front.
    pub(crate) fn server(&self) -> Option<&Watched> {
        self.servers.get(self.selected)
    }

    /// The server in front and its interval that is looked at.
    pub(crate) fn shown(&self) -> Option<(&Watched, &Frame)> {
        self.server().and_then(|server| Some((server, &**server.shown()?)))
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
