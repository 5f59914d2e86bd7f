//! The rings of records, one per processor that is online, read in order of time.
//!
//! `ring.bpf.h` has the kernel's half, and why this is not `BPF_MAP_TYPE_RINGBUF`.
//!
//! A session's thread moves between processors, so its records lie in several rings, and waggle
//! must read them in order. A thread completes one record before it begins the next, and takes the
//! time of the next after that. Two rules follow. A record that began before waggle started to read
//! can be read, oldest first. If a place is reserved and its record is incomplete, waggle reads
//! nothing later than the last time at which that place was known to be free.
//!
//! Both hold where processors share a ring, too. Threads may then take places in another order than
//! times. But what lies in front of a record has its place, and so its time, from before the next
//! record of that record's thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::mem::replace;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use waggle_host::{monotonic_ns, processors};

use super::mapped::Mapped;
use super::skeleton::types;

/// `RING_SLACK`, `RING_BYTES_MIN` and `RECORD_COMPLETE` of `shared.h`.
const SLACK: usize = 72 * 1024;
const BYTES_MIN: usize = 512 * 1024;
const RECORD_COMPLETE: u32 = 1;
/// Bytes of all rings together, as far as each keeps its least, and the most of one: before Linux 6.0
/// a value of an array may have 4 MiB (`KMALLOC_MAX_SIZE`, until 63b8ce77b15e).
const BYTES_ALL: usize = 8 * 1024 * 1024;
const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Before the records of a ring: `struct ring`.
const START: usize = size_of::<types::ring>();
const RESERVED: usize = std::mem::offset_of!(types::ring, reserved);
const CONSUMED: usize = std::mem::offset_of!(types::ring, consumed);
/// A record is written before it is read. One that is stamped this much later, nanoseconds, has another clock than waggle.
const OTHER_CLOCK_NS: u64 = 1_000_000_000;
/// An empty ring starts from its beginning once one part in this many was used.
const REWIND_PART: u64 = 4;

/// The sizes of the map of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// One for each processor that is online. One that comes online later shares one.
    pub(super) rings: usize,
    /// Bytes for records of each: a power of two.
    pub(super) ring_bytes: usize,
    /// Bytes of an entry of the map, a multiple of the size of a page.
    pub(super) value_bytes: usize,
}

impl Shape {
    pub(super) fn of_host() -> io::Result<Shape> {
        Ok(Shape::of(rings_for(&processors::online_numbers()?)))
    }

    fn of(rings: usize) -> Shape {
        let part = (BYTES_ALL / rings.max(1)).clamp(BYTES_MIN, BYTES_MAX);
        // The largest power of two that is not above the part.
        let ring_bytes = 1 << part.ilog2();
        let page = rustix::param::page_size();
        let value_bytes = (START + ring_bytes + SLACK).next_multiple_of(page);
        Shape { rings, ring_bytes, value_bytes }
    }

    /// Bytes of all entries.
    fn bytes(self) -> usize {
        self.rings * self.value_bytes
    }
}

/// The ring of a processor. `ring.bpf.h` has the same rule.
fn ring_of(processor: usize, rings: usize) -> usize {
    processor % rings
}

/// The least number of rings at which none of these processors shares one. That is how many they are, where they are
/// numbered without gaps. Where it were more than twice as many, some share one.
fn rings_for(online: &[usize]) -> usize {
    let shares_none = |rings: &usize| {
        let mut taken = vec![false; *rings];
        online.iter().all(|processor| !replace(&mut taken[ring_of(*processor, *rings)], true))
    };
    let least = online.len().max(1);
    (least..=2 * least).find(shares_none).unwrap_or(least)
}

/// The consumer of all rings. Records are handed out where they lie, without a copy.
pub(super) struct Rings {
    memory: Mapped,
    shape: Shape,
    cursors: Vec<Cursor>,
    /// When the oldest record of each ring that has one may be read, its time, and the ring.
    fronts: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// How full the fullest ring was when it was last read, 0 to 1.
    filled: f64,
}

/// Where the reading of a ring stands.
#[derive(Clone, Copy, Default)]
struct Cursor {
    /// Bytes read since the start.
    consumed: u64,
    /// When the place at `consumed` was known to be free, or before, `CLOCK_MONOTONIC`.
    free_ns: u64,
}

/// What lies at the cursor of a ring.
enum Front {
    /// A complete record of this time.
    Record(u64),
    Nothing,
    /// A record that is being written.
    Incomplete,
}

/// `now_ns` may be long ago: then the clock is asked again.
fn is_of_another_clock(time: u64, now_ns: u64) -> bool {
    let is_ahead = |now_ns: u64| time > now_ns.saturating_add(OTHER_CLOCK_NS);
    is_ahead(now_ns) && is_ahead(monotonic_ns())
}

impl Rings {
    /// Maps the rings of a map of this shape.
    pub(super) fn new(map: BorrowedFd<'_>, shape: Shape) -> io::Result<Rings> {
        let memory = Mapped::new(map, shape.bytes())?;
        let cursors = vec![Cursor::default(); shape.rings];
        Ok(Rings { memory, shape, cursors, fronts: BinaryHeap::new(), filled: 0.0 })
    }

    /// Hands records to `consume`, oldest first, until there is none, about `limit` were handed out, or
    /// `clock` has no time any more, and returns how many there were. `clock` is `CLOCK_MONOTONIC` in
    /// nanoseconds.
    pub(super) fn drain(
        &mut self,
        clock: impl Fn() -> Option<u64>,
        limit: usize,
        consume: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let mut drained = 0;
        let waiting = (0..self.shape.rings).map(|ring| self.waiting(ring)).max().unwrap_or(0);
        self.filled = waiting as f64 / self.shape.ring_bytes as f64;
        // What came during one pass is read by the next, so that a ring is seen empty.
        while let Some(now_ns) = clock() {
            let passed = self.pass(now_ns, limit.saturating_sub(drained), consume);
            drained += passed;
            if passed == 0 {
                break;
            }
        }
        drained
    }

    /// How full the fullest ring was when the last [`Rings::drain`] began, 0 to 1.
    pub(super) fn filled(&self) -> f64 {
        self.filled
    }

    /// Bytes of a ring that were not read yet.
    fn waiting(&self, ring: usize) -> u64 {
        let reserved = self.counter(ring, RESERVED).load(Ordering::Relaxed);
        reserved.saturating_sub(self.cursors[ring].consumed)
    }

    /// Hands out what was complete at `now_ns`.
    fn pass(&mut self, now_ns: u64, limit: usize, consume: &mut dyn FnMut(&[u8])) -> usize {
        let mut until = now_ns;
        self.fronts.clear();
        for ring in 0..self.shape.rings {
            until = until.min(self.look(ring, now_ns));
        }
        let mut drained = 0;
        while drained < limit {
            let Some(Reverse((from, time, ring))) = self.fronts.pop() else { break };
            if from >= until {
                break;
            }
            self.take(ring, consume);
            self.cursors[ring].free_ns = self.cursors[ring].free_ns.max(time.min(from));
            until = until.min(self.look(ring, now_ns));
            drained += 1;
        }
        drained
    }

    /// Notes what lies at the front of a ring, and returns up to when records may be read.
    fn look(&mut self, ring: usize, now_ns: u64) -> u64 {
        match self.front(ring) {
            // Else it would stand in the way of all that follow, until its time has come.
            Front::Record(time) if is_of_another_clock(time, now_ns) => {
                self.fronts.push(Reverse((now_ns.saturating_sub(1), time, ring)));
            }
            Front::Record(time) => self.fronts.push(Reverse((time, time, ring))),
            Front::Nothing => {
                self.cursors[ring].free_ns = now_ns;
                self.rewind(ring);
            }
            Front::Incomplete => return self.cursors[ring].free_ns,
        }
        u64::MAX
    }

    /// Begins an empty ring from its start again, so that the kernel writes where it wrote lately:
    /// memory that its processor still has in its caches, and that counts once as resident.
    fn rewind(&mut self, ring: usize) {
        let here = self.cursors[ring].consumed;
        let size = self.shape.ring_bytes as u64;
        // Until `consumed` follows, the kernel believes that all up to the end is taken. What is
        // left at the start must be enough for what comes meanwhile.
        if here & (size - 1) < size / REWIND_PART {
            return;
        }
        let start = here.next_multiple_of(size);
        let [reserved, consumed] = [RESERVED, CONSUMED].map(|at| self.counter(ring, at));
        // It fails where a record came just now.
        if reserved.compare_exchange(here, start, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            consumed.store(start, Ordering::Release);
            self.cursors[ring].consumed = start;
        }
    }

    fn front(&self, ring: usize) -> Front {
        let record = self.record(ring);
        // SAFETY: a record begins with its head; places are whole words, so it is aligned; the
        // kernel writes `state` atomically.
        let state = unsafe { AtomicU32::from_ptr(record.cast().as_ptr()) };
        if state.load(Ordering::Acquire) == RECORD_COMPLETE {
            // SAFETY: the record is complete, so nobody writes to it.
            return Front::Record(unsafe { record.cast::<types::head>().as_ref() }.end_ns);
        }
        if self.counter(ring, RESERVED).load(Ordering::Acquire) == self.cursors[ring].consumed {
            Front::Nothing
        } else {
            Front::Incomplete
        }
    }

    /// Hands out the complete record at the front of a ring, and gives its place back.
    fn take(&mut self, ring: usize, consume: &mut dyn FnMut(&[u8])) {
        let record = self.record(ring);
        // SAFETY: the record is complete, so nobody writes to it.
        let size = unsafe { record.cast::<types::head>().as_ref() }.size as usize;
        // The kernel's half reserves nothing longer.
        let size = size.clamp(size_of::<types::head>(), SLACK);
        // SAFETY: a place is followed by at least the slack; the kernel writes to it again only
        // when it was given back below.
        consume(unsafe { std::slice::from_raw_parts(record.as_ptr(), size) });
        // SAFETY: the same, and the slice is gone.
        unsafe { record.write_bytes(0, size) };
        let cursor = &mut self.cursors[ring];
        cursor.consumed += size as u64;
        let consumed = cursor.consumed;
        self.counter(ring, CONSUMED).store(consumed, Ordering::Release);
    }

    /// The place at the cursor of a ring.
    fn record(&self, ring: usize) -> NonNull<u8> {
        let place = self.cursors[ring].consumed as usize & (self.shape.ring_bytes - 8);
        self.memory.at(ring * self.shape.value_bytes + START + place)
    }

    /// A counter at the start of a ring.
    fn counter(&self, ring: usize, offset: usize) -> &AtomicU64 {
        let at = self.memory.at(ring * self.shape.value_bytes + offset);
        // SAFETY: entries begin at pages, so the words of `struct ring` are aligned and within the
        // entry; both sides use them atomically.
        unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }
    }
}

#[cfg(test)]
mod tests;
