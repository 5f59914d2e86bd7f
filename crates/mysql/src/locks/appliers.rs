//! The threads that apply changes of other servers, with their channels.

use waggle_model::{Flavour, WaitsFor};

use super::gate::Source;
use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, optional_text, text};

/// A worker of replication, or the thread that gives the workers of a channel their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applier {
    pub(super) connection: u64,
    pub(super) state: String,
    pub(super) is_worker: bool,
    /// The channel that it works for (MariaDB: the connection); empty for the one without a name.
    pub(super) channel: String,
    /// Whether it is within a transaction; `None` if the server does not say so.
    pub(super) applies: Option<bool>,
}

impl Applier {
    pub(super) fn waits_for(&self) -> Option<WaitsFor> {
        WaitsFor::of(&self.state)
    }
}

/// The first version whose workers show their transaction.
const TRANSACTION_SINCE: [u32; 3] = [8, 0, 1];

/// All appliers of whom the server says for which channel they work; nobody without the right to see
/// that, and of MariaDB workers only.
pub(super) fn read(
    connection: &mut Connection,
    source: &Source,
) -> Result<Vec<Applier>, ConnectionError> {
    if !matches!(source, Source::Threads) {
        return Ok(Vec::new());
    }
    let identity = connection.server_identity();
    let says_transaction =
        identity.flavour == Flavour::Mysql && identity.server_version().number >= TRANSACTION_SINCE;
    let applies = if says_transaction { "a.APPLYING_TRANSACTION <> ''" } else { "NULL" };
    let of = |table: &str, applies: &str| {
        format!(
            "SELECT t.PROCESSLIST_ID AS {MARK}, t.PROCESSLIST_STATE, t.NAME, a.CHANNEL_NAME, {applies} \
             FROM performance_schema.replication_applier_status_by_{table} a \
             JOIN performance_schema.threads t ON t.THREAD_ID = a.THREAD_ID"
        )
    };
    let rows = connection.rows(&format!(
        "{} UNION ALL {}",
        of("worker", applies),
        of("coordinator", "NULL")
    ));
    let rows = absent_or(connection, "the channels of replication", rows)?;
    Ok(rows.value().into_iter().flatten().filter_map(applier).collect())
}

fn applier(row: &Row) -> Option<Applier> {
    Some(Applier {
        connection: text(row, 0).parse().ok()?,
        state: text(row, 1),
        // Without workers the table of the workers lists the SQL thread.
        is_worker: !text(row, 2).ends_with("_sql"),
        channel: text(row, 3),
        applies: optional_text(row, 4).map(|applies| applies == "1"),
    })
}
