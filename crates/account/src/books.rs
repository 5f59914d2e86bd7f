//! The running account of one server: the interval that is open, and the one that follows.

use std::collections::HashSet;

use waggle_model::{
    DigestKey, DigestsMax, Interval, Losses, RunningStatement, Server, Statement, StatementKey,
};

use crate::{Digests, Grouping};

/// Digests of an interval that are kept apart; it bounds the memory of an interval.
pub const DIGESTS_MAX: DigestsMax = DigestsMax(5_000);

/// The account of one server: statements go in, intervals come out.
pub struct Books {
    digests: Digests,
    current: Interval,
    next: Interval,
    /// While an interval is being closed: its end, and the statements that ended after it.
    closing: Option<Closing>,
}

struct Closing {
    end_ns: u64,
    ended_after: HashSet<StatementKey>,
}

impl Books {
    /// Opens the first interval.
    pub fn open(server: &Server, grouping: Grouping, now_ns: u64) -> Books {
        Books {
            digests: Digests::of(server, grouping),
            current: Interval::begin(now_ns),
            next: Interval::default(),
            closing: None,
        }
    }

    /// The interval that is open.
    pub fn interval(&self) -> &Interval {
        &self.current
    }

    /// Counts a statement that ended. One that is not the server's own kind of statement (a ping,
    /// a prepare) is not counted. Returns its digest where the interval meets it for the first time.
    pub fn count(&mut self, statement: &Statement<'_>) -> Option<DigestKey> {
        if statement.command.is_some_and(|command| !command.is_statement()) {
            return None;
        }
        let (key, name) = self.digests.digest(statement);
        let mut is_new = false;
        let name = || {
            is_new = true;
            name()
        };
        let origin = statement.origin;
        match &mut self.closing {
            Some(closing) if statement.end_ns > closing.end_ns => {
                // It ran beyond the end: its time up to there belongs to the interval that closes.
                let name = name();
                let again = name.clone();
                let start_ns = statement.start_ns();
                let current = self.current.of(origin);
                current.book_time(start_ns, closing.end_ns, key, DIGESTS_MAX, || name);
                self.next.of(origin).count(statement, key, DIGESTS_MAX, || again);
                closing.ended_after.insert(statement.key());
            }
            _ => self.current.of(origin).count(statement, key, DIGESTS_MAX, name),
        }
        is_new.then_some(key)
    }

    /// Counts a statement of waggle itself: as left out.
    pub fn leave_out(&mut self, statement: &Statement<'_>) {
        let is_after = self.closing.as_ref().is_some_and(|it| statement.end_ns > it.end_ns);
        let interval = if is_after { &mut self.next } else { &mut self.current };
        let is_statement = statement.command.is_none_or(waggle_model::Command::is_statement);
        interval.own_statements += u64::from(is_statement);
    }

    /// Begins to close the interval at `end_ns`: what is counted from now on is sorted by its end.
    pub fn begin_closing(&mut self, end_ns: u64) {
        self.next = Interval::begin(end_ns);
        self.closing = Some(Closing { end_ns, ended_after: HashSet::new() });
    }

    /// Closes the interval with what was running at its end, and opens the next one.
    pub fn close(&mut self, running: Vec<RunningStatement>, losses: Losses) -> Interval {
        let closing = self.closing.take();
        let end_ns = closing.as_ref().map_or(self.next.start_ns, |closing| closing.end_ns);
        for statement in &running {
            let was_counted = closing
                .as_ref()
                .is_some_and(|closing| closing.ended_after.contains(&statement.key()));
            if !was_counted && statement.command.is_statement() {
                let (key, name) = self.digests.digest_running(statement);
                self.current.book_time(statement.start_ns, end_ns, key, DIGESTS_MAX, name);
            }
        }
        self.current.end_ns = end_ns;
        if let Some(nested) = &mut self.current.nested {
            nested.end_ns = end_ns;
        }
        self.current.running = running;
        self.current.losses = losses;
        std::mem::replace(&mut self.current, std::mem::take(&mut self.next))
    }
}
