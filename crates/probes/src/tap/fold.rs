//! Decides which reply ends a statement.
//!
//! One statement can send several replies that look final: the result sets of a procedure, the
//! statements of a packet, a last flush in several parts. They share session, connection id and
//! start. The last one is the statement. If another reply can follow, waggle holds the reply until
//! the session goes on or rests.

use std::sync::Arc;

use foldhash::HashMap;
use waggle_model::{Identity, ServerStatus, StatementKey};

use crate::carrier::{Session, SessionData, head_of, types};
use crate::servers::layout::{DiagnosticsCodes, Field};

/// Replies that are larger may have gone out in parts: the socket takes no less at once.
const WHOLE_REPLY_MAX: u64 = 8 * 1024;
/// Sessions whose identity is remembered.
const SESSIONS_MAX: usize = 32 * 1024;
/// Bytes of all replies that are held back together. Usually there are few of them; one with the longest text has
/// 70 KiB.
const HELD_BYTES_MAX: usize = 16 << 20;

/// What became of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ended its statement.
    Ended,
    /// It may be followed by another of the same statement.
    Held,
    /// It is a repetition of the reply that ended its statement.
    Repeated,
    /// The same of one that is held, as far as it was sent.
    GoesOn,
    /// It is none of a statement's.
    Disabled,
}

#[derive(Default)]
struct Known {
    identity: Arc<Identity>,
    last: Option<StatementKey>,
    held: Option<Held>,
    used: bool,
    /// Only where the layout has no start.
    request: Request,
}

/// A reply that may be followed by another of its statement.
pub(super) struct Held {
    pub(super) record: Box<[u8]>,
    /// Who the session was then: it may be another's when this is handed out.
    pub(super) identity: Arc<Identity>,
    pub(super) key: StatementKey,
    /// Only the first send was seen: all of the reply, where the query cache gave it.
    is_part: bool,
    whole: Whole,
}

/// What the replies of one statement have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) bytes: u64,
    pub(super) first_byte_ns: u64,
    /// When the request was there, or the statement before it in the packet had its reply; only where
    /// the layout has no start. 0: not known.
    pub(super) request_ns: u64,
}

/// Every session that sent something, with what is held of it.
#[derive(Default)]
pub(super) struct Fold {
    sessions: HashMap<Session, Known>,
    /// Replies that were held back and forgotten, for want of room, by process.
    forgotten: HashMap<u32, u64>,
    /// Bytes of replies that were judged since it was last looked how many are held back.
    judged_bytes: usize,
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
        reply: &SessionData<'_>,
        record: &[u8],
        codes: &DiagnosticsCodes,
    ) -> (Option<(Held, Whole)>, Verdict, Whole) {
        let mut whole = Whole {
            bytes: reply.head.bytes,
            first_byte_ns: first_byte(&reply.head),
            request_ns: 0,
        };
        let status = reply.status();
        if status == Some(codes.disabled) {
            return (None, Verdict::Disabled, whole);
        }
        self.make_room();
        self.bound_held(record.len());
        let known = self.sessions.entry(session).or_default();
        known.used = true;
        let mut key = reply.statement_key();
        if reply.get(Field::StartTime).is_none() {
            whole.request_ns = known.request.place(reply, &mut key);
        }
        let is_part = status == Some(codes.empty);
        let mut ended_before = None;
        if let Some(held) = known.held.take() {
            if held.key == key && is_part {
                known.held = Some(held);
                return (None, Verdict::GoesOn, whole);
            }
            if held.key == key && held.is_part {
                // The kernel has added up what was sent since the first send.
            } else if held.key == key {
                whole.bytes = whole.bytes.saturating_add(held.whole.bytes);
                whole.first_byte_ns = held.whole.first_byte_ns;
            } else {
                known.last = Some(held.key);
                ended_before = Some(held.finish());
            }
        }
        if known.last == Some(key) {
            return (ended_before, Verdict::Repeated, whole);
        }
        if is_part || may_go_on(reply) {
            known.held = Some(Held {
                record: record.into(),
                identity: known.identity.clone(),
                key,
                is_part,
                whole,
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
            let end_ns = head_of(&held.record).map_or(0, |head| head.end_ns);
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

    /// Whether a session went on to a later statement, or to a later connection.
    pub(super) fn is_past(&self, tgid: u32, statement: StatementKey) -> bool {
        let order = |key: StatementKey| (key.connection_id, key.noted_start_us);
        let known = self.sessions.get(&Session { tgid, thd: statement.thd });
        let last = known.and_then(|known| known.last);
        last.is_some_and(|last| order(last) >= order(statement))
    }

    /// Whether a reply of this statement was seen, whether or not it has ended.
    pub(super) fn knows(&self, session: Session, statement: StatementKey) -> bool {
        self.sessions.get(&session).is_some_and(|known| {
            let held = known.held.as_ref().map(|held| held.key);
            [known.last, held].contains(&Some(statement))
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

    /// Forgets every session of a process, and what is missing of it.
    pub(super) fn forget(&mut self, tgid: u32) {
        self.forgotten.remove(&tgid);
        self.sessions.retain(|session, _| session.tgid != tgid);
    }

    /// Limits the number of sessions: forgets those without a reply since the last time.
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

impl Fold {
    /// Limits the memory of what is held back, before another reply of `bytes` bytes: forgets that of the process that
    /// has most of it.
    fn bound_held(&mut self, bytes: usize) {
        self.judged_bytes += bytes;
        if self.judged_bytes < HELD_BYTES_MAX / 4 {
            return;
        }
        self.judged_bytes = 0;
        let mut held: HashMap<u32, usize> = HashMap::default();
        for (session, known) in &self.sessions {
            let bytes = known.held.as_ref().map_or(0, |held| held.record.len());
            *held.entry(session.tgid).or_default() += bytes;
        }
        while held.values().sum::<usize>() > HELD_BYTES_MAX {
            let Some((&tgid, _)) = held.iter().max_by_key(|(_, bytes)| **bytes) else { return };
            held.remove(&tgid);
            let of_process = self.sessions.iter_mut().filter(|(session, _)| session.tgid == tgid);
            let forgotten = of_process.filter_map(|(_, known)| known.held.take()).count() as u64;
            *self.forgotten.entry(tgid).or_default() += forgotten;
        }
    }
}

impl Held {
    fn finish(self) -> (Held, Whole) {
        let whole = self.whole;
        (self, whole)
    }
}

fn first_byte(head: &types::head) -> u64 {
    if head.first_byte_ns == 0 { head.end_ns } else { head.first_byte_ns }
}

/// Whether another reply of the same statement may follow. So it is where the layout does not say.
fn may_go_on(reply: &SessionData<'_>) -> bool {
    let more_results =
        |status: u64| ServerStatus(u32::try_from(status).unwrap_or(0)).more_results();
    let client_gone = reply.head.result < 0;
    let is_final = reply.status().is_some();
    !client_gone
        && (!is_final
            || reply.get(Field::ServerStatus).is_none_or(more_results)
            || reply.head.bytes > WHOLE_REPLY_MAX)
}

/// How far the text of a statement may begin behind the one before it in the same packet: a delimiter
/// and white space lie in between.
const GAP_IN_PACKET: u64 = 256;

/// The request that a session answers, and how far. Where the layout has no start, this tells the
/// statements of a packet from the results of a procedure: only the former have their texts one behind
/// the other.
#[derive(Default)]
struct Request {
    received_ns: u64,
    /// Statements of the packet that had their reply.
    ended: u64,
    begin_ns: u64,
    /// Address and length of the text of the last reply, and its time.
    text: (u64, u64),
    replied_ns: u64,
}

impl Request {
    /// Makes the key that of the statement in the packet, and says when the statement began.
    fn place(&mut self, reply: &SessionData<'_>, key: &mut StatementKey) -> u64 {
        let received_ns = reply.head.received_ns;
        let text = (reply.get(Field::QueryText), reply.get(Field::QueryLength));
        let text = (text.0.unwrap_or(0), text.1.unwrap_or(0));
        let after = self.text.0.wrapping_add(self.text.1);
        if self.received_ns != received_ns {
            *self = Request { received_ns, begin_ns: received_ns, ..Request::default() };
        } else if self.text.0 != 0 && text.0.wrapping_sub(after) < GAP_IN_PACKET {
            self.ended += 1;
            self.begin_ns = self.replied_ns;
        }
        self.text = text;
        self.replied_ns = reply.head.end_ns;
        key.noted_start_us += self.ended;
        self.begin_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_a_later_connection_has_is_past_the_statements_of_the_one_before() {
        let session = Session { tgid: 1, thd: 0x1000 };
        let key = |connection_id, noted_start_us| StatementKey {
            thd: session.thd,
            connection_id,
            noted_start_us,
        };
        let mut fold = Fold::default();
        fold.ended(session, key(8, 50));
        let past = [key(7, 10), key(7, 60), key(8, 50)];
        assert!(past.iter().all(|statement| fold.is_past(1, *statement)));
        let later = [key(8, 51), key(9, 10)];
        assert!(!later.iter().any(|statement| fold.is_past(1, *statement)));
        // That it ended is known of those of the same connection only.
        assert!(!fold.saw_end(1, key(7, 10)) && fold.saw_end(1, key(8, 50)));
    }
}
