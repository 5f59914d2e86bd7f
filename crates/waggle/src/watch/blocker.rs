//! Who holds a lock, in JSON.

use serde::Serialize;
use waggle_model::{Blocked, Blocker, Ran, Record};

use super::time_of;
use crate::text::{lossy, printable};

/// A session that holds what others wait for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BlockerJson {
    connection_id: u64,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    /// Whether it waits for its client.
    idle: Option<bool>,
    /// Whether it waits for a lock itself: it may only stand before others in the queue.
    waits: bool,
    /// Since when it is idle, or its statement runs.
    since: Option<String>,
    /// What it runs, or ran last.
    statement: Option<String>,
    /// The first statement of its open transaction that wrote something.
    first_write: Option<String>,
}

/// Those who are named, as far as something is known of them.
pub(super) fn of(blocked: &Blocked, record: &Record, redact: bool) -> Vec<BlockerJson> {
    blocked.blockers.iter().map(|blocker| BlockerJson::new(blocker, record, redact)).collect()
}

impl BlockerJson {
    fn new(blocker: &Blocker, record: &Record, redact: bool) -> BlockerJson {
        let text = |ran: &Ran| printable(&ran.text, ran.settings, redact);
        let since = |ns: u64| {
            let before_end_ns = record.interval.end_ns.saturating_sub(ns);
            time_of(record.end_wall_ns.saturating_sub(before_end_ns)).to_string()
        };
        BlockerJson {
            connection_id: blocker.connection_id,
            user: lossy(&blocker.identity.user),
            host: lossy(&blocker.identity.host),
            schema: lossy(&blocker.identity.database),
            idle: blocker.is_idle,
            waits: blocker.waits,
            since: blocker.since_ns.map(since),
            statement: blocker.statement.as_ref().map(text),
            first_write: blocker.first_write.as_ref().map(text),
        }
    }
}
