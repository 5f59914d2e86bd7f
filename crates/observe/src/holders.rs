//! Who holds locks, as a look saw them, with what is remembered of their statements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waggle_account::head_without_secrets;
use waggle_model::{Blocked, Blocker, Command, Ran, SeenLocks, SeenSession, Text};

use crate::remembered::Remembered;

/// Most holders of one lock whose statements are told.
const TOLD_MAX: usize = 8;

/// Those of one look at a server.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    by_id: BTreeMap<u64, Holder>,
    /// When the look was over, nanoseconds of `CLOCK_MONOTONIC`.
    seen_ns: u64,
    /// Of some of them something may be told yet by statements that have ended, and were not heard of.
    is_open: bool,
}

#[derive(Debug)]
struct Holder {
    seen: SeenSession,
    blocker: Arc<Blocker>,
    is_open: bool,
}

impl Holders {
    /// Those whom `blocked` names. `start_ns` is the time of a start that the server noted.
    pub(crate) fn of<'a>(
        seen: SeenLocks,
        seen_ns: u64,
        blocked: impl Iterator<Item = &'a Blocked>,
        start_ns: impl Fn(u64) -> Option<u64>,
    ) -> Holders {
        let named: BTreeSet<u64> = blocked.flat_map(told).copied().collect();
        let holds = |session: &SeenSession| named.contains(&session.connection_id);
        let waiting = waiting(&seen);
        let holder = |session: SeenSession| {
            let waits = waiting.contains(&session.connection_id);
            let blocker = Arc::new(as_seen(&session, waits, &start_ns));
            // What it runs is told by now, and may hold secrets.
            let seen = SeenSession { text: None, state: None, ..session };
            (seen.connection_id, Holder { seen, blocker, is_open: true })
        };
        let by_id: BTreeMap<u64, Holder> =
            seen.sessions.into_iter().filter(holds).map(holder).collect();
        Holders { is_open: !by_id.is_empty(), by_id, seen_ns }
    }

    /// Takes over what an earlier look has told already of those who have done nothing since.
    pub(crate) fn follow(&mut self, earlier: &Holders) {
        for (id, holder) in &mut self.by_id {
            let Some(before) = earlier.by_id.get(id).filter(|before| !before.is_open) else {
                continue;
            };
            let (now, then) = (&holder.seen, &before.seen);
            let is_same = now.thd == then.thd
                && now.noted_start_us.is_some()
                && now.noted_start_us == then.noted_start_us
                && now.command == then.command;
            if is_same {
                let waits = holder.blocker.waits;
                holder.blocker = match before.blocker.waits == waits {
                    true => before.blocker.clone(),
                    false => Arc::new(Blocker { waits, ..Blocker::clone(&before.blocker) }),
                };
                holder.is_open = false;
            }
        }
    }

    /// Adds what the book knows by now. `heard_ns`: all statements that had ended by then were heard of. Returns
    /// whether there is something new.
    pub(crate) fn recall(&mut self, pid: u32, book: &Remembered, heard_ns: u64) -> bool {
        if !self.is_open {
            return false;
        }
        let (seen_ns, is_late) = (self.seen_ns, heard_ns >= self.seen_ns);
        let mut is_new = false;
        for holder in self.by_id.values_mut().filter(|holder| holder.is_open) {
            let known = book.of(pid, &holder.seen, seen_ns);
            let known = known.filter(|known| known.is_confirmed || is_late);
            if let Some(known) = known {
                let mut blocker = Blocker::clone(&holder.blocker);
                if blocker.is_idle == Some(true) {
                    blocker.statement = Some(known.last.clone());
                    blocker.since_ns = Some(known.last_end_ns);
                } else if let Some(ran) = &mut blocker.statement {
                    ran.settings = known.last.settings;
                }
                blocker.first_write = known.first_write.cloned();
                holder.blocker = Arc::new(blocker);
                is_new = true;
            }
            holder.is_open = known.is_none() && !is_late;
        }
        self.is_open = self.by_id.values().any(|holder| holder.is_open);
        is_new
    }

    /// Writes into `blocked` what is known of those whom it names.
    pub(crate) fn tell(&self, blocked: &mut Blocked) {
        let blocker = |id: &u64| match self.by_id.get(id) {
            Some(holder) => holder.blocker.clone(),
            None => Arc::new(Blocker { connection_id: *id, ..Blocker::default() }),
        };
        blocked.blockers = told(blocked).map(blocker).collect();
    }
}

/// Who waits for a lock.
fn waiting(seen: &SeenLocks) -> BTreeSet<u64> {
    let rows = seen.rows.value().into_iter().flatten().map(|wait| wait.connection_id);
    let locks = seen.metadata.value().into_iter().flatten().filter(|lock| lock.is_pending);
    rows.chain(locks.map(|lock| lock.connection_id)).collect()
}

/// The first of those whom it names.
fn told(blocked: &Blocked) -> impl Iterator<Item = &u64> {
    blocked.by.iter().take(TOLD_MAX)
}

/// What the look itself tells. An idle session has no text.
fn as_seen(seen: &SeenSession, waits: bool, start_ns: impl Fn(u64) -> Option<u64>) -> Blocker {
    let is_idle = seen.command == Command::SLEEP;
    let text = seen.text.as_deref().filter(|_| !is_idle);
    let ran = text.map(|bytes| {
        let (text, _) = head_without_secrets(Text { bytes, length: bytes.len() as u64 }, None);
        Ran { text, settings: None }
    });
    Blocker {
        connection_id: seen.connection_id,
        identity: seen.identity.clone(),
        is_idle: Some(is_idle),
        waits,
        since_ns: seen.noted_start_us.filter(|_| !is_idle).and_then(start_ns),
        statement: ran,
        first_write: None,
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::{Identity, Reading, SeenMetadataLock, ServerStatus, Statement};

    use super::*;

    fn session(connection_id: u64, noted_start_us: u64) -> SeenSession {
        let (thd, command) = (0x1000, Command::SLEEP);
        let noted_start_us = Some(noted_start_us);
        SeenSession { thd, connection_id, command, noted_start_us, ..SeenSession::default() }
    }

    fn holders(sessions: Vec<SeenSession>, seen_ns: u64, by: &[u64]) -> (Holders, Blocked) {
        let (metadata, rows) = (Reading::Value(Vec::new()), Reading::Value(Vec::new()));
        let seen = SeenLocks { sessions, metadata, rows, unreadable: 0, is_pooled: false };
        let blocked = Blocked { by: by.to_vec(), ..Blocked::default() };
        let holders = Holders::of(seen, seen_ns, [&blocked].into_iter(), |us| Some(us * 1000));
        (holders, blocked)
    }

    fn ran(book: &mut Remembered, sql: &str, start_us: u64, end_ns: u64) {
        let identity = Identity::default();
        let text = Text { bytes: sql.as_bytes(), length: sql.len() as u64 };
        book.hear(&Statement {
            pid: 1,
            thd: 0x1000,
            connection_id: Some(7),
            noted_start_us: Some(start_us),
            text: Some(text),
            server_status: Some(ServerStatus(1)),
            ..Statement::unread(end_ns, &identity)
        });
    }

    fn told_of(holders: &Holders, blocked: &mut Blocked) -> Option<String> {
        holders.tell(blocked);
        let ran = blocked.blockers[0].statement.as_ref()?;
        Some(String::from_utf8_lossy(&ran.text).into_owned())
    }

    #[test]
    fn what_an_idle_holder_ran_is_told_as_soon_as_it_is_heard_of() {
        let mut book = Remembered::default();
        ran(&mut book, "BEGIN", 10, 11_000);
        let (mut holders, mut blocked) = holders(vec![session(7, 20)], 30_000, &[7, 8]);
        assert!(!holders.recall(1, &book, 12_000), "the update is still in a ring");
        assert_eq!(told_of(&holders, &mut blocked), None);
        assert_eq!(blocked.blockers[1].connection_id, 8, "one that nobody saw");
        ran(&mut book, "UPDATE t SET a = 1", 20, 21_000);
        ran(&mut book, "COMMIT", 40, 41_000);
        assert!(holders.recall(1, &book, 29_000));
        assert_eq!(told_of(&holders, &mut blocked).as_deref(), Some("UPDATE t SET a = 1"));
        assert_eq!(blocked.blockers[0].since_ns, Some(21_000));
        assert!(!holders.recall(1, &book, 50_000), "all is told");
    }

    #[test]
    fn a_command_without_a_reply_leaves_the_last_statement_once_all_was_heard() {
        let mut book = Remembered::default();
        ran(&mut book, "UPDATE t SET a = 1", 20, 21_000);
        let (mut holders, mut blocked) = holders(vec![session(7, 25)], 30_000, &[7]);
        assert!(!holders.recall(1, &book, 29_000), "another may have ended");
        assert!(holders.recall(1, &book, 30_000));
        assert!(told_of(&holders, &mut blocked).is_some());
        let (mut later, mut blocked) = self::holders(vec![session(7, 25)], 90_000, &[7]);
        later.follow(&holders);
        assert!(told_of(&later, &mut blocked).is_some(), "it has done nothing since");
    }

    #[test]
    fn a_running_holder_has_the_text_of_the_look() {
        let text = Some(b"ALTER TABLE t ADD c INT".to_vec());
        let alter = SeenSession { command: Command::QUERY, text, ..session(7, 5) };
        let (holders, mut blocked) = holders(vec![alter], 30_000, &[7]);
        assert_eq!(told_of(&holders, &mut blocked).as_deref(), Some("ALTER TABLE t ADD c INT"));
        let one = &blocked.blockers[0];
        assert_eq!((one.is_idle, one.since_ns), (Some(false), Some(5_000)));
    }

    #[test]
    fn who_waits_for_a_lock_itself_is_marked_so() {
        let alter = SeenSession { command: Command::QUERY, ..session(7, 5) };
        let pending = SeenMetadataLock { connection_id: 7, is_pending: true, ..Default::default() };
        let seen = SeenLocks {
            sessions: vec![alter, session(8, 5)],
            metadata: Reading::Value(vec![pending]),
            rows: Reading::Value(Vec::new()),
            unreadable: 0,
            is_pooled: false,
        };
        let mut blocked = Blocked { by: vec![7, 8], ..Blocked::default() };
        Holders::of(seen, 30_000, [&blocked].into_iter(), Some).tell(&mut blocked);
        let waits: Vec<bool> = blocked.blockers.iter().map(|one| one.waits).collect();
        assert_eq!(waits, [true, false]);
    }
}
