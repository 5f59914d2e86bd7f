//! Which reply ends a statement.
//!
//! A statement can send several replies that look final: the result sets of a procedure, the
//! statements of a packet, a last flush that went out in parts. They share the session, its
//! connection id and the start of the statement; the last one is the statement. Where a reply may
//! be followed by another it is held back until the session goes on or is seen at rest.

use std::collections::HashMap;
use std::sync::Arc;

use waggle_model::{Identity, ServerStatus, StatementKey};

use super::record::Reply;
use super::skeleton::types;
use crate::target::layout::{DiagnosticsCodes, Field};

/// A session of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) tgid: u32,
    pub(super) thd: u64,
}

/// Replies that are larger may have gone out in parts: the socket takes no less at once.
const WHOLE_REPLY_MAX: u64 = 8 * 1024;
/// Sessions whose identity is remembered.
const SESSIONS_MAX: usize = 32 * 1024;

/// What became of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ended its statement.
    Ended,
    /// It may be followed by another of the same statement.
    Held,
    /// It is a repetition of the reply that ended its statement, or none of a statement's.
    Ignored,
}

#[derive(Default)]
struct Known {
    identity: Arc<Identity>,
    last: Option<StatementKey>,
    held: Option<Held>,
    used: bool,
}

/// A reply that may be followed by another of its statement.
pub(super) struct Held {
    pub(super) record: Box<[u8]>,
    /// Who the session was then: it may be another's when this is handed out.
    pub(super) identity: Arc<Identity>,
    pub(super) key: StatementKey,
    /// Only the first send was seen: all of the reply, where the query cache gave it.
    is_part: bool,
    bytes: u64,
    first_byte_ns: u64,
}

/// What the replies of one statement have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) bytes: u64,
    pub(super) first_byte_ns: u64,
}

/// Every session that sent something, with what is held of it.
#[derive(Default)]
pub(super) struct Fold {
    sessions: HashMap<Session, Known>,
    /// Replies that were held back and forgotten, for want of room, by process.
    forgotten: HashMap<u32, u64>,
}

impl Fold {
    /// Notes who a session is.
    pub(super) fn identify(&mut self, session: Session, identity: Identity) {
        self.make_room();
        let known = self.sessions.entry(session).or_default();
        known.identity = Arc::new(identity);
        known.used = true;
    }

    /// Who a session is; the default where it never said.
    pub(super) fn identity(&self, session: Session) -> Arc<Identity> {
        self.sessions.get(&session).map(|known| known.identity.clone()).unwrap_or_default()
    }

    /// Knows of the sessions of a process only what `trusted` leaves of who they are.
    pub(super) fn distrust(&mut self, tgid: u32, trusted: impl Fn(Identity) -> Identity) {
        for (_, known) in self.sessions.iter_mut().filter(|(session, _)| session.tgid == tgid) {
            known.identity = Arc::new(trusted(Identity::clone(&known.identity)));
        }
    }

    /// Judges a reply. A reply held back before, whose statement this one shows to have ended, is
    /// handed out first: the caller emits it, then this one if it ended.
    pub(super) fn judge(
        &mut self,
        session: Session,
        reply: &Reply<'_>,
        record: &[u8],
        codes: &DiagnosticsCodes,
    ) -> (Option<(Held, Whole)>, Verdict, Whole) {
        let mut whole = Whole { bytes: reply.head.bytes, first_byte_ns: first_byte(&reply.head) };
        let status = reply.get(Field::DiagnosticsStatus).unwrap_or(0) as u32;
        if status == codes.disabled {
            return (None, Verdict::Ignored, whole);
        }
        self.make_room();
        let known = self.sessions.entry(session).or_default();
        known.used = true;
        let key = reply.statement_key();
        let is_part = status == codes.empty;
        let mut ended_before = None;
        if let Some(held) = known.held.take() {
            if held.key == key && is_part {
                known.held = Some(held);
                return (None, Verdict::Ignored, whole);
            }
            if held.key == key && held.is_part {
                // The kernel has added up what was sent since the first send.
            } else if held.key == key {
                whole.bytes += held.bytes;
                whole.first_byte_ns = held.first_byte_ns;
            } else {
                known.last = Some(held.key);
                ended_before = Some(held.finish());
            }
        }
        if known.last == Some(key) {
            return (ended_before, Verdict::Ignored, whole);
        }
        if is_part || may_go_on(reply) {
            known.held = Some(Held {
                record: record.into(),
                identity: known.identity.clone(),
                key,
                is_part,
                bytes: whole.bytes,
                first_byte_ns: whole.first_byte_ns,
            });
            return (ended_before, Verdict::Held, whole);
        }
        known.last = Some(key);
        (ended_before, Verdict::Ended, whole)
    }

    /// Notes that a statement ended which sends no reply.
    pub(super) fn ended(&mut self, session: Session, statement: StatementKey) {
        self.make_room();
        let known = self.sessions.entry(session).or_default();
        known.used = true;
        known.last = Some(statement);
    }

    /// Takes the held replies for which `is_over` says that their statement has ended; it is given
    /// the process, the statement and the time of the reply.
    pub(super) fn release(
        &mut self,
        mut is_over: impl FnMut(u32, StatementKey, u64) -> bool,
    ) -> Vec<(Held, Whole)> {
        let mut over = Vec::new();
        for (session, known) in &mut self.sessions {
            let Some(held) = &known.held else { continue };
            let end_ns = super::record::head_of(&held.record).map_or(0, |head| head.end_ns);
            if is_over(session.tgid, held.key, end_ns) {
                known.last = Some(held.key);
                over.extend(known.held.take().map(Held::finish));
            }
        }
        over
    }

    /// Takes the held reply of a session whose statement has ended.
    pub(super) fn release_of(&mut self, session: Session) -> Option<(Held, Whole)> {
        let known = self.sessions.get_mut(&session)?;
        let held = known.held.take()?;
        known.last = Some(held.key);
        Some(held.finish())
    }

    /// Whether the reply that ended a statement was seen, or one of a later statement of the same
    /// connection.
    pub(super) fn saw_end(&self, tgid: u32, statement: StatementKey) -> bool {
        let known = self.sessions.get(&Session { tgid, thd: statement.thd });
        known.and_then(|known| known.last).is_some_and(|last| {
            last.connection_id == statement.connection_id
                && last.noted_start_us >= statement.noted_start_us
        })
    }

    /// The statement that a session was last seen to end.
    pub(super) fn last_of(&self, session: Session) -> Option<StatementKey> {
        self.sessions.get(&session)?.last
    }

    /// Statements of a process that are missing because too many sessions held back a reply.
    pub(super) fn forgotten(&self, tgid: u32) -> u64 {
        self.forgotten.get(&tgid).copied().unwrap_or(0)
    }

    /// Forgets every session of a process.
    pub(super) fn forget(&mut self, tgid: u32) {
        self.sessions.retain(|session, _| session.tgid != tgid);
    }

    /// Keeps the number of sessions bounded: those that sent nothing since the last time go.
    fn make_room(&mut self) {
        if self.sessions.len() < SESSIONS_MAX {
            return;
        }
        self.sessions.retain(|_, known| std::mem::take(&mut known.used) || known.held.is_some());
        if self.sessions.len() >= SESSIONS_MAX {
            for (session, _) in self.sessions.drain().filter(|(_, known)| known.held.is_some()) {
                *self.forgotten.entry(session.tgid).or_default() += 1;
            }
        }
    }
}

impl Held {
    fn finish(self) -> (Held, Whole) {
        let whole = Whole { bytes: self.bytes, first_byte_ns: self.first_byte_ns };
        (self, whole)
    }
}

fn first_byte(head: &types::head) -> u64 {
    if head.first_byte_ns == 0 { head.end_ns } else { head.first_byte_ns }
}

fn may_go_on(reply: &Reply<'_>) -> bool {
    let status = ServerStatus(reply.get(Field::ServerStatus).unwrap_or(0) as u32);
    let client_gone = reply.head.result < 0;
    !client_gone && (status.more_results() || reply.head.bytes > WHOLE_REPLY_MAX)
}
