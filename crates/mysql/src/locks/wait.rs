//! One wait for a lock.

use std::fmt;

use serde::{Serialize, Serializer};
use waggle_model::WaitsFor;

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
    /// No lock: the end of everything that uses a table from before a flush.
    Flush,
    /// No lock: other workers of replication.
    Replication,
    /// No lock: somebody or something else, as the state says.
    None,
    /// Something else, as far as is known a lock; the state says what.
    Other,
}

impl LockKind {
    /// What the state of a session tells; `None` where nobody holds it up.
    pub fn of(waits_for: WaitsFor) -> Option<LockKind> {
        match waits_for {
            WaitsFor::Nobody => None,
            WaitsFor::MetadataLock => Some(LockKind::Metadata),
            WaitsFor::TableLock => Some(LockKind::Table),
            WaitsFor::OldTables => Some(LockKind::Flush),
            WaitsFor::EarlierCommit | WaitsFor::Workers => Some(LockKind::Replication),
            WaitsFor::NoLock(_) => Some(LockKind::None),
            WaitsFor::Unnamed(_) | WaitsFor::Unknown => Some(LockKind::Other),
        }
    }
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
    /// The state of the session; `None` for a row lock, for which no server has a state.
    pub state: Option<String>,
}

impl Lock {
    /// A lock that is known only by its kind.
    pub fn of(kind: LockKind) -> Lock {
        Lock { kind, object: None, index: None, mode: None, record: None, key: None, state: None }
    }

    /// Whether two waiters are in one queue: for the same record or the same object.
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
    /// Sessions that can be the blocker; empty if nothing is known.
    pub candidates: Vec<Key>,
}

/// Somebody waits for a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The waiter.
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
    /// Why somebody may be missing in `blockers`; `None`: all are there.
    pub not_all: Option<&'static str>,
    /// Whether everybody who holds the lock has got it since this one asked.
    pub overtaken: bool,
    /// Why `blockers` is empty.
    pub unknown: Option<Unknown>,
    /// Who said so.
    pub source: Source,
}

/// Where a wait was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In tables of the server, with an account.
    #[default]
    Sql,
    /// In the memory of the server.
    Memory,
}

impl Wait {
    /// Nobody can be named, and why.
    pub(super) fn leave_unknown(&mut self, why: impl Into<String>) {
        self.unknown = Some(Unknown { why: why.into(), candidates: Vec::new() });
    }

    /// The server does not say who blocks. If only one of all who can do so is left, it is that one.
    /// Not for candidates who may not be all: those stay candidates, also if there is only one.
    pub(super) fn eliminate(&mut self, mut candidates: Vec<Key>, why: &str) {
        if candidates.len() == 1 {
            self.blockers.append(&mut candidates);
            self.by_elimination = true;
        } else {
            self.unknown = Some(Unknown { why: why.to_owned(), candidates });
        }
    }
}
