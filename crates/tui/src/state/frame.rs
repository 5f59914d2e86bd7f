//! One interval in the history: numbers ready to display.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use waggle_model::visible;
use waggle_model::{
    CallsByUser, Cost, DigestKey, DigestName, DigestTotals, Ending, FatalSignal, LastLook, Logins,
    Losses, ProcessorUse, Reading, Record, Samples, StatementLockWait, StorageWaits, TimeClass,
    Unread,
};
use waggle_sql::Kind;

use super::latencies::Latencies;
use super::measured::Measured;
use super::ranking::{Sort, top};
use super::session::{Session, sessions};
use super::snapshot::Snapshot;
use super::spent::{ByClass, TimeSpent};
use super::waits_now::WaitsNow;

/// Digests that the history keeps of each order of ranking.
const KEPT_OF_EACH_ORDER: usize = 12;
/// Sessions that the history keeps.
const SESSIONS_KEPT: usize = 20;

/// What a digest is called and does.
#[derive(Debug)]
pub(crate) struct Name {
    /// The digest text.
    pub(crate) text: Arc<str>,
    /// The default database; `None` if none was chosen.
    pub(crate) schema: Option<Arc<str>>,
    /// What it does.
    pub(crate) kind: Kind,
}

impl Name {
    pub(crate) fn of(name: &DigestName) -> Name {
        let kind = waggle_sql::kind(name.text.as_bytes());
        let schema = name.schema.as_deref().map(|schema| visible::name(schema).into());
        Name { text: name.text.clone(), schema, kind }
    }
}

/// The numbers of one digest in one interval.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) key: DigestKey,
    pub(crate) name: Arc<Name>,
    /// Average active sessions.
    pub(crate) load: Measured,
    pub(crate) calls: u64,
    pub(crate) errors: Measured,
    pub(crate) rows_examined: Measured,
    pub(crate) rows_sent: Measured,
    pub(crate) rows_affected: Measured,
    pub(crate) bytes_sent: Measured,
    pub(crate) no_index: Measured,
    pub(crate) lock_ns: Measured,
    pub(crate) avg_ns: Measured,
    pub(crate) p50_ns: Measured,
    pub(crate) p95_ns: Measured,
    pub(crate) p99_ns: Measured,
    pub(crate) max_ns: Measured,
    pub(crate) latencies: Latencies,
    /// `None` if it was not measured.
    pub(crate) spent: Option<Box<TimeSpent>>,
    /// Its waits for locks that go on at the end of the interval; `None` also where they are not measured.
    pub(crate) waits_now: Option<Box<WaitsNow>>,
}

impl Row {
    fn of(
        key: DigestKey,
        totals: &DigestTotals,
        name: Arc<Name>,
        length_ns: u64,
        is_measured: bool,
    ) -> Row {
        let quantile = |q| Measured::count(totals.latency_ns.quantile(q));
        Row {
            key,
            name,
            load: Measured::of(totals.active_sessions(length_ns)),
            calls: totals.calls,
            errors: Measured::count(totals.errors.get()),
            rows_examined: Measured::count(totals.rows_examined.get()),
            rows_sent: Measured::count(totals.rows_sent.get()),
            rows_affected: Measured::count(totals.rows_affected.get()),
            bytes_sent: Measured::count(totals.bytes_sent.get()),
            no_index: Measured::count(totals.no_index.get()),
            lock_ns: Measured::count(totals.lock_ns.get()),
            avg_ns: Measured::of(totals.latency_ns.mean()),
            p50_ns: quantile(0.50),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            max_ns: Measured::count(totals.latency_ns.max()),
            latencies: Latencies::of(&totals.latency_ns),
            spent: TimeSpent::of(&totals.spent, length_ns, is_measured),
            waits_now: None,
        }
    }

    /// Its load by class; `None` if it was not measured.
    pub(crate) fn load_by(&self) -> Option<&ByClass> {
        self.spent.as_ref()?.load.as_ref()
    }

    /// Its load in one class; `None` also where it has told nothing yet.
    pub(crate) fn load_in(&self, class: TimeClass) -> Option<f64> {
        let by = self.load_by()?;
        by.iter().next().map(|_| by.get(class))
    }

    /// The latency of its statements by class, nanoseconds; `None` if it was not measured.
    pub(crate) fn parts(&self) -> Option<&ByClass> {
        self.spent.as_ref()?.parts.as_ref()
    }

    /// Bytes that it takes, its name apart.
    fn bytes(&self) -> usize {
        let spent = self.spent.as_ref().map_or(0, |spent| spent.bytes());
        let waits = self.waits_now.as_ref().map_or(0, |waits| waits.bytes());
        size_of::<Row>() + self.latencies.bytes() + spent + waits
    }
}

/// What is kept of a digest once, not per interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    /// Calls by user.
    pub(crate) users: CallsByUser,
    /// Statements as they were.
    pub(crate) samples: Samples,
    /// The server's own hash of the digest, or why it is not known; `None` if nobody asked.
    pub(crate) server_digest: Option<Reading<Arc<str>>>,
    /// The longest wait for a lock of those whose statements have ended.
    pub(crate) wait: Option<Box<StatementLockWait>>,
}

/// The sums of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overview {
    pub(crate) statements: u64,
    pub(crate) errors: Option<u64>,
    /// Average active sessions; `None` if sessions could not be read.
    pub(crate) active: Option<f64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p95_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    /// Sessions that ran something at its end; `None` if they could not be read.
    pub(crate) running: Option<usize>,
    pub(crate) losses: Losses,
    /// A pool of threads serves the sessions.
    pub(crate) is_pooled: bool,
}

/// The last look at the sessions of a server that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSeen {
    /// How long before the end it was, nanoseconds.
    pub(crate) before_ns: u64,
    /// It was at the end itself.
    pub(crate) at_end: bool,
    /// How many ran.
    pub(crate) ran: usize,
}

impl LastSeen {
    fn of(look: &LastLook, end_wall_ns: u64) -> LastSeen {
        let before_ns = end_wall_ns.saturating_sub(look.wall_ns);
        LastSeen { before_ns, at_end: look.at_end, ran: look.ran.len() }
    }
}

/// One interval of one server.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) time: Box<str>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Why nothing goes on in the server as a whole; empty where it may run.
    pub(crate) standstill: Box<str>,
    pub(crate) overview: Overview,
    /// `None` if it was not measured.
    pub(crate) processors: Option<ProcessorUse>,
    pub(crate) storage: Option<StorageWaits>,
    /// What clients wait for before any statement of theirs begins; none where there is nothing to tell.
    pub(crate) before: Box<[Before]>,
    /// Of all digests; `None` if it was not measured.
    pub(crate) spent: Option<Box<TimeSpent>>,
    /// Why it is not known where the time went; empty where it is.
    pub(crate) spent_absent: Box<str>,
    pub(crate) cost: Cost,
    /// Digests, by key.
    pub(crate) rows: Vec<Row>,
    /// Digests that ran and are not among the rows.
    pub(crate) rows_left_out: usize,
    /// Statements of digests beyond the limit of an interval.
    pub(crate) other_calls: u64,
    /// The blocked and the oldest first. In the last interval of a server, those that ran at the last look.
    pub(crate) sessions: Vec<Session>,
    /// That look; `None` where the server goes on, or nobody has looked.
    pub(crate) last_look: Option<LastSeen>,
    /// The signal that ended it; `None` where none was seen.
    pub(crate) signal: Option<FatalSignal>,
    /// Of digests, while this is the newest interval.
    pub(crate) details: HashMap<DigestKey, Details>,
}

/// What clients wait for before a statement.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) words: String,
    /// Else the words say that nobody knows.
    pub(crate) is_known: bool,
}

/// Nothing of a server that has ended.
fn before(
    ended: &Option<Ending>,
    logins: &Reading<Logins>,
    unread: &Reading<Unread>,
) -> Box<[Before]> {
    if ended.is_some() {
        return Box::default();
    }
    let is_known = logins.value().is_some();
    let logins = Logins::in_words(logins).map(|words| Before { words, is_known });
    let is_known = unread.value().is_some();
    let unread = Unread::in_words(unread).into_iter().map(|words| Before { words, is_known });
    logins.into_iter().chain(unread).collect()
}

impl Frame {
    /// From a snapshot. `known` has the names that are in use already.
    pub(crate) fn of(
        snapshot: Snapshot,
        literals: bool,
        known: impl Fn(&DigestKey) -> Option<Arc<Name>>,
    ) -> Frame {
        let Snapshot { time, record, .. } = snapshot;
        let is_measured = record.parts.value().is_some();
        let spent_absent = record.parts_absent().unwrap_or_default().into();
        let active = record.active_sessions();
        let Record { server, state, processors, storage, mut interval, running, cost, .. } = record;
        let before = before(&record.ended, &record.logins, &record.unread);
        let Ending { signal, last_look, .. } = record.ended.unwrap_or_default();
        let standstill = state.value().and_then(|state| state.standstill(server.pid));
        let running = running.value().map(Vec::as_slice);
        let ran = last_look.as_ref().map(|look| look.ran.as_slice());
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let overview = Overview {
            statements: interval.statements,
            errors: interval.errors.get(),
            active,
            p50_ns: interval.latency_ns.quantile(0.50),
            p95_ns: interval.latency_ns.quantile(0.95),
            p99_ns: interval.latency_ns.quantile(0.99),
            running: running.map(<[_]>::len),
            losses: interval.losses,
            is_pooled: record.is_pooled,
        };
        let mut waits_now = WaitsNow::of(running.unwrap_or_default(), interval.end_ns);
        let mut rows = Vec::with_capacity(interval.digests.len());
        let mut details = HashMap::with_capacity(interval.digests.len());
        for (key, totals) in interval.digests.drain() {
            let Some(name) = &totals.name else { continue };
            let name = known(&key).unwrap_or_else(|| Arc::new(Name::of(name)));
            let waits_now = waits_now.remove(&key).map(Box::new);
            let row = Row::of(key, &totals, name, length_ns, is_measured);
            rows.push(Row { waits_now, ..row });
            let DigestTotals { users, samples, server_digest, .. } = totals;
            details.insert(key, Details { users, samples, server_digest, wait: None });
        }
        // The longest is the first.
        for wait in interval.lock_waits.kept() {
            if let Some(Details { wait: longest, .. }) = details.get_mut(&wait.digest) {
                longest.get_or_insert_with(|| Box::new(wait.clone()));
            }
        }
        rows.sort_unstable_by_key(|row| row.key);
        Frame {
            time: time.into(),
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            standstill: standstill.unwrap_or_default().into(),
            overview,
            processors: processors.value().copied(),
            storage: storage.value().copied(),
            before,
            spent: TimeSpent::of(&interval.spent, length_ns, is_measured),
            spent_absent,
            cost: cost.value().copied().unwrap_or_default(),
            rows,
            rows_left_out: 0,
            other_calls: interval.other.calls,
            sessions: sessions(running.or(ran).unwrap_or_default(), interval.end_ns, literals),
            last_look: last_look.as_ref().map(|look| LastSeen::of(look, record.end_wall_ns)),
            signal,
            details,
        }
    }

    /// Whether the server ended by what this session did.
    pub(crate) fn has_failed(&self, session: &Session) -> bool {
        let failed = self.signal.as_ref().and_then(FatalSignal::connection_id);
        failed == Some(session.connection_id)
    }

    /// The same with the digests and sessions that matter most, for the history.
    pub(crate) fn thinned(&self) -> Frame {
        let mut kept = HashSet::new();
        for sort in self.orders() {
            kept.extend(top(&self.rows, sort, KEPT_OF_EACH_ORDER));
        }
        let is_kept = |at: &usize| u32::try_from(*at).is_ok_and(|at| kept.contains(&at));
        let mut rows: Vec<Row> = Vec::with_capacity(kept.len());
        rows.extend(
            self.rows.iter().enumerate().filter(|(at, _)| is_kept(at)).map(|it| it.1.clone()),
        );
        Frame {
            time: self.time.clone(),
            standstill: self.standstill.clone(),
            before: self.before.clone(),
            spent: self.spent.clone(),
            spent_absent: self.spent_absent.clone(),
            signal: self.signal.clone(),
            rows_left_out: self.rows_left_out + self.rows.len() - rows.len(),
            rows,
            sessions: self.sessions.iter().take(SESSIONS_KEPT).map(Session::shortened).collect(),
            details: HashMap::new(),
            ..*self
        }
    }

    /// The load by class; `None` if it was not measured.
    pub(crate) fn load_by(&self) -> Option<&ByClass> {
        self.spent.as_ref()?.load.as_ref()
    }

    /// Mean time that a finished statement waited for a processor, before its start included, nanoseconds.
    pub(crate) fn queued_ns(&self) -> Option<f64> {
        let spent = self.spent.as_ref()?;
        let before_start_ns = spent.usage?.queue_before_start_ns as f64;
        let after_it_ns = spent.parts.as_ref()?.get(TimeClass::RunQueue);
        Some((before_start_ns + after_it_ns) / self.overview.statements as f64)
    }

    /// Every way to rank the digests: by a class only where there is time in it.
    pub(crate) fn orders(&self) -> Vec<Sort> {
        let classes = self.load_by().into_iter().flat_map(ByClass::iter);
        Sort::ALWAYS.into_iter().chain(classes.map(|(class, _)| Sort::Time(class))).collect()
    }

    /// Length in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// A count per second.
    pub(crate) fn rate(&self, n: f64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { n / seconds } else { 0.0 }
    }

    /// The row of a digest.
    pub(crate) fn row(&self, key: &DigestKey) -> Option<&Row> {
        let at = self.rows.binary_search_by_key(key, |row| row.key).ok()?;
        self.rows.get(at)
    }

    /// The load of a digest: 0 if it did not run, `None` if that is not known, or not any more.
    pub(crate) fn load_of(&self, key: &DigestKey) -> Option<f64> {
        match self.row(key) {
            Some(row) => row.load.get(),
            None => (self.rows_left_out == 0).then_some(0.0),
        }
    }

    /// The sum of the load of all digests of which it is known: what shares are shares of.
    pub(crate) fn load_of_all(&self) -> f64 {
        self.rows.iter().filter_map(|row| row.load.get()).sum()
    }

    /// Bytes that it takes, names apart.
    pub(crate) fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Row::bytes).sum();
        let spent = self.spent.as_ref().map_or(0, |spent| spent.bytes());
        let sessions: usize = self.sessions.iter().map(Session::bytes).sum();
        let texts = self.time.len() + self.standstill.len() + self.spent_absent.len();
        size_of::<Frame>() + texts + spent + rows + sessions
    }
}
