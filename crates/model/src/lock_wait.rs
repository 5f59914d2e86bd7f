//! Long waits of statements for locks, each by itself.

use crate::{Blocked, DigestKey, DigestName, DigestsMax, Identity, Interval, Statement, TimeClass};

/// From this length on a wait for a lock is told when it has ended, and it is looked who holds the lock. The probe
/// `waits` has the same number.
pub const LONG_WAIT_NS: u64 = 10_000_000;
/// Most waits of an interval that are kept, the longest ones.
const KEPT: usize = 100;

/// A statement begins to wait for a lock, or a long wait of it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWaitNews {
    /// The server.
    pub pid: u32,
    /// Address of the session.
    pub thd: u64,
    /// The start of the statement as the server notes it.
    pub noted_start_us: u64,
    /// The kind of lock.
    pub class: TimeClass,
    /// When this happened, nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How long it has waited, nanoseconds; `None`: it begins.
    pub waited_ns: Option<u64>,
}

/// A wait for a lock that lasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The kind of lock.
    pub class: TimeClass,
    /// Its begin, nanoseconds of `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// Nanoseconds.
    pub length_ns: u64,
    /// Who held the lock; `None` where nobody looked while it lasted.
    pub blocked: Option<Blocked>,
}

/// The same, with the statement that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLockWait {
    /// The wait.
    pub wait: LockWait,
    /// The connection id.
    pub connection_id: Option<u64>,
    /// Who and where.
    pub identity: Identity,
    /// The digest of the statement.
    pub digest: DigestKey,
}

/// The longest waits for locks of the statements that ended in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// The longest first.
    kept: Vec<StatementLockWait>,
    /// Shorter ones that found no room.
    left_out: u64,
}

impl LockWaits {
    /// The longest first.
    pub fn kept(&self) -> &[StatementLockWait] {
        &self.kept
    }

    /// How many more there were.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds those of a statement.
    pub(crate) fn add(&mut self, statement: &Statement<'_>, digest: DigestKey) {
        for wait in statement.lock_waits {
            let is_full = self.kept.len() >= KEPT;
            self.left_out += u64::from(is_full);
            let longer = |one: &StatementLockWait| one.wait.length_ns >= wait.length_ns;
            let at = self.kept.partition_point(longer);
            if is_full && at == KEPT {
                continue;
            }
            self.kept.truncate(KEPT - 1);
            self.kept.insert(
                at,
                StatementLockWait {
                    wait: wait.clone(),
                    connection_id: statement.connection_id,
                    identity: statement.identity.clone(),
                    digest,
                },
            );
        }
    }

    /// Bytes of the texts in it.
    pub(crate) fn text_bytes(&self) -> usize {
        let bytes =
            |one: &StatementLockWait| one.wait.blocked.as_ref().map_or(0, Blocked::text_bytes);
        self.kept.iter().map(bytes).sum()
    }
}

impl Interval {
    /// Books the waits for locks of a statement that is not counted, since nobody knows how it ended.
    pub fn book_lock_waits(
        &mut self,
        statement: &Statement<'_>,
        key: DigestKey,
        limit: DigestsMax,
        name: impl FnOnce() -> DigestName,
    ) {
        self.lock_waits.add(statement, key);
        self.totals(key, limit, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_in_their_order_and_the_others_counted() {
        let identity = Identity::default();
        let mut waits = LockWaits::default();
        let lengths = (0..KEPT as u64 + 50).map(|number| number * 7919 % 1009);
        for length_ns in lengths.clone() {
            let class = TimeClass::RowLock;
            let wait = [LockWait { class, begin_ns: 0, length_ns, blocked: None }];
            let statement = Statement { lock_waits: &wait, ..Statement::unread(1, &identity) };
            waits.add(&statement, DigestKey { text: 1, schema: 0 });
        }
        let mut longest: Vec<u64> = lengths.collect();
        longest.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        let kept: Vec<u64> = waits.kept().iter().map(|one| one.wait.length_ns).collect();
        assert_eq!(kept, longest[..KEPT]);
        assert_eq!(waits.left_out(), 50);
    }
}
