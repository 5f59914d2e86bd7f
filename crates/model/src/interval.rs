//! What ran in one interval on one server.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::HashMap;

use crate::spent::parts_inside;
use crate::{
    Histogram, LockWaits, Losses, NowWait, Origin, Reading, Sample, Samples, Spent, Statement,
};

/// The most users per digest whose calls are counted apart; the rest is one sum.
const USERS_MAX: usize = 32;
/// The sum of the others.
const OTHER_USERS: &[u8] = b"(other)";

/// Calls by user.
pub type CallsByUser = HashMap<Vec<u8>, u64>;

/// What statements are grouped by: small, because it is looked up for every statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DigestKey {
    /// Hash of the digest text.
    pub text: u64,
    /// Hash of the default database of the session; 0 if none was chosen.
    pub schema: u64,
}

/// What a digest is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DigestName {
    /// The digest text.
    pub text: Arc<str>,
    /// The default database of the session; `None` if none was chosen.
    pub schema: Option<Arc<str>>,
    /// The digest is that of a text that was cut too early: nobody knows which one it has on the
    /// server. It is never one with the digest of a whole text.
    pub cut: bool,
}

/// A sum. Parts of it may not have been measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    total: u64,
    absent: u64,
}

impl Sum {
    /// Adds one reading.
    pub fn add(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.total = self.total.saturating_add(value),
            None => self.absent += 1,
        }
    }

    /// The sum; `None` if any part of it was not measured.
    pub fn get(&self) -> Option<u64> {
        (self.absent == 0).then_some(self.total)
    }

    fn merge(&mut self, other: &Sum) {
        self.total = self.total.saturating_add(other.total);
        self.absent += other.absent;
    }
}

/// Everything that is counted of one digest.
#[derive(Clone, Debug, Default)]
pub struct DigestTotals {
    /// Its name; `None` for the sum of the digests beyond the limit.
    pub name: Option<DigestName>,
    /// Statements that ended.
    pub calls: u64,
    /// Of those, the ones with an error.
    pub errors: Sum,
    /// Rows sent.
    pub rows_sent: Sum,
    /// Rows examined.
    pub rows_examined: Sum,
    /// Rows changed.
    pub rows_affected: Sum,
    /// Time in locks, nanoseconds.
    pub lock_ns: Sum,
    /// Bytes of the replies.
    pub bytes_sent: Sum,
    /// Statements that used no index, or no good one.
    pub no_index: Sum,
    /// Latency, nanoseconds, of the statements whose start is known.
    pub latency_ns: Histogram,
    /// Time of these statements inside the interval, nanoseconds, those still running included.
    pub active_ns: u64,
    /// Statements that ended or ran of which the start is not known, so that their time is not in `active_ns`.
    pub starts_unknown: u64,
    /// Where their time went.
    pub spent: Spent,
    /// Calls by user.
    pub users: CallsByUser,
    /// A few of the statements as they were.
    pub samples: Samples,
    /// The hash under which the server itself files the digest (`STATEMENT_DIGEST()`), or why it is
    /// not known; `None` if nobody asked the server.
    pub server_digest: Option<Reading<Arc<str>>>,
}

/// The time of a statement inside an interval.
#[derive(Clone, Copy)]
struct Inside {
    ns: u64,
    /// Its start is not known.
    is_unknown: bool,
}

/// The average number of active sessions over this time; `None` where that is not known.
fn load(active_ns: u64, starts_unknown: u64, length_ns: u64) -> Option<f64> {
    (length_ns > 0 && starts_unknown == 0).then(|| active_ns as f64 / length_ns as f64)
}

impl DigestTotals {
    /// The average number of sessions that ran it in an interval of this length; `None` where the start of one of its
    /// statements is not known.
    pub fn active_sessions(&self, length_ns: u64) -> Option<f64> {
        load(self.active_ns, self.starts_unknown, length_ns)
    }

    fn add(&mut self, inside: Inside) {
        self.active_ns += inside.ns;
        self.starts_unknown += u64::from(inside.is_unknown);
    }

    fn count(&mut self, statement: &Statement<'_>, keep: impl Fn(&Statement<'_>) -> Sample) {
        self.calls += 1;
        self.errors.add(statement.error.map(|number| u64::from(number != 0)));
        self.rows_sent.add(statement.rows_sent);
        self.rows_examined.add(statement.rows_examined);
        self.rows_affected.add(statement.rows_affected);
        self.lock_ns.add(statement.lock_ns);
        self.bytes_sent.add(statement.bytes_sent);
        let no_index = |status: crate::ServerStatus| {
            u64::from(status.no_index_used() || status.no_good_index_used())
        };
        self.no_index.add(statement.server_status.map(no_index));
        if let Some(latency) = statement.latency_ns {
            self.latency_ns.record(latency);
        }
        self.spent.count(statement);
        self.count_user(statement.identity.user.as_deref().unwrap_or_default(), 1);
        self.samples.offer(statement, self.calls, keep);
    }

    fn count_user(&mut self, user: &[u8], calls: u64) {
        if let Some(known) = self.users.get_mut(user) {
            *known += calls;
        } else {
            let named = self.users.len() - usize::from(self.users.contains_key(OTHER_USERS));
            let name = if named < USERS_MAX { user } else { OTHER_USERS };
            *self.users.entry(name.to_vec()).or_default() += calls;
        }
    }

    /// Adds all that another part of the same digest counted. The server's own digest is kept where either knows it.
    pub fn merge(&mut self, other: &DigestTotals) {
        self.calls += other.calls;
        self.errors.merge(&other.errors);
        self.rows_sent.merge(&other.rows_sent);
        self.rows_examined.merge(&other.rows_examined);
        self.rows_affected.merge(&other.rows_affected);
        self.lock_ns.merge(&other.lock_ns);
        self.bytes_sent.merge(&other.bytes_sent);
        self.no_index.merge(&other.no_index);
        self.latency_ns.merge(&other.latency_ns);
        self.active_ns += other.active_ns;
        self.starts_unknown += other.starts_unknown;
        self.spent.merge(&other.spent);
        for (user, calls) in &other.users {
            self.count_user(user, *calls);
        }
        self.samples.merge(&other.samples);
        let is_known = self.server_digest.as_ref().is_some_and(|digest| digest.value().is_some());
        if !is_known && other.server_digest.is_some() {
            self.server_digest.clone_from(&other.server_digest);
        }
    }
}

/// One interval of one server: what ended in it and what ran in it.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Begin, `CLOCK_MONOTONIC` nanoseconds.
    pub start_ns: u64,
    /// End; 0 while it goes on.
    pub end_ns: u64,
    /// Statements that ended.
    pub statements: u64,
    /// Of those, the ones with an error.
    pub errors: Sum,
    /// Statements whose text is longer than what was captured.
    pub truncated: u64,
    /// Time of all statements inside the interval, nanoseconds: divided by its length it is the
    /// average number of active sessions (the DB load).
    pub active_ns: u64,
    /// Statements that ended or ran of which the start is not known: of a part of the load nobody can say that it is all.
    pub starts_unknown: u64,
    /// Latency of all statements, nanoseconds.
    pub latency_ns: Histogram,
    /// Where their time went. What was told after a reply is in it also where no digest has it: it is not known
    /// which statement was before, or its digest did not end in this interval.
    pub spent: Spent,
    /// The longest waits for locks, each by itself.
    pub lock_waits: LockWaits,
    /// By digest, at most `digests_max` and one for the rest.
    pub digests: HashMap<DigestKey, DigestTotals>,
    /// The statements beyond the limit of digests.
    pub other: DigestTotals,
    /// What was lost in it.
    pub losses: Losses,
    /// Statements of waggle's own connection, which are in nothing else here.
    pub own_statements: u64,
    /// What ran inside other statements, apart from them: its time is theirs already. `None` where
    /// nothing did, or where it was not captured.
    pub nested: Option<Box<Interval>>,
}

/// A limit on the digests of an interval, which bounds its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestsMax(pub usize);

impl Interval {
    /// An interval that begins now.
    pub fn begin(start_ns: u64) -> Self {
        Self { start_ns, ..Self::default() }
    }

    /// Where statements of this origin are counted: here, or in the nested interval.
    pub fn of(&mut self, origin: Origin) -> &mut Interval {
        let start_ns = self.start_ns;
        match origin {
            Origin::Client => self,
            Origin::Nested => {
                self.nested.get_or_insert_with(|| Box::new(Interval::begin(start_ns)))
            }
        }
    }

    /// Counts a statement that ended in this interval. `name` is asked where the digest is new, `keep`
    /// where the statement becomes a sample of it.
    pub fn count(
        &mut self,
        statement: &Statement<'_>,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
        keep: impl Fn(&Statement<'_>) -> Sample,
    ) {
        self.statements += 1;
        self.errors.add(statement.error.map(|number| u64::from(number != 0)));
        self.truncated += u64::from(statement.text.is_some_and(|text| text.is_truncated()));
        if let Some(latency) = statement.latency_ns {
            self.latency_ns.record(latency);
        }
        self.spent.count(statement);
        self.lock_waits.add(statement, key);
        let inside = self.inside(statement.start_ns(), statement.end_ns);
        let parts = parts_inside(statement, inside.ns);
        self.spent.book(statement, parts.as_ref());
        let totals = self.totals(key, limit, name);
        totals.count(statement, keep);
        totals.add(inside);
        totals.spent.book(statement, parts.as_ref());
    }

    pub(crate) fn totals(
        &mut self,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) -> &mut DigestTotals {
        let is_full = self.digests.len() >= limit.0;
        match self.digests.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => &mut self.other,
            Entry::Vacant(new) => {
                new.insert(DigestTotals { name: Some(name()), ..DigestTotals::default() })
            }
        }
    }

    /// Books the time of a statement that runs beyond the end of this interval: it will be counted
    /// where it ends, its time belongs to every interval in which it ran. Where that time went is not told yet.
    pub fn book_time(
        &mut self,
        start_ns: Option<u64>,
        until_ns: u64,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) {
        let inside = self.inside(start_ns, until_ns);
        self.totals(key, limit, name).add(inside);
    }

    /// Books what a statement that runs beyond the end of this interval does there, since it began to do that:
    /// of the time that [`Interval::book_time`] has booked.
    pub fn book_now(&mut self, now: NowWait, start_ns: Option<u64>, until_ns: u64, key: DigestKey) {
        let Some(start_ns) = start_ns else { return };
        let ns = self.overlap(start_ns.max(now.since_ns), until_ns);
        self.spent.book_now(now.class, ns);
        self.digests.get_mut(&key).unwrap_or(&mut self.other).spent.book_now(now.class, ns);
    }

    /// The same for a statement that has ended after the end of this interval, `until_ns`.
    pub fn book_ended_after(
        &mut self,
        statement: &Statement<'_>,
        until_ns: u64,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) {
        let inside = self.inside(statement.start_ns(), until_ns);
        let parts = parts_inside(statement, inside.ns);
        self.spent.book(statement, parts.as_ref());
        let totals = self.totals(key, limit, name);
        totals.add(inside);
        totals.spent.book(statement, parts.as_ref());
    }

    /// Books what the thread of a session worked after the reply of its statement before, nanoseconds. `digest` is
    /// that of this statement, where it is known.
    pub fn book_after_reply(&mut self, digest: Option<DigestKey>, ns: u64) {
        self.spent.after_reply.add(ns);
        if let Some(totals) = digest.and_then(|key| self.digests.get_mut(&key)) {
            totals.spent.after_reply.add(ns);
        }
    }

    /// Counts the time of a statement inside this interval.
    fn inside(&mut self, start_ns: Option<u64>, end_ns: u64) -> Inside {
        let inside = match start_ns {
            Some(start_ns) => Inside { ns: self.overlap(start_ns, end_ns), is_unknown: false },
            None => Inside { ns: 0, is_unknown: true },
        };
        self.active_ns += inside.ns;
        self.starts_unknown += u64::from(inside.is_unknown);
        inside
    }

    fn overlap(&self, start_ns: u64, end_ns: u64) -> u64 {
        end_ns.saturating_sub(start_ns.max(self.start_ns))
    }

    /// Bytes of the texts in it: of its digests and their samples.
    pub(crate) fn text_bytes(&self) -> usize {
        let of_digest = |totals: &DigestTotals| {
            let Samples { slowest, random } = &totals.samples;
            let samples = [slowest, random].into_iter().flatten();
            let samples = samples.filter_map(|sample| sample.text.as_ref()).map(Vec::len);
            totals.name.as_ref().map_or(0, |name| name.text.len()) + samples.sum::<usize>()
        };
        let nested = self.nested.as_ref().map_or(0, |nested| nested.text_bytes());
        self.digests.values().map(of_digest).sum::<usize>() + self.lock_waits.text_bytes() + nested
    }

    /// The average number of active sessions; `None` while the interval goes on, and where the start of a statement is
    /// not known.
    pub fn active_sessions(&self) -> Option<f64> {
        let length = self.end_ns.checked_sub(self.start_ns)?;
        load(self.active_ns, self.starts_unknown, length)
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
