//! A wait for a lock, as a program tells it when it begins, and when a long one has ended.

use waggle_model::{LockWaitNews, TimeClass};

use super::skeleton::types;
use crate::carrier::read_struct;

/// What a record says; `None` where it says no such thing.
pub(crate) fn told_of(record: &[u8]) -> Option<LockWaitNews> {
    let raw: types::wait = read_struct(record)?;
    let class = TimeClass::of_number(raw.part)?;
    class.is_lock().then_some(LockWaitNews {
        pid: raw.head.tgid,
        thd: raw.head.thd,
        noted_start_us: raw.start,
        class,
        at_ns: raw.head.end_ns,
        waited_ns: (raw.ns > 0).then_some(raw.ns),
    })
}
