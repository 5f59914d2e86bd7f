//! What a record says of a nested statement.

use std::collections::HashMap;

use waggle_model::{Identity, Losses, Origin, Statement, StatementKey};

use super::skeleton::types;
use crate::carrier::{SessionData, Target, name_of, read_struct};
use crate::servers::layout::Field;

/// The error of a statement whose tables changed since it was prepared (`ER_NEED_REPREPARE`,
/// `share/errmsg.txt`): the server prepares it anew and runs it again.
const NEED_REPREPARE: u32 = 1615;

const SIZE: usize = size_of::<types::nested>();

/// A record of a nested statement.
pub(crate) struct Nested<'a> {
    target: &'a Target,
    data: SessionData<'a>,
    /// The part that only nested statements have.
    raw: types::nested,
}

impl<'a> Nested<'a> {
    /// How records are read that have this part.
    pub(super) fn target(target: &Target) -> Target {
        target.with_room(SIZE as u32)
    }

    /// Reads it from a record of a target with room for it.
    pub(super) fn of(
        target: &'a Target,
        record: &'a [u8],
        lost: &mut HashMap<u32, Losses>,
    ) -> Option<Nested<'a>> {
        let data = target.read(record, lost)?;
        let bytes = data.data();
        let raw = read_struct(bytes.get(bytes.len().checked_sub(SIZE)?..)?)?;
        Some(Nested { target, data, raw })
    }

    /// Whether a replica applied it.
    pub(crate) fn is_applied(&self) -> bool {
        self.raw.is_applied != 0
    }

    /// What tells it from the next of its session.
    pub(crate) fn key(&self) -> StatementKey {
        self.data.statement_key()
    }

    /// Who runs it: the client of the session, in the database that was in force. A routine has
    /// the database of its own.
    pub(crate) fn identity(&self, session: &Identity) -> Identity {
        let database = name_of(&self.raw.database, self.raw.database_length);
        Identity { database, ..session.clone() }
    }

    /// The statement; `None` where it was only an attempt. Its settings are not known: what a stored
    /// program runs is read by those under which it was made.
    pub(crate) fn statement(&self, identity: &'a Identity) -> Option<Statement<'a>> {
        // What the session held when it ended.
        let whole = self.target.statement(&self.data, identity);
        if whole.error == Some(NEED_REPREPARE) {
            return None;
        }
        let is_timed = self.raw.begin_ns != 0;
        // The session counts over all that runs in it; where it began anew it counts this alone.
        let own = |field, before: u64| {
            let now: u64 = self.data.get(field)?;
            is_timed.then(|| now.checked_sub(before).unwrap_or(now))
        };
        // MariaDB's applier clears the area before it returns, unless the statement failed.
        let is_cleared = self.data.status() == Some(self.target.meaning.codes.empty);
        Some(Statement {
            origin: Origin::Nested,
            latency_ns: is_timed.then(|| whole.end_ns.saturating_sub(self.raw.begin_ns)),
            first_byte_ns: None,
            rows_sent: own(Field::RowsSent, self.raw.rows_sent),
            rows_examined: own(Field::RowsExamined, self.raw.rows_examined),
            rows_affected: whole.rows_affected.filter(|_| !is_cleared),
            // A moment or a sum over the whole session, by family: none is of this statement.
            lock_ns: None,
            bytes_sent: None,
            client_gone: false,
            parts: None,
            usage: None,
            after_reply_before_ns: None,
            ..whole
        })
    }
}
