//! The last statements of every session, and the first one of its transaction that wrote something. The
//! server forgets both: an idle session that holds a lock has no text.
//!
//! Every statement passes here, so nothing is allocated for a session that is known: its texts go into buffers that
//! it has. A statement costs a look-up in a map, a search for words that go with secrets, and the copy of its head.

use std::mem;

use foldhash::HashMap;
use waggle_account::settings_of;
use waggle_model::{
    Command, Losses, Origin, Ran, SeenSession, ServerStatus, SessionSettings, Statement,
};
use waggle_sql::{Kind, kind, mask_secrets};

/// Most sessions that are remembered.
const SESSIONS_MAX: usize = 10_000;
/// Bytes that are kept of a text.
const TEXT_MAX: usize = 1024;
/// `SERVER_STATUS_IN_TRANS`.
const IN_TRANSACTION: u32 = 1;

/// Process of the server, session, and connection id: addresses are used again.
type Key = (u32, u64, u64);

/// What a session had run at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedStatements<'a> {
    /// The last statement that had ended. Its text is without secrets.
    pub last: &'a Ran,
    /// Its end, nanoseconds of `CLOCK_MONOTONIC`.
    pub last_end_ns: u64,
    /// The first one of the open transaction that wrote something.
    pub first_write: Option<&'a Ran>,
    /// Whether a transaction is open, and when the first statement in it ended, where that was seen: nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub transaction: OpenTransaction,
    /// Whether the server says of the session that it ran this last.
    pub is_confirmed: bool,
}

/// Whether a transaction of a session was open when a statement ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenTransaction {
    /// Its begin was not seen, or the server does not say.
    #[default]
    Unknown,
    /// None.
    No,
    /// One whose first statement had ended at this time.
    Since(u64),
}

/// What was remembered of sessions, and how much of it was forgotten.
#[derive(Debug, Default)]
pub struct Remembered {
    sessions: HashMap<Key, Session>,
    forgotten: u64,
    /// The settings that were met last, as texts are read under them: most sessions have the same.
    settings: Option<(SessionSettings, Option<waggle_sql::SessionSettings>)>,
}

/// One session. Of two statements the former is kept, too: who looks at the session, and hears of its statements later,
/// may have seen it before the last one began.
#[derive(Debug, Default)]
struct Session {
    last: Ended,
    before: Ended,
    /// Of the last transaction that wrote something.
    first_write: Ran,
    /// Whether the open transaction is that one.
    has_written: bool,
    /// The open transaction.
    transaction: OpenTransaction,
}

/// A statement that ended.
#[derive(Debug, Default)]
struct Ended {
    /// Its end; 0: there is none.
    end_ns: u64,
    noted_start_us: Option<u64>,
    ran: Ran,
    /// Whether the transaction that was open then had written something.
    has_written: bool,
    /// Whether one was open.
    transaction: OpenTransaction,
}

impl Remembered {
    /// What a session had run when it was looked at. `seen_ns`: the end of that look, nanoseconds of `CLOCK_MONOTONIC`.
    pub fn of(
        &self,
        pid: u32,
        session: &SeenSession,
        seen_ns: u64,
    ) -> Option<RememberedStatements<'_>> {
        let one = self.sessions.get(&(pid, session.thd, session.connection_id))?;
        let is_idle = session.command == Command::SLEEP;
        let is_last = |ended: &&Ended| {
            is_idle
                && session.noted_start_us.is_some()
                && ended.noted_start_us == session.noted_start_us
        };
        let ended = || [&one.last, &one.before].into_iter().filter(|ended| ended.end_ns > 0);
        let confirmed = ended().find(is_last);
        // A command without a reply may have begun since.
        let last = confirmed.or_else(|| ended().find(|ended| ended.end_ns <= seen_ns))?;
        Some(RememberedStatements {
            last: &last.ran,
            last_end_ns: last.end_ns,
            first_write: last.has_written.then_some(&one.first_write),
            transaction: last.transaction,
            is_confirmed: confirmed.is_some(),
        })
    }

    /// Sessions that were forgotten: there were too many, or statements of their server were lost, so that
    /// what was remembered need not be the last.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A statement ended.
    pub(crate) fn hear(&mut self, statement: &Statement<'_>) {
        let Some(connection_id) = statement.connection_id else { return };
        if statement.origin != Origin::Client {
            return;
        }
        let key = (statement.pid, statement.thd, connection_id);
        let in_transaction =
            statement.server_status.map(|ServerStatus(flags)| flags & IN_TRANSACTION != 0);
        if statement.command.is_some_and(|command| !command.is_statement()) {
            // It is no statement, but may have ended the transaction, as a change of the user does.
            if in_transaction == Some(false)
                && let Some(one) = self.sessions.get_mut(&key)
            {
                (one.has_written, one.transaction) = (false, OpenTransaction::No);
            }
            return;
        }
        let Some(text) = statement.text else {
            // It has run something, and what is remembered is not the last any more.
            let was_known = self.sessions.remove(&key).is_some();
            self.forgotten = self.forgotten.saturating_add(u64::from(was_known));
            return;
        };
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&key) {
            self.make_room();
        }
        let masked = mask_secrets(text.bytes, self.settings(statement.settings));
        let one = self.sessions.entry(key).or_default();
        mem::swap(&mut one.last, &mut one.before);
        set(&mut one.last.ran, &masked, statement.settings);
        (one.last.end_ns, one.last.noted_start_us) = (statement.end_ns, statement.noted_start_us);
        one.follow_transaction(in_transaction, text.bytes, statement.error.unwrap_or(0) == 0);
    }

    /// What was lost of a server since the last call.
    pub(crate) fn lost(&mut self, pid: u32, losses: &Losses) {
        if losses.statements() > 0 {
            self.forget(|(other, ..), _| *other == pid);
        }
    }

    /// Forgets a server that is watched no more.
    pub(crate) fn forget_server(&mut self, pid: u32) {
        self.sessions.retain(|(other, ..), _| *other != pid);
    }

    fn settings(
        &mut self,
        settings: Option<SessionSettings>,
    ) -> Option<waggle_sql::SessionSettings> {
        let settings = settings?;
        match self.settings {
            Some((met, read)) if met == settings => read,
            _ => self.settings.insert((settings, settings_of(Some(settings)))).1,
        }
    }

    /// Forgets the half that ended longest ago.
    fn make_room(&mut self) {
        let mut ends: Vec<u64> = self.sessions.values().map(|one| one.last.end_ns).collect();
        let middle = ends.len() / 2;
        let (_, middle, _) = ends.select_nth_unstable(middle);
        let middle = *middle;
        self.forget(|_, one| one.last.end_ns <= middle);
    }

    fn forget(&mut self, which: impl Fn(&Key, &Session) -> bool) {
        let before = self.sessions.len();
        self.sessions.retain(|key, one| !which(key, one));
        self.forgotten = self.forgotten.saturating_add((before - self.sessions.len()) as u64);
    }
}

impl Session {
    /// Takes over what the last statement did with the transaction.
    fn follow_transaction(&mut self, in_transaction: Option<bool>, sql: &[u8], is_done: bool) {
        self.transaction = match (in_transaction, self.transaction) {
            (None, _) => OpenTransaction::Unknown,
            (Some(false), _) => OpenTransaction::No,
            (Some(true), OpenTransaction::No) => OpenTransaction::Since(self.last.end_ns),
            (Some(true), open) => open,
        };
        match in_transaction {
            None | Some(false) => self.has_written = false,
            Some(true) => match kind(sql) {
                Kind::Begin | Kind::Commit | Kind::Rollback | Kind::Ddl => {
                    self.has_written = false;
                    self.transaction = OpenTransaction::Since(self.last.end_ns);
                }
                kind => {
                    let knows_begin = self.transaction != OpenTransaction::Unknown;
                    if knows_begin && !self.has_written && is_done && writes(kind) {
                        let Ran { text, settings } = &self.last.ran;
                        set(&mut self.first_write, text, *settings);
                        self.has_written = true;
                    }
                }
            },
        }
        (self.last.has_written, self.last.transaction) = (self.has_written, self.transaction);
    }
}

/// Writes the head of a text into what is there already.
fn set(ran: &mut Ran, text: &[u8], settings: Option<SessionSettings>) {
    ran.text.clear();
    ran.text.extend_from_slice(text.get(..TEXT_MAX).unwrap_or(text));
    ran.settings = settings;
}

fn writes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Insert | Kind::Update | Kind::Delete | Kind::Replace | Kind::Load | Kind::Call
    )
}

#[cfg(test)]
mod tests {
    use waggle_model::{Identity, Loss, Text};

    use super::*;

    const DONE: u32 = 0;

    /// A statement whose noted start is the microsecond before its end.
    fn ended(book: &mut Remembered, connection_id: u64, sql: &str, status: u32, end_ns: u64) {
        let identity = Identity::default();
        let text = Text { bytes: sql.as_bytes(), length: sql.len() as u64 };
        book.hear(&Statement {
            pid: 1,
            thd: 0x1000,
            connection_id: Some(connection_id),
            command: Some(Command::QUERY),
            text: Some(text),
            server_status: Some(ServerStatus(status)),
            noted_start_us: Some(end_ns - 1),
            ..Statement::unread(end_ns, &identity)
        });
    }

    fn seen(connection_id: u64, noted_start_us: Option<u64>) -> SeenSession {
        let command = Command::SLEEP;
        SeenSession {
            thd: 0x1000,
            connection_id,
            command,
            noted_start_us,
            ..SeenSession::default()
        }
    }

    /// The last statement and the first write of a session that is looked at now.
    fn told(book: &Remembered, connection_id: u64) -> Option<(String, Option<String>)> {
        told_at(book, &seen(connection_id, None), u64::MAX)
    }

    fn told_at(
        book: &Remembered,
        session: &SeenSession,
        seen_ns: u64,
    ) -> Option<(String, Option<String>)> {
        let one = book.of(1, session, seen_ns)?;
        let text = |ran: &Ran| String::from_utf8_lossy(&ran.text).into_owned();
        Some((text(one.last), one.first_write.map(text)))
    }

    #[test]
    fn the_first_write_is_that_of_the_open_transaction() {
        let mut book = Remembered::default();
        let told_after = |book: &mut Remembered, sql: &str, status| {
            ended(book, 7, sql, status, 5);
            told(book, 7).unwrap().1
        };
        assert_eq!(told_after(&mut book, "UPDATE t SET a = 1", DONE), None, "it has committed");
        assert_eq!(told_after(&mut book, "BEGIN", IN_TRANSACTION), None);
        assert_eq!(told_after(&mut book, "SELECT 1", IN_TRANSACTION), None);
        let first = Some("DELETE FROM t".to_owned());
        assert_eq!(told_after(&mut book, "DELETE FROM t", IN_TRANSACTION), first);
        assert_eq!(told_after(&mut book, "INSERT INTO t VALUES (1)", IN_TRANSACTION), first);
        assert_eq!(told_after(&mut book, "SELECT 2", IN_TRANSACTION), first);
        assert_eq!(told(&book, 7).unwrap().0, "SELECT 2");
        assert_eq!(told_after(&mut book, "COMMIT AND CHAIN", IN_TRANSACTION), None);
    }

    #[test]
    fn of_a_transaction_that_began_unseen_no_write_is_called_the_first() {
        let mut book = Remembered::default();
        ended(&mut book, 7, "UPDATE t SET a = 1", IN_TRANSACTION, 5);
        assert_eq!(told(&book, 7), Some(("UPDATE t SET a = 1".to_owned(), None)));
    }

    #[test]
    fn a_commit_after_the_look_does_not_hide_what_held_the_lock() {
        let mut book = Remembered::default();
        ended(&mut book, 7, "BEGIN", IN_TRANSACTION, 100);
        ended(&mut book, 7, "UPDATE t SET a = 1", IN_TRANSACTION, 200);
        ended(&mut book, 7, "COMMIT", DONE, 300);
        let update = "UPDATE t SET a = 1".to_owned();
        let held = Some((update.clone(), Some(update)));
        assert_eq!(told_at(&book, &seen(7, Some(199)), u64::MAX), held, "by its start");
        assert!(book.of(1, &seen(7, Some(199)), 0).unwrap().is_confirmed);
        assert_eq!(told_at(&book, &seen(7, None), 250), held, "by the time of the look");
        assert!(!book.of(1, &seen(7, None), 250).unwrap().is_confirmed);
        assert_eq!(told_at(&book, &seen(7, Some(299)), 250), Some(("COMMIT".to_owned(), None)));
        assert_eq!(told_at(&book, &seen(7, None), 50), None, "all of it ran later");
    }

    #[test]
    fn a_ping_is_no_statement_and_a_change_of_the_user_ends_the_transaction() {
        let mut book = Remembered::default();
        ended(&mut book, 7, "BEGIN", IN_TRANSACTION, 5);
        ended(&mut book, 7, "DELETE FROM t", IN_TRANSACTION, 6);
        let identity = Identity::default();
        let mut other = |status, command| {
            book.hear(&Statement {
                pid: 1,
                thd: 0x1000,
                connection_id: Some(7),
                command: Some(command),
                server_status: Some(ServerStatus(status)),
                ..Statement::unread(9, &identity)
            });
        };
        other(IN_TRANSACTION, Command(14));
        other(DONE, Command(17));
        let first = |book: &Remembered| told(book, 7).unwrap();
        assert_eq!(first(&book).0, "DELETE FROM t");
        ended(&mut book, 7, "SELECT 1", IN_TRANSACTION, 10);
        assert_eq!(first(&book), ("SELECT 1".to_owned(), None));
    }

    #[test]
    fn secrets_are_not_remembered() {
        let mut book = Remembered::default();
        ended(&mut book, 7, "CREATE USER u IDENTIFIED BY 'hunter2'", DONE, 5);
        assert!(!told(&book, 7).unwrap().0.contains("hunter2"));
    }

    #[test]
    fn another_session_at_the_same_address_is_not_taken_for_the_first() {
        let mut book = Remembered::default();
        ended(&mut book, 7, "SELECT 7", DONE, 5);
        assert_eq!(told(&book, 8), None);
    }

    #[test]
    fn what_may_not_be_the_last_is_forgotten_and_counted() {
        let mut book = Remembered::default();
        for id in 0..SESSIONS_MAX as u64 + 1 {
            ended(&mut book, id, "SELECT 1", DONE, id + 1);
        }
        assert!(book.sessions.len() <= SESSIONS_MAX && book.forgotten() > 0);
        assert_eq!(told(&book, 0), None, "the oldest goes first");
        assert!(told(&book, SESSIONS_MAX as u64).is_some());
        let mut losses = Losses::default();
        losses.add(Loss::ALL.into_iter().find(|loss| loss.is_a_statement()).unwrap(), 1);
        let before = book.forgotten();
        let left = book.sessions.len() as u64;
        book.lost(1, &losses);
        assert_eq!((book.sessions.len(), book.forgotten() - before), (0, left));
    }
}
