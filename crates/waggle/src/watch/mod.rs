//! The outputs of `waggle watch`.

mod before;
mod blocker;
mod csv;
mod host_use;
mod json;
mod lock_waits;
mod output;
mod server_digests;
mod slow_log;
mod snapshots;
mod spent;
pub(crate) mod terminal;

use jiff::Timestamp;
use waggle_model::{DigestTotals, Interval};

pub(crate) use csv::Csv;
pub(crate) use output::{Lines, Table, Written};
pub(crate) use server_digests::ServerDigests;
pub(crate) use slow_log::{SlowLog, SlowLogOptions};

/// What is printed and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Digests per interval.
    pub(crate) limit: usize,
    /// Literals become `?` in statements, too.
    pub(crate) redact: bool,
    /// Whether nested statements are captured.
    pub(crate) nested: bool,
}

/// A time of day from nanoseconds since 1970.
fn time_of(wall_ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(wall_ns)).unwrap_or_default()
}

/// The digests with the most load first, at most `limit`, and the sum of the rest.
fn ranked(interval: &Interval, limit: usize) -> (Vec<(u64, &DigestTotals)>, DigestTotals) {
    let mut digests: Vec<_> =
        interval.digests.iter().map(|(key, totals)| (key.text, totals)).collect();
    digests
        .sort_by_key(|(hash, totals)| (std::cmp::Reverse((totals.active_ns, totals.calls)), *hash));
    let mut other = interval.other.clone();
    for (_, totals) in digests.iter().skip(limit) {
        other.merge(totals);
    }
    // Many digests have no hash of the server's in common.
    other.server_digest = None;
    digests.truncate(limit);
    (digests, other)
}
