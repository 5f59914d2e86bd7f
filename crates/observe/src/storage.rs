//! How long tasks waited for storage, from interval to interval.

use waggle_host::{Process, StoragePressure, monotonic_ns};
use waggle_model::{Reading, StorageWaits};

use crate::cost::SHORTEST;

/// Reads it of one server.
pub(crate) struct Storage {
    pid: u32,
    last: (u64, Reading<StoragePressure>),
}

impl Storage {
    /// Begins with a server.
    pub(crate) fn open(pid: u32) -> Storage {
        Storage { pid, last: now(pid) }
    }

    /// What was waited for since the call before.
    pub(crate) fn read(&mut self) -> Reading<StorageWaits> {
        let (before_ns, before) = std::mem::replace(&mut self.last, now(self.pid));
        let (now_ns, now) = &self.last;
        since(now_ns.saturating_sub(before_ns), &before, now)
    }
}

fn now(pid: u32) -> (u64, Reading<StoragePressure>) {
    (monotonic_ns(), Process::of(pid).storage_pressure())
}

fn since(
    passed_ns: u64,
    before: &Reading<StoragePressure>,
    now: &Reading<StoragePressure>,
) -> Reading<StorageWaits> {
    let (before, now) = match (before, now) {
        (Reading::Value(before), Reading::Value(now)) => (before, now),
        (_, Reading::Absent(why)) | (Reading::Absent(why), _) => return Reading::absent(why),
    };
    if u128::from(passed_ns) < SHORTEST.as_nanos() {
        return Reading::absent("the interval is too short for what the kernel says of it");
    }
    if before.of_group != now.of_group {
        return Reading::absent("the server has come into another control group");
    }
    let waited_us = now.some_us.saturating_sub(before.some_us);
    let share = (waited_us as f64 * 1e3 / passed_ns as f64).min(1.0);
    Reading::Value(StorageWaits { share, of_group: now.of_group.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_share_of_the_time_and_of_one_group_only() {
        let told = |some_us, of_group: Option<&str>| {
            Reading::Value(StoragePressure { some_us, of_group: of_group.map(Into::into) })
        };
        let host = |some_us| told(some_us, None);
        let waits = |share, of_group| Reading::Value(StorageWaits { share, of_group });
        assert_eq!(since(2_000_000_000, &host(7), &host(500_007)), waits(0.25, false));
        assert_eq!(since(100_000_000, &host(0), &host(100_500)), waits(1.0, false), "of ticks");
        assert_eq!(
            since(1_000_000_000, &told(0, Some("a")), &told(0, Some("a"))),
            waits(0.0, true)
        );
        assert!(since(10, &host(0), &host(9)).why().is_some());
        assert!(since(1_000_000_000, &host(0), &told(9, Some("a"))).why().is_some());
        assert!(since(1_000_000_000, &host(0), &Reading::absent("no")).why().is_some());
    }
}
