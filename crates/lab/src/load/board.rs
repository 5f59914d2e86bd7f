//! Memory that the sessions of sysbench share with us: what they may do, and what they did.
//!
//! It is a memory file (memfd_create(2)). A file on a disk would be written back in the middle of a
//! window, and its writers kept waiting for that; one in /dev/shm would be limited in most containers,
//! and left there by a killed process. This one has no name: it is the standard input of sysbench, and
//! gone with us. The sessions map it; we read and write it as a file, which is the same memory (mmap(2),
//! `MAP_SHARED`). Layout, all numbers doubles:
//!
//! - at 0 the head: sessions, buckets, epoch, pace, rate, last arrival, failed; at 64 a mutex of the
//!   sessions;
//! - at 4096 for each session 64 bytes: whether it stands still, transactions, retries, the sum of
//!   their times, the longest, whether it is inside a transaction;
//! - on the next page for each session its histogram.
//!
//! While we hold the lock of the file (flock(2)) each session that finds the pace `Paused` sleeps in the
//! kernel until we release it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::Count;
use super::histogram::{BUCKETS, Histogram};

const PAGE_BYTES: u64 = 4096;
const SESSION_BYTES: u64 = 64;
const NUMBER_BYTES: usize = 8;

/// Places in the head.
const SESSIONS: u64 = 0;
const BUCKETS_AT: u64 = 8;
const EPOCH_S: u64 = 16;
const PACE: u64 = 24;
const PER_SECOND: u64 = 32;
const LAST_NS: u64 = 40;
const FAILED: u64 = 48;

/// Places in the record of a session.
const TRANSACTIONS: usize = 1;
const RETRIES: usize = 2;
const SUM_NS: usize = 3;
const MAX_NS: usize = 4;
const IS_BUSY: usize = 5;

/// What the sessions may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Allowed {
    /// Nothing, as long as we hold the lock.
    Paused,
    /// A transaction as soon as the last one has ended.
    Closed,
    /// A transaction at each arrival.
    Open { per_second: f64 },
    /// To end.
    End,
}

impl Allowed {
    fn number(self) -> f64 {
        match self {
            Allowed::Paused => 0.0,
            Allowed::Closed => 1.0,
            Allowed::Open { .. } => 2.0,
            Allowed::End => 3.0,
        }
    }
}

/// The board of one sysbench.
#[derive(Debug)]
pub(super) struct Board {
    file: File,
    sessions: u32,
    /// Times on the board count from this second of `CLOCK_MONOTONIC`.
    epoch_s: i64,
}

impl Board {
    /// Makes one that lets nobody do anything.
    pub(super) fn create(sessions: u32) -> io::Result<Board> {
        let file = File::from(memfd_create("waggle-lab-board", MemfdFlags::CLOEXEC)?);
        let epoch_s = clock_gettime(ClockId::Monotonic).tv_sec;
        let board = Board { file, sessions, epoch_s };
        board.file.set_len(board.histogram_at(sessions))?;
        flock(&board.file, FlockOperation::LockExclusive)?;
        board.put(SESSIONS, f64::from(sessions))?;
        board.put(BUCKETS_AT, BUCKETS as f64)?;
        board.put(EPOCH_S, epoch_s as f64)?;
        Ok(board)
    }

    /// Opens it anew, so that our lock is not that of the process that is given it.
    pub(super) fn open_again(&self) -> io::Result<File> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        File::options().read(true).write(true).open(path)
    }

    /// Takes the lock and asks for a pause; false where a session that just leaves the last pause has
    /// the lock for a moment.
    pub(super) fn hold(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.put(PACE, Allowed::Paused.number()).map(|()| true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Says what is allowed and releases the sessions. The process of arrivals begins now.
    pub(super) fn release(&self, allowed: Allowed) -> io::Result<()> {
        if let Allowed::Open { per_second } = allowed {
            self.put(PER_SECOND, per_second)?;
            self.put(LAST_NS, self.now_ns())?;
        }
        self.put(PACE, allowed.number())?;
        Ok(flock(&self.file, FlockOperation::Unlock)?)
    }

    /// For how long the next arrival has been waiting for a session, ns; 0 where sessions wait for it.
    pub(super) fn behind_ns(&self) -> io::Result<f64> {
        let last_ns = self.numbers(LAST_NS, 1)?.first().copied().unwrap_or_default();
        Ok((self.now_ns() - last_ns).max(0.0))
    }

    fn now_ns(&self) -> f64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec - self.epoch_s) as f64 * 1e9 + now.tv_nsec as f64
    }

    /// Whether no session is inside a transaction. One that has just been allowed to begin, and has not
    /// said so yet, is not seen.
    pub(super) fn is_at_rest(&self) -> io::Result<bool> {
        Ok(self.records()?.iter().all(|record| record[IS_BUSY] == 0.0))
    }

    /// Whether all sessions stand still. They stay so as long as we hold the lock.
    pub(super) fn is_still(&self) -> io::Result<bool> {
        Ok(self.records()?.iter().all(|[is_still, ..]| *is_still == 1.0))
    }

    /// Whether a session has met an error that it was not told to ignore.
    pub(super) fn has_failed(&self) -> io::Result<bool> {
        Ok(self.numbers(FAILED, 1)?.first().is_some_and(|failed| *failed != 0.0))
    }

    /// Transactions of all sessions so far, without all else: the histograms of 1,000 sessions are 50 MB.
    pub(super) fn transactions(&self) -> io::Result<u64> {
        Ok(self.records()?.iter().map(|record| record[TRANSACTIONS]).sum::<f64>() as u64)
    }

    /// What all sessions have done so far. While they are at work, the histogram may know some
    /// transactions more than the count: it is read after it, which takes up to some 10 ms with 1,000
    /// sessions.
    pub(super) fn count(&self) -> io::Result<Count> {
        let records = self.records()?;
        let sum = |at: usize| records.iter().map(|record| record[at]).sum::<f64>();
        let mut histogram = Histogram::new();
        for session in 0..self.sessions {
            let counts = self.numbers(self.histogram_at(session), BUCKETS)?;
            histogram.add(counts.into_iter().map(|count| count as u64));
        }
        Ok(Count {
            transactions: sum(TRANSACTIONS) as u64,
            retries: sum(RETRIES) as u64,
            sum_ns: sum(SUM_NS),
            max_ns: records.iter().map(|record| record[MAX_NS]).fold(0.0, f64::max),
            histogram,
        })
    }

    fn histogram_at(&self, session: u32) -> u64 {
        let records = (u64::from(self.sessions) * SESSION_BYTES).next_multiple_of(PAGE_BYTES);
        PAGE_BYTES + records + u64::from(session) * (BUCKETS * NUMBER_BYTES) as u64
    }

    fn records(&self) -> io::Result<Vec<[f64; SESSION_BYTES as usize / NUMBER_BYTES]>> {
        let count = self.sessions as usize * SESSION_BYTES as usize / NUMBER_BYTES;
        Ok(self.numbers(PAGE_BYTES, count)?.as_chunks().0.to_vec())
    }

    fn numbers(&self, at: u64, count: usize) -> io::Result<Vec<f64>> {
        let mut bytes = vec![0; count * NUMBER_BYTES];
        self.file.read_exact_at(&mut bytes, at)?;
        let numbers = bytes.as_chunks::<NUMBER_BYTES>().0.iter();
        Ok(numbers.map(|number| f64::from_ne_bytes(*number)).collect())
    }

    fn put(&self, at: u64, number: f64) -> io::Result<()> {
        self.file.write_all_at(&number.to_ne_bytes(), at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::SCRIPT;
    use super::*;

    #[test]
    fn the_script_of_the_sessions_has_the_same_layout() {
        let lowest = "LOWEST = 27 * 256, (1023 + 10) * 256";
        assert_eq!(BUCKETS, 27 * 256);
        let paces = [Allowed::Paused, Allowed::Closed, Allowed::Open { per_second: 1.0 }];
        assert_eq!(paces.map(Allowed::number), [0.0, 1.0, 2.0]);
        for line in [
            "HEAD_BYTES, SESSION_BYTES, PAGE_BYTES = 4096, 64, 4096",
            "PAUSED, CLOSED, OPEN = 0, 1, 2",
            "double sessions, buckets, epoch_s;",
            "volatile double pace, per_second, last_ns, failed, unused;",
            "volatile double is_still, transactions, retries, sum_ns, max_ns, is_busy, unused[2];",
            lowest,
        ] {
            assert!(SCRIPT.contains(line), "{line}");
        }
    }

    #[test]
    fn what_the_sessions_wrote_is_summed() {
        let board = Board::create(70).unwrap();
        let records = 4096;
        for (session, numbers) in [(0, [1.0, 5.0, 1.0, 3e6, 9e5]), (69, [0.0, 7.0, 0.0, 4e6, 8e5])]
        {
            for (at, number) in numbers.into_iter().enumerate() {
                board.put(records + session * 64 + at as u64 * 8, number).unwrap();
            }
        }
        // 70 records take two pages.
        let histograms = 4096 + 2 * 4096;
        board.put(histograms + 8 * 100, 5.0).unwrap();
        board.put(histograms + 69 * (27 * 256 * 8) + 8 * 100, 7.0).unwrap();
        let count = board.count().unwrap();
        assert_eq!((count.transactions, count.retries), (12, 1));
        assert_eq!(board.transactions().unwrap(), 12);
        assert_eq!((count.sum_ns, count.max_ns), (7e6, 9e5));
        assert_eq!(count.latency().unwrap().shape.iter().map(|(_, count)| count).sum::<u64>(), 12);
        assert!(!board.is_still().unwrap() && !board.has_failed().unwrap());
        assert!(board.is_at_rest().unwrap());
        board.put(records + 69 * 64 + 8 * IS_BUSY as u64, 1.0).unwrap();
        assert!(!board.is_at_rest().unwrap());
        board.put(FAILED, 1.0).unwrap();
        (0..70).for_each(|session| board.put(records + session * 64, 1.0).unwrap());
        assert!(board.is_still().unwrap() && board.has_failed().unwrap());
    }

    #[test]
    fn a_session_passes_only_while_the_lock_is_released() {
        let board = Board::create(1).unwrap();
        let session = board.open_again().unwrap();
        let pass = || flock(&session, FlockOperation::NonBlockingLockShared);
        assert_eq!(pass(), Err(Errno::WOULDBLOCK));
        board.release(Allowed::Open { per_second: 50.0 }).unwrap();
        assert_eq!(pass(), Ok(()));
        assert!(!board.hold().unwrap(), "a session is on its way out of the pause");
        let head = board.numbers(0, 7).unwrap();
        assert_eq!((head[0], head[3], head[4]), (1.0, 2.0, 50.0));
        assert!(head[5] < 60e9, "the epoch is that of the board: {}", head[5]);
        let behind = || board.behind_ns().unwrap();
        assert!((0.0..60e9).contains(&behind()));
        board.put(LAST_NS, head[5] - 1e9).unwrap();
        assert!((1e9..60e9).contains(&behind()), "nobody takes what arrives");
        board.put(LAST_NS, head[5] + 90e9).unwrap();
        assert_eq!(behind(), 0.0);
        flock(&session, FlockOperation::Unlock).unwrap();
        assert!(board.hold().unwrap() && board.hold().unwrap());
        assert_eq!((pass(), board.numbers(PACE, 1).unwrap()), (Err(Errno::WOULDBLOCK), vec![0.0]));
    }
}
