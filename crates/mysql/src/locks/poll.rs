//! One look at the locks of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use waggle_model::Reading;

use super::gate::{self, RowWaits, Source};
use super::sessions::{self, Session};
use super::tree::Tree;
use super::wait::{Key, LockKind, Wait};
use super::{WAITERS_MAX, metadata, rows};
use crate::connection::{Connection, ConnectionError, IDLE_MAX_S};

/// What one poll found.
#[derive(Clone, Debug)]
pub struct Locks {
    /// How InnoDB counts its waits.
    pub row_waits: Reading<RowWaits>,
    /// Transactions that were seen to wait for a row lock, at most [`WAITERS_MAX`]; `None` where nothing called for a
    /// look at them, or they may not be seen.
    pub row_waiters: Option<usize>,
    /// Sessions that wait for a metadata lock or the lock of a table; at most one more than
    /// [`WAITERS_MAX`].
    pub metadata_waits: Reading<usize>,
    /// Who blocks whom.
    pub tree: Tree,
    /// Everybody in the tree of whom something is known.
    pub sessions: BTreeMap<Key, Session>,
    /// What could not be read, each with its remedy.
    pub not_known: Vec<String>,
    /// Statements that this poll sent.
    pub statements: u64,
}

impl Locks {
    /// Whether somebody waits; `None` where nobody was found, and not everywhere could be looked.
    pub fn somebody_waits(&self) -> Option<bool> {
        let by_gauge = || self.row_waits.value().is_some_and(|waits| waits.now > 0);
        let rows = self.row_waiters.map_or_else(by_gauge, |waiters| waiters > 0);
        let metadata = self.metadata_waits.value().is_some_and(|waits| *waits > 0);
        let is_empty = self.tree.roots.is_empty() && self.tree.undetermined.is_empty();
        match rows || metadata || !is_empty {
            true => Some(true),
            false => self.not_known.is_empty().then_some(false),
        }
    }
}

/// InnoDB makes its copy of the transactions anew only when nobody has read it for a tenth of a second
/// (`CACHE_MIN_IDLE_TIME_US` in `storage/innobase/trx/trx0i_s.cc`).
const COPY_IS_OLD: Duration = Duration::from_millis(120);

/// So many polls in a row may go without a look at transactions.
const QUIET_MAX: u32 = 10;

/// Looks again and again; it knows what this account may read and what the last poll saw.
pub struct Poller {
    source: Source,
    may_see_processes: bool,
    before: Before,
}

/// What the last poll saw of row locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    /// Waits since the server's start; `None`: there was no poll yet.
    waits: Option<u64>,
    /// Whether a transaction waited, as far as that is known.
    waiting: bool,
    /// Whether the gauge was above 0 and nobody waited.
    gauge_is_off: bool,
    /// Polls since transactions were looked at.
    quiet: u32,
}

impl Before {
    /// Before the first poll a transaction may have waited for long.
    const NOTHING: Before = Before { waits: None, waiting: true, gauge_is_off: false, quiet: 0 };

    /// Whether transactions have to be looked at. The gauge has been seen to drift, so that a counter which moved
    /// counts as well, and who waited may wait on. Neither counts who waits for a table of InnoDB (`lock_wait_suspend_thread`
    /// in `storage/innobase/lock/lock0wait.cc`), such as one that gives numbers: hence a look now and then.
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
        Ok(Poller { source, may_see_processes, before: Before::NOTHING })
    }

    /// Looks once: two statements where nothing waits, one more the first time and now and then.
    ///
    /// # Errors
    /// The connection is broken, or the server refuses a statement for another reason than a
    /// missing right.
    pub fn poll(&mut self, connection: &mut Connection) -> Result<Locks, ConnectionError> {
        let sent_before = connection.statements();
        let mut not_known = Vec::new();
        let row_waits = gate::row_waits(connection)?;
        let waiting = gate::waiting(connection, &self.source)?;
        not_known.extend(row_waits.why().into_iter().chain(waiting.why()).map(str::to_owned));
        let mut waits: Vec<Wait> = Vec::new();
        let found = self.row_waits(connection, row_waits.value())?;
        let row_waiters = found.as_ref().and_then(Reading::value).map(Vec::len);
        match found {
            Some(Reading::Value(found)) => waits.extend(found),
            Some(Reading::Absent(why)) => not_known.push(why),
            None => {}
        }
        if let Some(waiting) = waiting.value().filter(|waiting| !waiting.is_empty()) {
            waits.extend(metadata::read(connection, waiting)?);
        }
        self.note_limits(&waits, &mut not_known);
        let tree = Tree::build(waits);
        let sessions = self.sessions(connection, &tree)?;
        let metadata_waits = waiting.map(|waiting| waiting.len());
        let statements = connection.statements() - sent_before;
        Ok(Locks { row_waits, row_waiters, metadata_waits, tree, sessions, not_known, statements })
    }

    /// Who waits for a row lock; `None` where nothing calls for a look.
    fn row_waits(
        &mut self,
        connection: &mut Connection,
        now: Option<&RowWaits>,
    ) -> Result<Option<Reading<Vec<Wait>>>, ConnectionError> {
        let Some(now) = now else { return Ok(None) };
        let mut before = self.before;
        // What may not be seen is told where there is something to see.
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
        let mut sessions = sessions::read(connection, &self.source, &keys)?;
        if self.may_see_processes {
            for (key, transaction) in rows::details(connection, &keys)? {
                if keys.contains(&key) {
                    sessions.entry(key).or_default().transaction = Some(transaction);
                }
            }
        }
        Ok(sessions)
    }
}

impl Tree {
    /// Everybody who stands in it, and those of whom one may be a blocker.
    fn participants(&self) -> BTreeSet<Key> {
        fn add(node: &super::Node, keys: &mut BTreeSet<Key>) {
            keys.insert(node.key.clone());
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

    #[test]
    fn who_was_seen_counts_and_the_gauge_only_where_nobody_was_looked_at() {
        let locks = |gauge, row_waiters| Locks {
            row_waits: Reading::Value(RowWaits { now: gauge, since_start: 9 }),
            row_waiters,
            metadata_waits: Reading::Value(0),
            tree: Tree::default(),
            sessions: BTreeMap::new(),
            not_known: Vec::new(),
            statements: 2,
        };
        assert_eq!(locks(1, None).somebody_waits(), Some(true));
        assert_eq!(locks(1, Some(0)).somebody_waits(), Some(false), "it has drifted");
        assert_eq!(locks(0, Some(1)).somebody_waits(), Some(true), "it has drifted");
        assert_eq!(locks(0, None).somebody_waits(), Some(false));
    }
}
