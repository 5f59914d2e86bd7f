//! Which statement a session ended last: what its thread worked after the reply is told with the next one.

use foldhash::HashMap;
use waggle_model::{DigestKey, Statement};

/// Sessions whose last statement is remembered: as many as the tap remembers.
const SESSIONS_MAX: usize = 32_768;

/// The last statement of every session, by the address of the session.
#[derive(Default)]
pub(crate) struct LastStatements(HashMap<u64, Last>);

/// One of them.
pub(crate) struct Last {
    /// Addresses are used again.
    connection_id: Option<u64>,
    /// `None` for a command that is no statement: what follows its reply is nobody's.
    pub(crate) digest: Option<DigestKey>,
}

impl LastStatements {
    /// What a session ended last is this. Returns what it was before; `None` if that is not known.
    ///
    /// Where there are too many sessions, all are forgotten: sessions that have gone make room again, and each
    /// of the others loses what follows one reply, which is in the sum of the interval.
    pub(crate) fn replace(
        &mut self,
        statement: &Statement<'_>,
        digest: Option<DigestKey>,
    ) -> Option<Last> {
        if self.0.len() >= SESSIONS_MAX && !self.0.contains_key(&statement.thd) {
            self.0.clear();
        }
        let last = Last { connection_id: statement.connection_id, digest };
        let before = self.0.insert(statement.thd, last);
        before.filter(|before| before.connection_id == statement.connection_id)
    }
}
