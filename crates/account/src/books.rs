//! The open interval of one server, and how it becomes the next one.

use std::collections::HashSet;

use waggle_model::{
    DigestKey, DigestName, DigestsMax, Interval, Losses, Origin, RunningStatement, Sample, Server,
    Statement, StatementKey,
};

use crate::last::LastStatements;
use crate::{Digests, Grouping, head_without_secrets};

/// Digests of an interval that are kept apart; it bounds the memory of an interval.
pub const DIGESTS_MAX: DigestsMax = DigestsMax(5_000);

/// The account of one server: statements go in, intervals come out.
pub struct Books {
    digests: Digests,
    current: Interval,
    next: Interval,
    last: LastStatements,
    /// While an interval is being closed: its end, and the statements that ended after it.
    closing: Option<Closing>,
}

/// A statement as it is kept for a sample.
fn kept(statement: &Statement<'_>) -> Sample {
    let head = statement.text.map(|text| head_without_secrets(text, statement.settings));
    Sample::of(statement, head)
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
            last: LastStatements::default(),
            closing: None,
        }
    }

    /// Takes over what is newly known of the server.
    pub fn follow(&mut self, server: &Server) {
        self.digests.follow(server);
    }

    /// The interval that is open.
    pub fn interval(&self) -> &Interval {
        &self.current
    }

    /// Counts a statement that ended. One that is not the server's own kind of statement (a ping,
    /// a prepare) is not counted. Returns its digest where the interval meets it for the first time.
    pub fn count(&mut self, statement: &Statement<'_>) -> Option<DigestKey> {
        if statement.command.is_some_and(|command| !command.is_statement()) {
            self.book_after_reply(statement, None);
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
                let current = self.current.of(origin);
                current.book_ended_after(statement, closing.end_ns, key, DIGESTS_MAX, || name);
                self.next.of(origin).count(statement, key, DIGESTS_MAX, || again, kept);
                closing.ended_after.insert(statement.key());
            }
            _ => self.current.of(origin).count(statement, key, DIGESTS_MAX, name, kept),
        }
        self.book_after_reply(statement, Some(key));
        is_new.then_some(key)
    }

    /// Counts the waits for locks of a statement that ended without a reply: else it is not counted. `digest` is that
    /// of its whole text, where it is known.
    pub fn count_lock_waits(
        &mut self,
        statement: &Statement<'_>,
        digest: Option<(DigestKey, DigestName)>,
    ) {
        if let Some((key, name)) = digest {
            return self.current.book_lock_waits(statement, key, DIGESTS_MAX, || name);
        }
        let (key, name) = self.digests.digest(statement);
        self.current.book_lock_waits(statement, key, DIGESTS_MAX, name);
    }

    /// The digest of a statement that runs.
    pub fn digest_running(&mut self, running: &RunningStatement) -> (DigestKey, DigestName) {
        let (key, name) = self.digests.digest_running(running);
        (key, name())
    }

    /// Books what a session tells of the statement before this one. `digest` is the one of this.
    fn book_after_reply(&mut self, statement: &Statement<'_>, digest: Option<DigestKey>) {
        if statement.origin != Origin::Client {
            return;
        }
        let before = self.last.replace(statement, digest);
        let Some(ns) = statement.after_reply_before_ns else { return };
        // After a command that is no statement it is no statement's.
        if before.as_ref().is_some_and(|before| before.digest.is_none()) {
            return;
        }
        let is_after = self.closing.as_ref().is_some_and(|it| statement.end_ns > it.end_ns);
        let interval = if is_after { &mut self.next } else { &mut self.current };
        interval.book_after_reply(before.and_then(|before| before.digest), ns);
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

    /// Closes the interval with what was running at its end, and opens the next one. Notes the digest of each statement
    /// that runs.
    pub fn close(&mut self, running: &mut [RunningStatement], losses: Losses) -> Interval {
        let closing = self.closing.take();
        let end_ns = closing.as_ref().map_or(self.next.start_ns, |closing| closing.end_ns);
        for statement in running.iter_mut().filter(|statement| statement.command.is_statement()) {
            let was_counted = closing
                .as_ref()
                .is_some_and(|closing| closing.ended_after.contains(&statement.key()));
            statement.digest = Some(self.book_running(statement, end_ns, was_counted));
        }
        self.current.end_ns = end_ns;
        if let Some(nested) = &mut self.current.nested {
            nested.end_ns = end_ns;
        }
        self.current.losses = losses;
        std::mem::replace(&mut self.current, std::mem::take(&mut self.next))
    }

    /// Books the time of a statement that runs at the end of the interval, unless it was counted as it ended. Returns its
    /// digest.
    fn book_running(
        &mut self,
        statement: &RunningStatement,
        end_ns: u64,
        was_counted: bool,
    ) -> DigestKey {
        let (key, name) = self.digests.digest_running(statement);
        if !was_counted {
            self.current.book_time(statement.start_ns, end_ns, key, DIGESTS_MAX, name);
            if let Some(now) = statement.waits {
                self.current.book_now(now, statement.start_ns, end_ns, key);
            }
        }
        key
    }
}
