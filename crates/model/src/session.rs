//! One statement that is running now.

use std::sync::Arc;

use crate::{Command, DigestKey, Identity, SessionSettings, StatementKey, Text, TimeClass};

/// A statement that was running when its session was read from outside.
#[derive(Clone, Debug, Default)]
pub struct RunningStatement {
    /// Address of the session inside the server.
    pub thd: u64,
    /// The connection id that `SHOW PROCESSLIST` shows.
    pub connection_id: u64,
    /// The command.
    pub command: Command,
    /// The start as the server notes it, microseconds of its own clock.
    pub noted_start_us: Option<u64>,
    /// Since when it runs, nanoseconds of `CLOCK_MONOTONIC`; `None` if the start is not known.
    pub start_ns: Option<u64>,
    /// The first bytes of the text; `None` if the command has none or it changed under the
    /// reader.
    pub text: Option<Vec<u8>>,
    /// The true length of the text in bytes.
    pub text_length: u64,
    /// The settings of the session; `None` if they are not known.
    pub settings: Option<SessionSettings>,
    /// Who and where.
    pub identity: Identity,
    /// What the server says that it does (`PROCESSLIST_STATE`).
    pub state: Option<Vec<u8>>,
    /// Whether its thread has slept since the look before, all the time; `None` if this statement
    /// was not seen at that look.
    pub has_slept: Option<bool>,
    /// What it does now; `None` where waits are not measured, or it changed over meanwhile.
    pub waits: Option<NowWait>,
    /// Who holds the lock that it waits for; `None` where it waits for none, or nobody has looked yet.
    pub blocked: Option<Blocked>,
    /// The digest to which its time belongs; `None` where the command is no statement, or nobody has asked.
    pub digest: Option<DigestKey>,
}

/// Whether a client has the session with this id and command, and no thread of the server. `None`: no command has the
/// number that was read.
pub fn is_of_client(connection_id: u64, command: Option<Command>) -> bool {
    connection_id != 0 && command != Some(Command::DAEMON)
}

/// What a statement does at one moment: it waits for something, or works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NowWait {
    /// For what; [`TimeClass::Cpu`] while it works.
    pub class: TimeClass,
    /// Since when, nanoseconds of `CLOCK_MONOTONIC`.
    pub since_ns: u64,
}

/// Who holds what a statement waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// Connections that hold a lock in the way, or stand before it in the queue.
    pub by: Vec<u64>,
    /// What is known of the first of them. Those who wait for one session share it.
    pub blockers: Vec<Arc<Blocker>>,
    /// What is locked, as far as it has a name: `shop.orders`, `SCHEMA shop`.
    pub object: Option<String>,
    /// Why `by` is empty.
    pub unknown: Option<String>,
}

/// A session that holds what others wait for, at the moment of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocker {
    /// The connection id.
    pub connection_id: u64,
    /// Who and where.
    pub identity: Identity,
    /// Whether it waits for its client; `None` where it was not seen.
    pub is_idle: Option<bool>,
    /// Whether it waits for a lock itself: then it need not hold one, but stands before others in the queue.
    pub waits: bool,
    /// Since when it is idle, or its statement runs, nanoseconds of `CLOCK_MONOTONIC`.
    pub since_ns: Option<u64>,
    /// What it runs, or ran last.
    pub statement: Option<Ran>,
    /// The first statement of its open transaction that wrote something.
    pub first_write: Option<Ran>,
}

/// A statement as it is remembered: its head without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The first bytes of the text.
    pub text: Vec<u8>,
    /// The settings under which it was read; `None` if they are not known.
    pub settings: Option<SessionSettings>,
}

impl Blocked {
    /// Bytes of the texts in it. Of what several share, each has its part.
    pub(crate) fn text_bytes(&self) -> usize {
        let part = |one: &Arc<Blocker>| one.text_bytes() / Arc::strong_count(one).max(1);
        let own = [&self.object, &self.unknown].into_iter().flatten().map(String::len);
        own.chain(self.blockers.iter().map(part)).sum()
    }
}

impl Blocker {
    /// Bytes of the texts in it.
    pub fn text_bytes(&self) -> usize {
        let texts = [&self.statement, &self.first_write].into_iter().flatten();
        texts.map(|ran| ran.text.len()).sum()
    }
}

impl RunningStatement {
    /// The text as it was read.
    pub fn text(&self) -> Option<Text<'_>> {
        self.text.as_deref().map(|bytes| Text { bytes, length: self.text_length })
    }

    /// Whether the server itself runs it, and no client.
    pub fn is_of_server(&self) -> bool {
        !is_of_client(self.connection_id, Some(self.command))
    }

    /// Whether its session has named no user: a client that logs in, or a thread of a replica that connects to its source.
    pub fn is_nobodys(&self) -> bool {
        self.command == Command::CONNECT && self.identity.user.is_none()
    }

    /// What tells it from every other statement of its server.
    pub fn key(&self) -> StatementKey {
        StatementKey {
            thd: self.thd,
            connection_id: self.connection_id,
            noted_start_us: self.noted_start_us.unwrap_or(0),
        }
    }
}
