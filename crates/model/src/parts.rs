//! Where the wall time of a statement went.

/// What a statement did with a part of its time. The order is that of pictures and tables: what works
/// comes first, then what waits for the machine, then what waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeClass {
    /// On a processor.
    Cpu,
    /// Ready to run: others had the processors.
    RunQueue,
    /// Its thread was stopped: by a signal, a debugger, or the freezer of its control group.
    Stopped,
    /// Read from a file.
    DiskRead,
    /// Wrote to a file.
    DiskWrite,
    /// Made a file durable itself: redo log, data or binlog.
    Sync,
    /// Waited until another thread had written or synced redo log or binlog.
    Commit,
    /// On no thread: MariaDB's pool of threads had put it aside.
    Parked,
    /// Waited for bytes of the client.
    NetworkRead,
    /// Waited until the client took bytes.
    NetworkWrite,
    /// Waited for a row lock.
    RowLock,
    /// Waited for a metadata lock.
    MetadataLock,
    /// Waited for a table lock.
    TableLock,
    /// Waited in `GET_LOCK()`.
    UserLock,
    /// Slept because the statement asked for it.
    Sleep,
    /// Waited until InnoDB let it in (`innodb_thread_concurrency`).
    InnodbTicket,
    /// Waited for a mutex, a read-write lock, or a page that another thread used.
    Latch,
    /// Off the processor, and the cause is not known.
    Other,
    /// Before waggle was attached.
    BeforeAttach,
}

impl TimeClass {
    /// Every class, in its order.
    pub const ALL: [TimeClass; 19] = [
        TimeClass::Cpu,
        TimeClass::RunQueue,
        TimeClass::Stopped,
        TimeClass::DiskRead,
        TimeClass::DiskWrite,
        TimeClass::Sync,
        TimeClass::Commit,
        TimeClass::Parked,
        TimeClass::NetworkRead,
        TimeClass::NetworkWrite,
        TimeClass::RowLock,
        TimeClass::MetadataLock,
        TimeClass::TableLock,
        TimeClass::UserLock,
        TimeClass::Sleep,
        TimeClass::InnodbTicket,
        TimeClass::Latch,
        TimeClass::Other,
        TimeClass::BeforeAttach,
    ];

    /// The class of this number, which is its place in the order; `None` if there is none.
    pub fn of_number(number: u64) -> Option<TimeClass> {
        TimeClass::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether a session waits for a lock that another one holds.
    pub fn is_lock(self) -> bool {
        use TimeClass::{MetadataLock, RowLock, TableLock, UserLock};
        matches!(self, RowLock | MetadataLock | TableLock | UserLock)
    }

    /// Its name in JSON, CSV and files.
    pub fn key(self) -> &'static str {
        match self {
            TimeClass::Cpu => "cpu",
            TimeClass::RunQueue => "run_queue",
            TimeClass::Stopped => "stopped",
            TimeClass::DiskRead => "disk_read",
            TimeClass::DiskWrite => "disk_write",
            TimeClass::Sync => "sync",
            TimeClass::Commit => "commit",
            TimeClass::Parked => "parked",
            TimeClass::NetworkRead => "network_read",
            TimeClass::NetworkWrite => "network_write",
            TimeClass::RowLock => "row_lock",
            TimeClass::MetadataLock => "metadata_lock",
            TimeClass::TableLock => "table_lock",
            TimeClass::UserLock => "user_lock",
            TimeClass::Sleep => "sleep",
            TimeClass::InnodbTicket => "innodb_ticket",
            TimeClass::Latch => "latch",
            TimeClass::Other => "other",
            TimeClass::BeforeAttach => "before_attach",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            TimeClass::Cpu => "CPU",
            TimeClass::RunQueue => "run queue",
            TimeClass::DiskRead => "disk read",
            TimeClass::DiskWrite => "disk write",
            TimeClass::NetworkRead => "network read",
            TimeClass::NetworkWrite => "network write",
            TimeClass::RowLock => "row lock",
            TimeClass::MetadataLock => "metadata lock",
            TimeClass::TableLock => "table lock",
            TimeClass::UserLock => "user lock",
            TimeClass::InnodbTicket => "InnoDB ticket",
            TimeClass::BeforeAttach => "before waggle came",
            TimeClass::Stopped
            | TimeClass::Sync
            | TimeClass::Commit
            | TimeClass::Parked
            | TimeClass::Sleep
            | TimeClass::Latch
            | TimeClass::Other => self.key(),
        }
    }
}

/// Wall time by class, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([u64; TimeClass::ALL.len()]);

impl Parts {
    /// Time of one class.
    #[inline]
    pub fn get(&self, class: TimeClass) -> u64 {
        self.0[class as usize]
    }

    /// Adds time to one class.
    #[inline]
    pub fn add(&mut self, class: TimeClass, ns: u64) {
        let sum = &mut self.0[class as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Adds another's time, class by class.
    #[inline]
    pub fn merge(&mut self, other: &Parts) {
        for (sum, ns) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(ns);
        }
    }

    /// All classes together: the wall time.
    #[inline]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The same shares of another total. The classes sum to it exactly: what rounding takes from one, the next one
    /// gets. Nothing remains nothing.
    pub fn scaled_to(&self, total: u64) -> Parts {
        let own = self.total();
        // Most statements lie in one interval: theirs are not divided.
        if total == own {
            return *self;
        }
        let all = u128::from(own.max(1));
        let (mut before, mut given) = (0_u128, 0_u64);
        let mut scaled = Parts::default();
        for class in TimeClass::ALL {
            before = (before + u128::from(self.get(class))).min(all);
            // Not above `total`, because `before` is not above `all`.
            let until = (before * u128::from(total) / all) as u64;
            scaled.add(class, until - given);
            given = until;
        }
        scaled
    }
}

/// What a statement used beside its wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In the run queue between the arrival of the request and the start that the server noted,
    /// nanoseconds.
    pub queue_before_start_ns: u64,
    /// Bytes that its thread made the block layer read.
    pub read_bytes: u64,
    /// Bytes that its thread made the block layer write.
    pub written_bytes: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// Switches of its thread that it asked for: it had to wait.
    pub voluntary_switches: u64,
    /// Switches of its thread that the kernel forced.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Adds another's.
    pub fn merge(&mut self, other: &Usage) {
        self.queue_before_start_ns =
            self.queue_before_start_ns.saturating_add(other.queue_before_start_ns);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.major_faults = self.major_faults.saturating_add(other.major_faults);
        self.minor_faults = self.minor_faults.saturating_add(other.minor_faults);
        self.voluntary_switches = self.voluntary_switches.saturating_add(other.voluntary_switches);
        self.involuntary_switches =
            self.involuntary_switches.saturating_add(other.involuntary_switches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_stands_at_its_own_place() {
        let mut parts = Parts::default();
        for (at, class) in TimeClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
            assert_eq!(TimeClass::of_number(at as u64), Some(class));
            parts.add(class, 1 << at);
        }
        assert_eq!(TimeClass::of_number(TimeClass::ALL.len() as u64), None);
        assert_eq!(parts.get(TimeClass::Parked), 1 << 7);
        assert_eq!(parts.total(), (1 << TimeClass::ALL.len()) - 1);
    }

    #[test]
    fn shares_stay_and_sum_to_the_new_total() {
        let mut parts = Parts::default();
        for class in [TimeClass::Cpu, TimeClass::Commit, TimeClass::Other] {
            parts.add(class, u64::MAX / 4);
        }
        for total in [0, 1, 2, 100, 1_000_003, u64::MAX] {
            let scaled = parts.scaled_to(total);
            assert_eq!(scaled.total(), total);
            assert!(scaled.get(TimeClass::Commit).abs_diff(total / 3) <= 1, "{total}: {scaled:?}");
            assert_eq!(scaled.get(TimeClass::Sync), 0);
        }
        assert_eq!(parts.scaled_to(parts.total()), parts);
        assert_eq!(Parts::default().scaled_to(7), Parts::default());
    }
}
