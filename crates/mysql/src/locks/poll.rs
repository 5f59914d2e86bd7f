//! One look at the locks of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use waggle_model::{Reading, WaitsFor};

use super::gate::{self, RowWaits, Source, Waiting};
use super::sessions::{self, Session};
use super::tree::Tree;
use super::wait::{Key, LockKind, Wait};
use super::{WAITERS_MAX, both, rows, told};
use crate::connection::{Connection, ConnectionError, IDLE_MAX_S};

/// What one poll found.
#[derive(Clone, Debug)]
pub struct Locks {
    /// How InnoDB counts its waits.
    pub row_waits: Reading<RowWaits>,
    /// Transactions seen waiting for a row lock, at most [`WAITERS_MAX`]; `None` if this poll did
    /// not need them, or the account may not see them.
    pub row_waiters: Option<usize>,
    /// Sessions that wait for a lock that is none of rows, or for something else. Of those whose state says so at most one
    /// more than [`WAITERS_MAX`] are counted.
    pub other_waits: Reading<usize>,
    /// Of those, the sessions that wait for no lock.
    pub waits_without_lock: usize,
    /// Of those, the connections that InnoDB does not let in; `None` where their threads do not tell that of all.
    pub kept_out: Option<BTreeSet<u64>>,
    /// Who blocks whom.
    pub tree: Tree,
    /// Everybody in the tree of whom something is known.
    pub sessions: BTreeMap<Key, Session>,
    /// What could not be read, each with its remedy.
    pub not_known: Vec<String>,
    /// How long after the server was asked its memory was read, where both are in the tree.
    pub memory_after: Option<Duration>,
    /// When the look was over.
    pub over: Instant,
    /// Statements that this poll sent.
    pub statements: u64,
}

/// What the memory of a server tells ([`super::in_memory`]), or why it cannot be read.
pub type Memory = Result<Locks, String>;

impl Locks {
    /// Whether somebody waits.
    pub fn somebody_waits(&self) -> SomebodyWaits {
        let by_gauge = || self.row_waits.value().is_some_and(|waits| waits.now > 0);
        let rows = self.row_waiters.map_or_else(by_gauge, |waiters| waiters > 0);
        let other = self.other_lock_waits().is_some_and(|waits| waits > 0);
        if rows || other || self.tree.has_lock_waits() {
            return SomebodyWaits::ForLock;
        }
        match (self.waits_without_lock, self.not_known.is_empty()) {
            (count @ 1.., _) => SomebodyWaits::NotForLock(count),
            (0, true) => SomebodyWaits::No,
            (0, false) => SomebodyWaits::NotKnown,
        }
    }

    /// Sessions that wait for a lock that is none of rows; `None` where that is not known.
    pub fn other_lock_waits(&self) -> Option<usize> {
        Some(self.other_waits.value()?.saturating_sub(self.waits_without_lock))
    }
}

/// What is known of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SomebodyWaits {
    /// Somebody waits for a lock, or for a session that holds it up.
    ForLock,
    /// Nobody does, but this many sessions wait for something else.
    NotForLock(usize),
    /// Nobody waits.
    No,
    /// Nobody was found, and not everywhere could be looked.
    NotKnown,
}

impl fmt::Display for SomebodyWaits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SomebodyWaits::ForLock => write!(out, "somebody waits for a lock"),
            SomebodyWaits::NotForLock(1) => write!(out, "1 session waits, not for a lock"),
            SomebodyWaits::NotForLock(count) => {
                write!(out, "{count} sessions wait, not for a lock")
            }
            SomebodyWaits::No => write!(out, "nobody waits"),
            SomebodyWaits::NotKnown => {
                write!(out, "nobody was found to wait, but not everywhere could be looked")
            }
        }
    }
}

/// InnoDB renews its copy of the transactions only if nobody has read it for a tenth of a second
/// (`CACHE_MIN_IDLE_TIME_US` in `storage/innobase/trx/trx0i_s.cc`).
const COPY_IS_OLD: Duration = Duration::from_millis(120);

/// The maximum number of polls in a row without a look at transactions.
const QUIET_MAX: u32 = 10;

/// Looks again and again; it knows what this account may read and what the last poll saw.
pub struct Poller {
    source: Source,
    /// Where the states of the sessions are.
    states: Source,
    may_see_processes: bool,
    /// Whether InnoDB can limit how many statements it lets in.
    has_limit: bool,
    before: Before,
}

/// What the last poll saw of row locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    /// Waits since the server's start; `None` before the first poll.
    waits: Option<u64>,
    /// Whether a transaction waited, as far as that is known.
    waiting: bool,
    /// Whether the gauge was above 0 and nobody waited.
    gauge_is_off: bool,
    /// Polls since the last look at transactions.
    quiet: u32,
}

impl Before {
    /// Before the first poll a transaction may have waited for long.
    const NOTHING: Before = Before { waits: None, waiting: true, gauge_is_off: false, quiet: 0 };

    /// Whether this poll has to look at transactions. The gauge has been seen to drift, so a
    /// changed counter is a reason too; and a wait may last from poll to poll. Neither counter
    /// includes waits for an InnoDB table (`lock_wait_suspend_thread` in
    /// `storage/innobase/lock/lock0wait.cc`), such as for its next `AUTO_INCREMENT` value. Hence a
    /// look from time to time.
    fn calls_for_a_look(self, now: &RowWaits) -> bool {
        self.waiting
            || self.quiet >= QUIET_MAX
            || now.now > 0
            || self.waits.is_some_and(|before| before != now.since_start)
    }
}

impl Poller {
    /// Finds out what can be read. The session's time zone becomes the server's, in which InnoDB
    /// gives its times.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn new(connection: &mut Connection) -> Result<Poller, ConnectionError> {
        connection.rows(&format!(
            "SET SESSION time_zone = 'SYSTEM', SESSION sql_mode = '', \
             SESSION wait_timeout = {IDLE_MAX_S}"
        ))?;
        let source = Source::find(connection)?;
        let may_see_processes = gate::may_see_processes(connection)?;
        let states = source.of_states(connection, may_see_processes);
        let has_limit = gate::has_limit(connection)?;
        Ok(Poller { source, states, may_see_processes, has_limit, before: Before::NOTHING })
    }

    /// Looks once. It takes two statements if nothing waits, and one more the first time and from
    /// time to time.
    ///
    /// # Errors
    /// The connection is broken, or the server refuses a statement for another reason than a
    /// missing right.
    pub fn poll(&mut self, connection: &mut Connection) -> Result<Locks, ConnectionError> {
        self.poll_with(connection, &mut |_| None)
    }

    /// As [`Poller::poll`]. Where SQL does not tell all, `memory` is asked for what the memory of the server tells; `None`:
    /// it shall not be read.
    ///
    /// # Errors
    /// As [`Poller::poll`].
    pub fn poll_with(
        &mut self,
        connection: &mut Connection,
        memory: &mut dyn FnMut(&mut Connection) -> Option<Memory>,
    ) -> Result<Locks, ConnectionError> {
        let (sent_before, begun) = (connection.statements(), Instant::now());
        let mut not_known = Vec::new();
        let counters = gate::counters(connection, self.has_limit)?;
        let row_waits = counters.row_waits;
        let waiting = gate::waiting(connection, &self.states)?;
        not_known.extend(row_waits.why().into_iter().chain(waiting.why()).map(str::to_owned));
        not_known.extend(self.states.leaves_out(connection));
        let mut waits: Vec<Wait> = Vec::new();
        let found = self.row_waits(connection, row_waits.value())?;
        let row_waiters = found.as_ref().and_then(Reading::value).map(Vec::len);
        match found {
            Some(Reading::Value(found)) => waits.extend(found),
            Some(Reading::Absent(why)) => not_known.push(why),
            None => {}
        }
        if let Some(waiting) = waiting.value().filter(|waiting| !waiting.is_empty()) {
            waits.extend(told::read(connection, &self.source, waiting)?);
        }
        self.note_limits(&waits, &mut not_known);
        // Who waits for a lock is not kept out.
        let busy = counters.running.map(|running| running.saturating_sub(waits.len() as u64));
        let exceeded_limit = counters.limit.filter(|limit| busy.is_some_and(|busy| busy > *limit));
        let mut tree = Tree::build(waits);
        let is_in_doubt = tree.is_in_doubt() || !not_known.is_empty() || exceeded_limit.is_some();
        let memory = match is_in_doubt.then(|| memory(connection)).flatten() {
            Some(Ok(memory)) => Some(memory),
            Some(Err(why)) => {
                not_known.push(format!("the memory of the server is not read: {why}"));
                None
            }
            None => None,
        };
        let memory_after = memory.as_ref().map(|_| begun.elapsed());
        // No state says that a session is kept out of InnoDB, but its thread does.
        let mut kept_out = None;
        if let Some(memory) = &memory {
            let by_state = waiting.value().map(Vec::as_slice).unwrap_or_default();
            kept_out = kept_out_beside(&tree.waits(), by_state, memory);
            tree = both::tree(&tree, &memory.tree);
        }
        let mut sessions = self.sessions(connection, &tree)?;
        if let Some(memory) = &memory {
            both::sessions(&mut sessions, &tree, memory);
        }
        let is_none = |one: &&Waiting| matches!(one.waits_for, WaitsFor::NoLock(_));
        let by_sql = waiting.value().into_iter().flatten().filter(is_none).count();
        not_known.extend(exceeded_limit.filter(|_| kept_out.is_none()).map(of_limit));
        let by_thread = kept_out.as_ref().map_or(0, BTreeSet::len);
        let waits_without_lock = by_sql + by_thread;
        let other_waits = waiting.map(|waiting| waiting.len() + by_thread);
        let statements = connection.statements() - sent_before;
        Ok(Locks {
            row_waits,
            row_waiters,
            other_waits,
            waits_without_lock,
            kept_out,
            tree,
            sessions,
            not_known,
            memory_after,
            over: Instant::now(),
            statements,
        })
    }

    /// The transactions that wait for a row lock; `None` if this poll does not need them.
    fn row_waits(
        &mut self,
        connection: &mut Connection,
        now: Option<&RowWaits>,
    ) -> Result<Option<Reading<Vec<Wait>>>, ConnectionError> {
        let Some(now) = now else { return Ok(None) };
        let mut before = self.before;
        // A missing right is reported only if there is something to see.
        before.waiting &= self.may_see_processes;
        before.quiet = if self.may_see_processes { before.quiet } else { 0 };
        self.before = Before { waits: Some(now.since_start), waiting: false, ..before };
        if !before.calls_for_a_look(now) {
            self.before.gauge_is_off = false;
            self.before.quiet += 1;
            return Ok(None);
        }
        self.before.quiet = 0;
        let nobody = |found: &Reading<Vec<Wait>>| found.value().is_some_and(Vec::is_empty);
        let mut found = rows::read(connection, self.may_see_processes)?;
        if nobody(&found) && now.now > 0 && !before.gauge_is_off {
            std::thread::sleep(COPY_IS_OLD);
            found = rows::read(connection, self.may_see_processes)?;
        }
        self.before.waiting = found.value().is_some_and(|waits| !waits.is_empty());
        self.before.gauge_is_off = now.now > 0 && nobody(&found);
        Ok(Some(found))
    }

    fn note_limits(&self, waits: &[Wait], not_known: &mut Vec<String>) {
        let are_many = |is_row: bool| {
            waits.iter().filter(|wait| (wait.lock.kind == LockKind::Row) == is_row).count()
                >= WAITERS_MAX
        };
        if are_many(true) || are_many(false) {
            not_known
                .push(format!("only the {WAITERS_MAX} that wait longest of each kind are read"));
        }
    }

    fn sessions(
        &self,
        connection: &mut Connection,
        tree: &Tree,
    ) -> Result<BTreeMap<Key, Session>, ConnectionError> {
        let keys = tree.participants();
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Nothing is advised for others than roots.
        let ask_killed = self.may_see_processes && !tree.roots.is_empty();
        let mut sessions = sessions::read(connection, &self.source, ask_killed, &keys)?;
        if self.may_see_processes {
            for (key, transaction) in rows::details(connection, &keys)? {
                if keys.contains(&key) {
                    sessions.entry(key).or_default().transaction = Some(transaction);
                }
            }
        }
        let is_root = |key: &Key| tree.roots.iter().any(|root| root.key == *key);
        sessions::prepared(connection, sessions.iter_mut().filter(|(key, _)| is_root(key)))?;
        Ok(sessions)
    }
}

/// Whom InnoDB keeps out by the memory, less those of whom SQL tells that they wait. The memory is read later, and each
/// session counts once: as SQL tells it.
fn kept_out_beside(by_sql: &[Wait], by_state: &[Waiting], memory: &Locks) -> Option<BTreeSet<u64>> {
    let by_sql = by_sql.iter().filter_map(|wait| wait.waiter.connection_id());
    let told: BTreeSet<u64> = by_sql.chain(by_state.iter().map(|one| one.connection)).collect();
    Some(memory.kept_out.as_ref()? - &told)
}

/// What is not known where more statements run than InnoDB lets in.
fn of_limit(limit: u64) -> String {
    format!(
        "whether sessions wait for InnoDB to let them in: more statements run than innodb_thread_concurrency = {limit}; \
         SHOW ENGINE INNODB STATUS says how many (\"queries in queue\")"
    )
}

impl Tree {
    /// All sessions in it, including the possible blockers.
    pub(super) fn participants(&self) -> BTreeSet<Key> {
        fn add(node: &super::Node, keys: &mut BTreeSet<Key>) {
            keys.insert(node.key.clone());
            keys.extend(node.also_blocked_by.iter().take(WAITERS_MAX).cloned());
            node.waiters.iter().for_each(|waiter| add(waiter, keys));
        }
        let mut keys = BTreeSet::new();
        let nodes = self.roots.iter().chain(self.undetermined.iter().map(|(_, node)| node));
        nodes.for_each(|node| add(node, &mut keys));
        let candidates = self.undetermined.iter().flat_map(|(unknown, _)| &unknown.candidates);
        keys.extend(candidates.take(WAITERS_MAX).cloned());
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_alone_is_not_trusted() {
        let quiet = RowWaits { now: 0, since_start: 7 };
        let before = Before { waits: Some(7), waiting: false, gauge_is_off: false, quiet: 9 };
        assert!(Before::NOTHING.calls_for_a_look(&quiet), "somebody may wait since long");
        assert!(!before.calls_for_a_look(&quiet));
        assert!(before.calls_for_a_look(&RowWaits { now: 1, ..quiet }));
        assert!(before.calls_for_a_look(&RowWaits { since_start: 8, ..quiet }));
        assert!(Before { waiting: true, ..before }.calls_for_a_look(&quiet), "it may wait on");
        let long_ago = Before { quiet: QUIET_MAX, ..before };
        assert!(long_ago.calls_for_a_look(&quiet), "nobody counts who waits for a table");
    }

    fn nothing() -> Locks {
        Locks {
            row_waits: Reading::absent("not read"),
            row_waiters: None,
            other_waits: Reading::Value(0),
            waits_without_lock: 0,
            kept_out: None,
            tree: Tree::default(),
            sessions: BTreeMap::new(),
            not_known: Vec::new(),
            memory_after: None,
            over: Instant::now(),
            statements: 2,
        }
    }

    #[test]
    fn who_is_kept_out_after_another_wait_counts_once() {
        let waiting = |connection| Waiting {
            connection,
            state: "Waiting for table metadata lock".to_owned(),
            waits_for: WaitsFor::MetadataLock,
            seconds: None,
        };
        let kept_out = |ids: &[u64]| {
            let memory = Locks { kept_out: Some(ids.iter().copied().collect()), ..nothing() };
            let by_sql = [waiting(6).wait(LockKind::Row)];
            kept_out_beside(&by_sql, &[waiting(7)], &memory)
        };
        assert_eq!(kept_out(&[6, 7, 8]), Some(BTreeSet::from([8])));
        assert_eq!(kept_out(&[7]), Some(BTreeSet::new()), "it is known of all");
        assert_eq!(kept_out_beside(&[], &[], &nothing()), None);
    }

    #[test]
    fn who_was_seen_counts_and_the_gauge_only_where_nobody_was_looked_at() {
        let locks = |gauge, row_waiters| Locks {
            row_waits: Reading::Value(RowWaits { now: gauge, since_start: 9 }),
            row_waiters,
            ..nothing()
        };
        let (yes, no) = (SomebodyWaits::ForLock, SomebodyWaits::No);
        assert_eq!(locks(1, None).somebody_waits(), yes);
        assert_eq!(locks(1, Some(0)).somebody_waits(), no, "it has drifted");
        assert_eq!(locks(0, Some(1)).somebody_waits(), yes, "it has drifted");
        assert_eq!(locks(0, None).somebody_waits(), no);
        let not_known = Locks { not_known: vec!["no right".to_owned()], ..locks(0, None) };
        assert_eq!(not_known.somebody_waits(), SomebodyWaits::NotKnown);
        let no_lock = |waits| Locks {
            other_waits: Reading::Value(waits),
            waits_without_lock: 101,
            kept_out: None,
            ..not_known.clone()
        };
        assert_eq!(no_lock(101).somebody_waits(), SomebodyWaits::NotForLock(101));
        assert_eq!(
            (no_lock(102).somebody_waits(), no_lock(102).other_lock_waits()),
            (yes, Some(1))
        );
    }
}
