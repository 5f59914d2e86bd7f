//! What a record says of a nested statement.

use waggle_model::{Identity, Origin, Statement};

use super::skeleton::types;
use crate::tap::{Plan, Reply, read_struct};
use crate::target::layout::{DiagnosticsCodes, Field};

/// The error of a statement whose tables changed since it was prepared (`ER_NEED_REPREPARE`,
/// `share/errmsg.txt`): the server prepares it anew and runs it again.
const NEED_REPREPARE: u32 = 1615;

const SIZE: usize = size_of::<types::nested>();

/// The part of a record that only nested statements have.
pub(crate) struct Nested {
    raw: types::nested,
}

impl Nested {
    /// The plan of the tap, with room for this part.
    pub(crate) fn plan(plan: &Plan) -> Plan {
        plan.with_room(SIZE as u32)
    }

    /// Reads it from a record.
    pub(crate) fn of(reply: &Reply<'_>) -> Option<Nested> {
        let data = reply.data();
        let raw = read_struct(data.get(data.len().checked_sub(SIZE)?..)?)?;
        Some(Nested { raw })
    }

    /// Whether a replica applied it.
    pub(crate) fn is_applied(&self) -> bool {
        self.raw.is_applied != 0
    }

    /// Who runs it: the client of the session, in the database that was in force. A routine has
    /// the database of its own.
    pub(crate) fn identity(&self, session: &Identity) -> Identity {
        let length = usize::try_from(self.raw.database_length).ok();
        let database = length.and_then(|length| self.raw.database.get(..length));
        Identity { database: database.map(<[u8]>::to_vec), ..session.clone() }
    }

    /// The statement, from `whole`, which says what the session held when it ended; `None` where
    /// it was only an attempt.
    pub(crate) fn statement<'a>(
        &self,
        reply: &Reply<'_>,
        codes: &DiagnosticsCodes,
        whole: Statement<'a>,
    ) -> Option<Statement<'a>> {
        if whole.error == Some(NEED_REPREPARE) {
            return None;
        }
        let is_timed = self.raw.begin_ns != 0;
        // The session counts over all that runs in it; where it began anew it counts this alone.
        let own = |field, before: u64| {
            let now: u64 = reply.get(field)?;
            is_timed.then(|| now.checked_sub(before).unwrap_or(now))
        };
        // MariaDB's applier clears the area before it returns, unless the statement failed.
        let is_cleared = reply.get(Field::DiagnosticsStatus) == Some(codes.empty.into());
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
            ..whole
        })
    }
}
