//! One statement that ended, as the tap saw it.

use crate::{Command, LockWait, Parts, SessionSettings, Usage};

/// What tells a statement from every other of its server: the session, its connection id, and the
/// start as the server notes it (microseconds of its own clock). It is the same while the statement
/// runs and when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatementKey {
    /// Address of the session inside the server.
    pub thd: u64,
    /// The connection id; addresses are used again.
    pub connection_id: u64,
    /// The start; a session runs one statement after the other.
    pub noted_start_us: u64,
}

/// The server's status flags that go with a reply (`SERVER_STATUS_…` and `SERVER_QUERY_…` in
/// `include/mysql_com.h`, the same numbers in every family).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus(pub u32);

impl ServerStatus {
    /// More results follow: another statement of the packet, or more of a procedure.
    pub fn more_results(self) -> bool {
        self.0 & 0x0008 != 0
    }
    /// No good index could be used.
    pub fn no_good_index_used(self) -> bool {
        self.0 & 0x0010 != 0
    }
    /// No index was used.
    pub fn no_index_used(self) -> bool {
        self.0 & 0x0020 != 0
    }
}

/// Who sent a statement and in which database, in the bytes that the server holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user; `None` before authentication.
    pub user: Option<Vec<u8>>,
    /// The client's host name, or its address where the name was not resolved.
    pub host: Option<Vec<u8>>,
    /// The default database; `None` if none is chosen.
    pub database: Option<Vec<u8>>,
}

/// The text of a statement as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes read, at most the capture limit.
    pub bytes: &'a [u8],
    /// The true length in bytes.
    pub length: u64,
}

impl Text<'_> {
    /// Whether the statement is longer than what was read.
    pub fn is_truncated(&self) -> bool {
        self.length > self.bytes.len() as u64
    }
}

/// How a statement came to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A client sent it: it ended with a reply of its own.
    Client,
    /// It ran inside another statement (a routine or a trigger), an event or a replica applier.
    Nested,
}

/// One statement that ended. A number that the layout of this build does not give is `None`; the
/// reason stands in the layout, once.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// Process id of the server.
    pub pid: u32,
    /// Address of the session inside the server: the key of everything that belongs to it.
    pub thd: u64,
    /// The connection id that `SHOW PROCESSLIST` shows.
    pub connection_id: Option<u64>,
    /// The command.
    pub command: Option<Command>,
    /// How it came to run.
    pub origin: Origin,
    /// The start as the server notes it, microseconds of its own clock.
    pub noted_start_us: Option<u64>,
    /// When the last byte of the reply was handed to the kernel, nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub end_ns: u64,
    /// From the start that the server noted to `end_ns`, nanoseconds.
    pub latency_ns: Option<u64>,
    /// From the same start to the first byte of the reply, nanoseconds.
    pub first_byte_ns: Option<u64>,
    /// The text; `None` if it could not be read or the command has none.
    pub text: Option<Text<'a>>,
    /// The settings of its session; `None` if they are not known.
    pub settings: Option<SessionSettings>,
    /// Who and where.
    pub identity: &'a Identity,
    /// Rows sent to the client.
    pub rows_sent: Option<u64>,
    /// Rows that the storage engines handed up.
    pub rows_examined: Option<u64>,
    /// Rows changed; 0 if the reply carries no such number (a result set, an error). `None` also
    /// for what MariaDB's replica applier ran: it clears the number before the end.
    pub rows_affected: Option<u64>,
    /// Time in locks as this server counts it; what that means differs by family
    /// (`docs/reference/watch-numbers.md`).
    pub lock_ns: Option<u64>,
    /// The error number; 0 for success.
    pub error: Option<u32>,
    /// Status flags of the reply.
    pub server_status: Option<ServerStatus>,
    /// Bytes handed to the kernel for this reply.
    pub bytes_sent: Option<u64>,
    /// The client had gone when the reply was sent.
    pub client_gone: bool,
    /// Where its time went: classes whose sum is the latency.
    pub parts: Option<Parts>,
    /// What it used beside its time.
    pub usage: Option<Usage>,
    /// What the session's thread worked after the reply of the statement **before** this one,
    /// nanoseconds: known only when the thread waits for the next request.
    pub after_reply_before_ns: Option<u64>,
    /// Its long waits for locks.
    pub lock_waits: &'a [LockWait],
}

impl<'a> Statement<'a> {
    /// A client's statement with nothing but its end: every reading is absent.
    pub fn unread(end_ns: u64, identity: &'a Identity) -> Statement<'a> {
        Statement {
            pid: 0,
            thd: 0,
            connection_id: None,
            command: None,
            origin: Origin::Client,
            noted_start_us: None,
            end_ns,
            latency_ns: None,
            first_byte_ns: None,
            text: None,
            settings: None,
            identity,
            rows_sent: None,
            rows_examined: None,
            rows_affected: None,
            lock_ns: None,
            error: None,
            server_status: None,
            bytes_sent: None,
            client_gone: false,
            parts: None,
            usage: None,
            after_reply_before_ns: None,
            lock_waits: &[],
        }
    }

    /// What tells it from every other statement of its server.
    pub fn key(&self) -> StatementKey {
        StatementKey {
            thd: self.thd,
            connection_id: self.connection_id.unwrap_or(0),
            noted_start_us: self.noted_start_us.unwrap_or(0),
        }
    }

    /// Its parts, where they sum to its latency. Parts that do not are not those of this statement: they count as
    /// not measured, so that no sum of parts differs from that of the latencies.
    pub fn parts_of_latency(&self) -> Option<&Parts> {
        self.parts.as_ref().filter(|parts| Some(parts.total()) == self.latency_ns)
    }

    /// When it began, `CLOCK_MONOTONIC` nanoseconds.
    pub fn start_ns(&self) -> Option<u64> {
        self.latency_ns.map(|latency| self.end_ns.saturating_sub(latency))
    }
}
