//! Long waits for locks in JSON, each by itself.

use serde::Serialize;
use waggle_model::{Record, StatementLockWait};

use super::blocker::{self, BlockerJson};
use super::time_of;
use crate::text::lossy;

/// A wait of a statement that has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LockWaitJson {
    begin: String,
    length_us: u64,
    /// The class of time.
    waits_for: &'static str,
    connection_id: Option<u64>,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    digest: String,
    digest_text: Option<String>,
    /// What is locked.
    object: Option<String>,
    /// Connections that held it, or stood before it.
    blocked_by: Option<Vec<u64>>,
    /// What is known of the first of them.
    blockers: Option<Vec<BlockerJson>>,
    /// Why that list is empty.
    blocked_by_unknown: Option<String>,
}

/// The waits of an interval; `None` where they are not measured.
pub(super) fn of(record: &Record, redact: bool) -> Option<Vec<LockWaitJson>> {
    record.parts.value()?;
    let waits = record.interval.lock_waits.kept().iter();
    Some(waits.map(|wait| LockWaitJson::new(wait, record, redact)).collect())
}

impl LockWaitJson {
    fn new(one: &StatementLockWait, record: &Record, redact: bool) -> LockWaitJson {
        let StatementLockWait { wait, connection_id, identity, digest } = one;
        let before_end_ns = record.interval.end_ns.saturating_sub(wait.begin_ns);
        let totals = record.interval.digests.get(digest);
        let name = totals.and_then(|totals| totals.name.as_ref());
        let blocked = wait.blocked.as_ref();
        LockWaitJson {
            begin: time_of(record.end_wall_ns.saturating_sub(before_end_ns)).to_string(),
            length_us: wait.length_ns / 1000,
            waits_for: wait.class.key(),
            connection_id: *connection_id,
            user: lossy(&identity.user),
            host: lossy(&identity.host),
            schema: lossy(&identity.database),
            digest: format!("{:016x}", digest.text),
            digest_text: name.map(|name| name.text.to_string()),
            object: blocked.and_then(|blocked| blocked.object.clone()),
            blocked_by: blocked.map(|blocked| blocked.by.clone()),
            blockers: blocked.map(|blocked| blocker::of(blocked, record, redact)),
            blocked_by_unknown: blocked.and_then(|blocked| blocked.unknown.clone()),
        }
    }
}
