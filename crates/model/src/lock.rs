//! Locks and waits as they were read in the memory of a server.

use crate::{Command, Identity, Reading, TimeClass};

/// Who waits and who holds, at one moment.
#[derive(Clone, Debug)]
pub struct SeenLocks {
    /// The sessions of clients, by connection id.
    pub sessions: Vec<SeenSession>,
    /// Metadata locks that somebody waits for, and those of others on the same objects.
    pub metadata: Reading<Vec<SeenMetadataLock>>,
    /// Waits for locks of InnoDB.
    pub rows: Reading<Vec<SeenRowWait>>,
    /// Sessions that were seen but could not be read.
    pub unreadable: usize,
    /// Whether a pool of threads serves the server: then sessions are not seen while they are idle.
    pub is_pooled: bool,
}

/// A session, idle or not.
#[derive(Clone, Debug, Default)]
pub struct SeenSession {
    /// Address of the session inside the server.
    pub thd: u64,
    /// The connection id.
    pub connection_id: u64,
    /// What it does.
    pub command: Command,
    /// Whether it, or its statement, was killed; `None` where that is not known.
    pub is_killed: Option<bool>,
    /// When its statement began, or its last one: microseconds of the server's clock.
    pub noted_start_us: Option<u64>,
    /// Who and where.
    pub identity: Identity,
    /// The state.
    pub state: Option<Vec<u8>>,
    /// The first bytes of what it runs.
    pub text: Option<Vec<u8>>,
    /// What its thread waits for; `None` where that is not known, or it runs nothing.
    pub waits_for: Option<TimeClass>,
}

/// A metadata lock of a session, or its request for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenMetadataLock {
    /// Whose it is.
    pub connection_id: u64,
    /// Address of the lock: locks on one object have one.
    pub lock: u64,
    /// The kind of object, as the server numbers it.
    pub namespace: u8,
    /// The database; empty for some kinds.
    pub schema: Vec<u8>,
    /// The name of the object; empty for some kinds.
    pub name: Vec<u8>,
    /// The mode, as the server numbers it.
    pub mode: u32,
    /// Whether it waits.
    pub is_pending: bool,
}

/// A transaction waits for a lock of InnoDB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenRowWait {
    /// Who waits.
    pub connection_id: u64,
    /// Who holds a lock in the way, or has asked before, where nobody holds one.
    pub blockers: Vec<u64>,
    /// Whether all transactions could be read: then `blockers` lacks nobody.
    pub is_whole: bool,
    /// Why `blockers` is empty.
    pub unknown: Option<String>,
    /// Who may be the blocker, where that is not certain.
    pub candidates: Vec<u64>,
    /// Database and table.
    pub table: Option<(Vec<u8>, Vec<u8>)>,
    /// Tablespace, page and number in the page's heap; `None` of a lock of the whole table.
    pub record: Option<(u32, u32, u32)>,
    /// The mode with its flags, as all servers number it.
    pub mode: u32,
}
