//! One look at the locks of a server.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::Reading;

use super::gate::{self, RowWaits, Source};
use super::sessions::{self, Session};
use super::tree::Tree;
use super::wait::{Key, Wait};
use super::{WAITERS_MAX, metadata, rows};
use crate::connection::{Connection, ConnectionError};

/// What one poll found.
#[derive(Clone, Debug)]
pub struct Locks {
    /// How InnoDB counts its waits.
    pub row_waits: Reading<RowWaits>,
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
        let rows = self.row_waits.value().is_some_and(|waits| waits.now > 0);
        let metadata = self.metadata_waits.value().is_some_and(|waits| *waits > 0);
        let is_empty = self.tree.roots.is_empty() && self.tree.undetermined.is_empty();
        match rows || metadata || !is_empty {
            true => Some(true),
            false => self.not_known.is_empty().then_some(false),
        }
    }
}

/// Looks again and again; it knows what this account may read and what the last poll saw.
pub struct Poller {
    source: Source,
    may_see_processes: bool,
    row_waits_before: Option<u64>,
}

impl Poller {
    /// Finds out what can be read. The session's time zone becomes the server's, in which InnoDB
    /// gives its times.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn new(connection: &mut Connection) -> Result<Poller, ConnectionError> {
        connection.rows("SET SESSION time_zone = 'SYSTEM', SESSION sql_mode = ''")?;
        let source = Source::find(connection)?;
        let may_see_processes = gate::may_see_processes(connection)?;
        Ok(Poller { source, may_see_processes, row_waits_before: None })
    }

    /// Looks once: two statements where nothing waits.
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
        if self.rows_may_wait(row_waits.value()) {
            match rows::read(connection, self.may_see_processes)? {
                Reading::Value(found) => waits.extend(found),
                Reading::Absent(why) => not_known.push(why),
            }
        }
        if let Some(waiting) = waiting.value().filter(|waiting| !waiting.is_empty()) {
            waits.extend(metadata::read(connection, waiting)?);
        }
        self.note_limits(&waits, &mut not_known);
        let tree = Tree::build(waits);
        let sessions = self.sessions(connection, &tree)?;
        let metadata_waits = waiting.map(|waiting| waiting.len());
        let statements = connection.statements() - sent_before;
        Ok(Locks { row_waits, metadata_waits, tree, sessions, not_known, statements })
    }

    /// The gauge has been seen to drift, so that a counter which moved counts as well.
    fn rows_may_wait(&mut self, waits: Option<&RowWaits>) -> bool {
        let Some(waits) = waits else { return false };
        let before = self.row_waits_before.replace(waits.since_start);
        waits.now > 0 || before.is_some_and(|before| waits.since_start != before)
    }

    fn note_limits(&self, waits: &[Wait], not_known: &mut Vec<String>) {
        if waits.len() >= WAITERS_MAX {
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
