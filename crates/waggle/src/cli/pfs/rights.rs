//! The rights that an account lacks for a change.

use std::collections::BTreeSet;

use waggle_instrumentation::Table;
use waggle_instrumentation::hold::HoldError;
use waggle_mysql::{Connection, ServerIdentity};

/// `ER_OPTION_PREVENTS_STATEMENT`: the server is read-only. MySQL still allows setting Performance
/// Schema.
const READ_ONLY: u16 = 1290;

/// What an account needs to change tables.
pub(in crate::cli) struct Rights {
    server: ServerIdentity,
    rights: BTreeSet<&'static str>,
}

impl Rights {
    pub(in crate::cli) fn to_change(
        tables: impl IntoIterator<Item = Table>,
        connection: &Connection,
    ) -> Rights {
        let server = connection.server_identity();
        let rights = tables.into_iter().map(|table| table.right_to_change(server)).collect();
        Rights { server: server.clone(), rights }
    }

    /// An error, and what the account lacks where it is a missing right.
    pub(in crate::cli) fn explain(&self, error: HoldError) -> anyhow::Error {
        let lacks = match &error {
            HoldError::Connection(error) if error.is_access_denied() => Some(self.missing()),
            HoldError::Connection(error) if error.number() == Some(READ_ONLY) => {
                Some(self.missing_on_read_only())
            }
            _ => None,
        };
        let error = anyhow::Error::from(error);
        lacks.into_iter().fold(error, |error, lacks| error.context(lacks))
    }

    fn missing(&self) -> String {
        let grants: Vec<String> =
            self.rights.iter().map(|right| self.server.grant(right)).collect();
        format!("account {} may not change this; run {}", self.server.account, grants.join("; "))
    }

    fn missing_on_read_only(&self) -> String {
        let grant = self.server.grant("READ ONLY ADMIN ON *.*");
        format!("the server is read-only, for account {} too; run {grant}", self.server.account)
    }
}
