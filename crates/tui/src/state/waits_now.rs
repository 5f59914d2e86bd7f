//! Waits for locks that go on at the end of an interval, by the digest that waits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use waggle_model::{DigestKey, LONG_WAIT_NS, LockWait, RunningStatement, StatementLockWait};

use super::session::bytes_of;

/// Those of a digest.
#[derive(Clone, Debug)]
pub(crate) struct WaitsNow {
    /// The longest, with its length so far.
    pub(crate) longest: StatementLockWait,
    /// Sessions that wait.
    pub(crate) sessions: usize,
}

impl WaitsNow {
    /// By digest. What has waited for less than 10 ms is no long wait yet, and nobody looks who holds its lock.
    pub(crate) fn of(running: &[RunningStatement], now_ns: u64) -> HashMap<DigestKey, WaitsNow> {
        let mut all: HashMap<DigestKey, WaitsNow> = HashMap::new();
        for one in running {
            let Some((digest, wait)) = long_wait(one, now_ns) else { continue };
            let found = StatementLockWait {
                wait,
                connection_id: Some(one.connection_id),
                identity: one.identity.clone(),
                digest,
            };
            match all.entry(digest) {
                Entry::Vacant(new) => {
                    new.insert(WaitsNow { longest: found, sessions: 1 });
                }
                Entry::Occupied(known) => known.into_mut().add(found),
            }
        }
        all
    }

    fn add(&mut self, other: StatementLockWait) {
        self.sessions += 1;
        if other.wait.length_ns > self.longest.wait.length_ns {
            self.longest = other;
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let identity = &self.longest.identity;
        let names = [&identity.user, &identity.host, &identity.database].into_iter().flatten();
        let blocked = self.longest.wait.blocked.as_ref().map_or(0, bytes_of);
        size_of::<WaitsNow>() + names.map(Vec::len).sum::<usize>() + blocked
    }
}

fn long_wait(running: &RunningStatement, now_ns: u64) -> Option<(DigestKey, LockWait)> {
    let now = running.waits.filter(|now| now.class.is_lock())?;
    let length_ns = now_ns.saturating_sub(now.since_ns);
    let wait = || LockWait {
        class: now.class,
        begin_ns: now.since_ns,
        length_ns,
        blocked: running.blocked.clone(),
    };
    (length_ns >= LONG_WAIT_NS).then(|| Some((running.digest?, wait())))?
}

#[cfg(test)]
mod tests {
    use waggle_model::{Blocked, NowWait, TimeClass};

    use super::*;

    const NOW_NS: u64 = 100 * LONG_WAIT_NS;

    fn running(id: u64, text: u64, class: TimeClass, length_ns: u64) -> RunningStatement {
        RunningStatement {
            connection_id: id,
            digest: Some(DigestKey { text, schema: 0 }),
            waits: Some(NowWait { class, since_ns: NOW_NS - length_ns }),
            blocked: Some(Blocked { by: vec![id + 100], ..Blocked::default() }),
            ..RunningStatement::default()
        }
    }

    #[test]
    fn of_each_digest_the_longest_wait_for_a_lock_is_found_and_the_others_are_counted() {
        let long = LONG_WAIT_NS;
        let all = [
            running(1, 7, TimeClass::RowLock, 2 * long),
            running(2, 7, TimeClass::RowLock, 9 * long),
            running(3, 7, TimeClass::RowLock, 5 * long),
            running(4, 7, TimeClass::DiskRead, 99 * long),
            running(5, 7, TimeClass::RowLock, long - 1),
            running(6, 8, TimeClass::MetadataLock, long),
            running(9, 9, TimeClass::UserLock, long - 1),
            RunningStatement { digest: None, ..running(10, 10, TimeClass::RowLock, 50 * long) },
            RunningStatement { waits: None, ..running(11, 11, TimeClass::RowLock, 50 * long) },
        ];
        let found = WaitsNow::of(&all, NOW_NS);
        let told = |text| {
            let WaitsNow { longest, sessions } = found.get(&DigestKey { text, schema: 0 })?;
            let by = longest.wait.blocked.as_ref()?.by[0];
            Some((longest.connection_id?, longest.wait.length_ns, by, *sessions))
        };
        assert_eq!(told(7), Some((2, 9 * long, 102, 3)));
        assert_eq!(told(8), Some((6, long, 106, 1)));
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
