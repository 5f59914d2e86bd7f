//! One server: its history, the selected interval, and its lists.

use std::sync::Arc;
use std::time::Duration;

use waggle_model::{DigestKey, Losses, Server};

use super::filter::Filter;
use super::frame::{Details, Frame, Row};
use super::history::History;
use super::ranking::{Sort, ranked};
use super::session::Session;
use super::snapshot::Snapshot;

/// What is open in front of the lists.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// A digest.
    Digest(DigestKey),
    /// A session, as it was at the end of an interval (nanoseconds): the shown one while it runs the same statement.
    Session(Box<Session>, u64),
}

/// A line of a list that is selected. It follows its item while that is listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<K> {
    pub(crate) at: usize,
    item: Option<K>,
}

impl<K: Copy + PartialEq> Cursor<K> {
    /// At the first line, whatever is there.
    const FIRST: Cursor<K> = Cursor { at: 0, item: None };

    fn follow(&mut self, mut items: impl ExactSizeIterator<Item = K>) {
        let last = items.len().saturating_sub(1);
        let found = self.item.and_then(|item| items.position(|it| it == item));
        self.at = found.unwrap_or(self.at).min(last);
    }
}

/// One server.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) server: Server,
    pub(crate) uptime: Option<Duration>,
    /// What watching was found to cost, in words.
    pub(crate) price: Option<String>,
    pub(crate) ended: bool,
    pub(crate) history: History,
    /// What was lost since the watch began.
    pub(crate) lost: Losses,
    /// Intervals that the view did not get.
    pub(crate) missed: u64,
    /// The interval that is looked at while it is not always the newest.
    held: Option<Arc<Frame>>,
    /// Rows of the shown interval, as they are listed.
    pub(crate) listed: Vec<u32>,
    /// The same for its sessions.
    pub(crate) sessions: Vec<u32>,
    pub(crate) digest: Cursor<DigestKey>,
    pub(crate) session: Cursor<u64>,
    pub(crate) opened: Option<Opened>,
    /// Lines of what is open that are above the screen.
    pub(crate) scrolled: usize,
}

impl Watched {
    pub(crate) fn new(server: Server) -> Watched {
        Watched {
            server,
            uptime: None,
            price: None,
            ended: false,
            history: History::default(),
            lost: Losses::default(),
            missed: 0,
            held: None,
            listed: Vec::new(),
            sessions: Vec::new(),
            digest: Cursor::FIRST,
            session: Cursor::FIRST,
            opened: None,
            scrolled: 0,
        }
    }

    pub(crate) fn take(&mut self, snapshot: Snapshot, literals: bool, budget: usize) {
        self.uptime = snapshot.uptime.or(self.uptime);
        self.price.clone_from(&snapshot.price);
        self.ended = snapshot.record.ended.is_some();
        self.lost = self.lost.plus(&snapshot.record.interval.losses);
        let frame = Frame::of(snapshot, literals, |key| self.history.name(key));
        self.history.push(frame, budget);
    }

    /// The interval that is looked at.
    pub(crate) fn shown(&self) -> Option<&Arc<Frame>> {
        self.held.as_ref().or_else(|| self.history.newest())
    }

    /// Whether an older interval may be looked at.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Stays at the interval that is shown, or follows the newest again.
    pub(crate) fn hold_or_follow(&mut self) {
        self.held = match self.held {
            Some(_) => None,
            None => self.history.newest().cloned(),
        };
    }

    /// Follows the newest interval.
    pub(crate) fn follow(&mut self) {
        self.held = None;
    }

    /// Looks at the interval `by` places after the shown one.
    pub(crate) fn step(&mut self, by: isize) {
        let Some(shown) = self.shown() else { return };
        self.held = self.history.beside(shown.end_ns, by).cloned();
    }

    /// How long before the newest interval the shown one ended, nanoseconds.
    pub(crate) fn behind_ns(&self) -> u64 {
        let newest = self.history.newest().map_or(0, |frame| frame.end_ns);
        newest.saturating_sub(self.shown().map_or(newest, |frame| frame.end_ns))
    }

    /// Makes the lists anew: another interval is shown, or in another way.
    pub(crate) fn list(&mut self, sort: Sort, filter: &Filter) {
        let Some(frame) = self.shown().cloned() else { return };
        if let Some(Opened::Session(opened, end_ns)) = &mut self.opened
            && let Some(now) = frame.sessions.iter().find(|now| now.is_same_statement(opened))
        {
            opened.follow(now);
            *end_ns = frame.end_ns;
        }
        self.listed =
            ranked(&frame.rows, sort, |row| filter.passes(row, |key| self.details(&frame, key)));
        let passing = (0_u32..).zip(&frame.sessions);
        self.sessions = passing.filter(|it| filter.passes_session(it.1)).map(|it| it.0).collect();
        let keys = self.listed.iter().map(|at| frame.rows[*at as usize].key);
        self.digest.follow(keys);
        let ids = self.sessions.iter().map(|at| frame.sessions[*at as usize].connection_id);
        self.session.follow(ids);
    }

    /// What is known of a digest beside its numbers: of the shown interval, where that is whole, or
    /// the newest one, and of those that are kept.
    pub(crate) fn details<'a>(
        &'a self,
        shown: &'a Frame,
        key: &DigestKey,
    ) -> [Option<&'a Details>; 2] {
        let (newest, kept) = self.history.details(key);
        [shown.details.get(key).or(newest), kept]
    }

    /// The digest in a line of the list.
    pub(crate) fn row<'a>(&self, frame: &'a Frame, line: usize) -> Option<&'a Row> {
        frame.rows.get(*self.listed.get(line)? as usize)
    }

    /// The session in a line of the list.
    pub(crate) fn session_at<'a>(&self, frame: &'a Frame, line: usize) -> Option<&'a Session> {
        frame.sessions.get(*self.sessions.get(line)? as usize)
    }

    /// Selects a line of the digests; one beyond the end is the last one.
    pub(crate) fn select_digest(&mut self, line: usize) {
        let at = line.min(self.listed.len().saturating_sub(1));
        let item = self.shown().and_then(|frame| self.row(frame, at)).map(|row| row.key);
        self.digest = Cursor { at, item };
    }

    /// Selects a line of the sessions.
    pub(crate) fn select_session(&mut self, line: usize) {
        let at = line.min(self.sessions.len().saturating_sub(1));
        let found = self.shown().and_then(|frame| self.session_at(frame, at));
        self.session = Cursor { at, item: found.map(|session| session.connection_id) };
    }
}
