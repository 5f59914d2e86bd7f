//! What ran in one interval on one server.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::{Histogram, Losses, Origin, Reading, RunningStatement, Samples, Statement};

/// Calls by user are kept for so many users of a digest; the rest is one sum.
const USERS_MAX: usize = 32;

/// What statements are grouped by: small, because it is looked up for every statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DigestKey {
    /// Hash of the digest text.
    pub text: u64,
    /// Hash of the default database of the session.
    pub schema: u64,
}

/// What a digest is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DigestName {
    /// The digest text.
    pub text: Arc<str>,
    /// The default database of the session; `None` where none was chosen.
    pub schema: Option<Arc<str>>,
}

/// A sum of which a part may not have been measured.
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

    /// The sum; `None` where any part of it was not measured.
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
    /// What it is called; `None` for the sum of those beyond the limit.
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
    /// Calls by user.
    pub users: HashMap<Vec<u8>, u64>,
    /// A few of the statements as they were.
    pub samples: Samples,
    /// The hash under which the server itself files the digest (`STATEMENT_DIGEST()`), or why it is
    /// not known; `None` where nobody asked the server.
    pub server_digest: Option<Reading<Arc<str>>>,
}

impl DigestTotals {
    fn count(&mut self, statement: &Statement<'_>) {
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
        self.count_user(statement.identity.user.as_deref().unwrap_or_default());
        self.samples.offer(statement, self.calls);
    }

    fn count_user(&mut self, user: &[u8]) {
        if let Some(calls) = self.users.get_mut(user) {
            *calls += 1;
        } else {
            let name = if self.users.len() < USERS_MAX { user } else { b"(other)" };
            *self.users.entry(name.to_vec()).or_default() += 1;
        }
    }

    /// Adds all that another part of the same digest counted.
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
        for (user, calls) in &other.users {
            *self.users.entry(user.clone()).or_default() += calls;
        }
        self.samples.merge(&other.samples);
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
    /// Latency of all statements, nanoseconds.
    pub latency_ns: Histogram,
    /// By digest, at most `digests_max` and one for the rest.
    pub digests: HashMap<DigestKey, DigestTotals>,
    /// The statements beyond the limit of digests.
    pub other: DigestTotals,
    /// What ran when the interval ended.
    pub running: Vec<RunningStatement>,
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

    /// Counts a statement that ended in this interval. `name` is asked where the digest is new.
    pub fn count(
        &mut self,
        statement: &Statement<'_>,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) {
        self.statements += 1;
        self.errors.add(statement.error.map(|number| u64::from(number != 0)));
        self.truncated += u64::from(statement.text.is_some_and(|text| text.is_truncated()));
        if let Some(latency) = statement.latency_ns {
            self.latency_ns.record(latency);
        }
        let active_ns = self.overlap(statement.start_ns(), statement.end_ns);
        self.active_ns += active_ns;
        let totals = self.totals(key, limit, name);
        totals.count(statement);
        totals.active_ns += active_ns;
    }

    fn totals(
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

    /// Books the time of a statement that ran beyond the end of this interval: it will be counted
    /// where it ends, its time belongs to every interval in which it ran.
    pub fn book_time(
        &mut self,
        start_ns: Option<u64>,
        until_ns: u64,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) {
        let active_ns = self.overlap(start_ns, until_ns);
        self.active_ns += active_ns;
        self.totals(key, limit, name).active_ns += active_ns;
    }

    fn overlap(&self, start_ns: Option<u64>, end_ns: u64) -> u64 {
        start_ns.map_or(0, |start| end_ns.saturating_sub(start.max(self.start_ns)))
    }

    /// The average number of active sessions; `None` while the interval goes on.
    pub fn active_sessions(&self) -> Option<f64> {
        let length = self.end_ns.checked_sub(self.start_ns).filter(|length| *length > 0)?;
        Some(self.active_ns as f64 / length as f64)
    }
}
