//! One wait for a lock.

use std::fmt;

use serde::{Serialize, Serializer};

/// Who takes part in a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A session, by the id that `KILL` takes.
    Session(u64),
    /// A transaction without a session: prepared by XA, or recovered after a crash. By `trx_id`.
    Detached(String),
}

impl Key {
    /// The connection id, where there is one.
    pub fn connection_id(&self) -> Option<u64> {
        match self {
            Key::Session(id) => Some(*id),
            Key::Detached(_) => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Session(id) => id.fmt(out),
            Key::Detached(transaction) => {
                write!(out, "transaction {transaction} without a session")
            }
        }
    }
}

/// A connection id as a number, a transaction without a session as a text.
impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Key::Session(id) => serializer.serialize_u64(*id),
            Key::Detached(transaction) => serializer.serialize_str(transaction),
        }
    }
}

/// Which part of the server a lock belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A row or a table inside InnoDB.
    Row,
    /// A metadata lock of the server.
    Metadata,
    /// A lock of a table as a whole, of an engine without row locks.
    Table,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// The kind of lock.
    pub kind: LockKind,
    /// `schema.table`, or what else the lock is on: `GLOBAL`, `SCHEMA shop`.
    pub object: Option<String>,
    /// The index, of a row lock.
    pub index: Option<String>,
    /// The mode as the server names it: `X,REC_NOT_GAP`, `EXCLUSIVE`.
    pub mode: Option<String>,
    /// Where the record lies: tablespace, page, and its number in the page's heap.
    pub record: Option<String>,
    /// Key of the record (`LOCK_DATA`). It is data.
    pub key: Option<String>,
}

impl Lock {
    /// A lock of which only the kind is known.
    pub fn of(kind: LockKind) -> Lock {
        Lock { kind, object: None, index: None, mode: None, record: None, key: None }
    }

    /// Whether two waiters stand in one queue: for the same record, or for the same object.
    pub(super) fn same_queue(&self, other: &Lock) -> bool {
        self.kind == other.kind
            && match (&self.record, &other.record) {
                (Some(one), Some(two)) => one == two,
                (None, None) => self.object.is_some() && self.object == other.object,
                _ => false,
            }
    }
}

/// Why it is not known who blocks a waiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The reason, and what to do about it.
    pub why: String,
    /// Who can be the blocker, where the others cannot; empty where nothing is known.
    pub candidates: Vec<Key>,
}

/// Somebody waits for a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Who waits.
    pub waiter: Key,
    /// What for.
    pub lock: Lock,
    /// For how long, in seconds. Of a row lock as InnoDB counts it, in whole seconds; of other
    /// locks the time of the statement, which is a little longer.
    pub waited_s: Option<f64>,
    /// Who holds the lock or stands before in the queue.
    pub blockers: Vec<Key>,
    /// The only one who can hold the lock, as all others cannot; the server does not say it.
    pub by_elimination: bool,
    /// Why `blockers` is empty.
    pub unknown: Option<Unknown>,
}

impl Wait {
    /// The server does not say who blocks. Where only one can, it is that one.
    pub(super) fn eliminate(&mut self, mut candidates: Vec<Key>, why: &str) {
        if candidates.len() == 1 {
            self.blockers.append(&mut candidates);
            self.by_elimination = true;
        } else {
            self.unknown = Some(Unknown { why: why.to_owned(), candidates });
        }
    }
}
