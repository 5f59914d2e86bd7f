use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

const SHAPE: Shape = Shape { rings: 2, ring_bytes: 1 << 16, value_bytes: 1 << 18 };

/// What the kernel's half does, in the same memory.
struct Kernel {
    memory: File,
}

impl Kernel {
    fn new() -> (Kernel, Rings) {
        let memory = memfd_create("rings", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, SHAPE.bytes() as u64).unwrap();
        let rings = Rings::new(memory.as_fd(), SHAPE).unwrap();
        (Kernel { memory: memory.into() }, rings)
    }

    fn write(&self, ring: usize, at: usize, word: &[u8]) {
        self.memory.write_all_at(word, (ring * SHAPE.value_bytes + at) as u64).unwrap();
    }

    fn counter(&self, ring: usize, at: usize) -> u64 {
        let mut word = [0; 8];
        self.memory.read_exact_at(&mut word, (ring * SHAPE.value_bytes + at) as u64).unwrap();
        u64::from_ne_bytes(word)
    }

    /// Takes a place and fills it except for its state; the place is returned.
    fn begin(&self, ring: usize, end_ns: u64, size: u32, thd: u64) -> usize {
        let reserved = self.counter(ring, RESERVED);
        let at = START + (reserved as usize & (SHAPE.ring_bytes - 8));
        self.write(ring, RESERVED, &(reserved + u64::from(size)).to_ne_bytes());
        self.write(ring, at + std::mem::offset_of!(types::head, size), &size.to_ne_bytes());
        self.write(ring, at + std::mem::offset_of!(types::head, end_ns), &end_ns.to_ne_bytes());
        self.write(ring, at + std::mem::offset_of!(types::head, thd), &thd.to_ne_bytes());
        at
    }

    fn complete(&self, ring: usize, at: usize) {
        self.write(ring, at, &RECORD_COMPLETE.to_ne_bytes());
    }

    fn record(&self, ring: usize, end_ns: u64, size: u32, thd: u64) {
        let at = self.begin(ring, end_ns, size, thd);
        self.complete(ring, at);
    }
}

/// The sessions of the records that are handed out.
fn drain(rings: &mut Rings, now_ns: u64, limit: usize) -> Vec<u64> {
    let mut sessions = Vec::new();
    rings.drain(|| Some(now_ns), limit, &mut |record| {
        sessions.push(super::super::record::head_of(record).unwrap().thd);
    });
    sessions
}

#[test]
fn a_record_of_another_clock_is_in_nobodys_way() {
    let (kernel, mut rings) = Kernel::new();
    let far_ns = u64::MAX / 2;
    kernel.record(0, far_ns, 80, 1);
    kernel.record(0, far_ns + 2, 80, 3);
    kernel.record(1, 10, 80, 0);
    kernel.record(1, far_ns + 1, 80, 2);
    assert_eq!(drain(&mut rings, 20, usize::MAX), [0, 1, 2, 3], "they keep their order");
}

#[test]
fn reading_ends_also_where_every_record_that_is_read_brings_another() {
    let (kernel, mut rings) = Kernel::new();
    kernel.record(0, 10, 80, 10);
    kernel.record(0, 11, 80, 11);
    let mut next = 12;
    let mut seen = Vec::new();
    let mut read = |clock: &dyn Fn() -> Option<u64>| {
        rings.drain(clock, usize::MAX, &mut |record| {
            seen.push(super::super::record::head_of(record).unwrap().thd);
            kernel.record(0, next, 80, next);
            next += 1;
        })
    };
    // All that was there at a time, and then nothing, since the time is over.
    assert_eq!(read(&|| Some(12)), 2);
    let now = AtomicU64::new(12);
    assert_eq!(read(&|| Some(now.fetch_add(2, Ordering::Relaxed) + 2).filter(|now| *now < 18)), 4);
    assert_eq!(seen, [10, 11, 12, 13, 14, 15]);
}

#[test]
fn records_of_all_rings_come_in_the_order_of_time() {
    let (kernel, mut rings) = Kernel::new();
    for (ring, end_ns) in [(0, 10), (1, 11), (1, 12), (0, 13), (1, 14)] {
        kernel.record(ring, end_ns, 80, end_ns);
    }
    assert_eq!(drain(&mut rings, 100, 2), [10, 11]);
    let bytes = SHAPE.ring_bytes as f64;
    assert_eq!(rings.filled(), 240.0 / bytes, "the second ring had three records");
    assert_eq!(drain(&mut rings, 100, 9), [12, 13, 14]);
    assert_eq!(drain(&mut rings, 100, 9), [0; 0]);
    assert_eq!(rings.filled(), 0.0);
    assert_eq!([0, 1].map(|ring| kernel.counter(ring, CONSUMED)), [160, 240]);
}

#[test]
fn what_came_after_the_reading_began_waits_for_the_next() {
    let (kernel, mut rings) = Kernel::new();
    kernel.record(0, 10, 80, 1);
    kernel.record(1, 20, 80, 2);
    assert_eq!(drain(&mut rings, 20, 9), [1]);
    assert_eq!(drain(&mut rings, 21, 9), [2]);
}

#[test]
fn nothing_later_passes_a_record_that_is_being_written() {
    let (kernel, mut rings) = Kernel::new();
    kernel.record(0, 10, 80, 1);
    assert_eq!(drain(&mut rings, 15, 9), [1]);
    // The second ring is known to have been free at 15, the first one as well.
    let place = kernel.begin(0, 20, 80, 2);
    kernel.record(0, 21, 80, 3);
    kernel.record(1, 14, 80, 4);
    kernel.record(1, 22, 80, 5);
    assert_eq!(drain(&mut rings, 30, 9), [4], "22 may follow what hides behind 20");
    kernel.complete(0, place);
    assert_eq!(drain(&mut rings, 40, 9), [2, 3, 5]);
}

#[test]
fn a_ring_goes_round_and_leaves_nothing_behind() {
    let (kernel, mut rings) = Kernel::new();
    // Odd against the size of the ring, so that some records run over its end.
    for turn in 1..1000 {
        // Never empty, so that it is not begun again before its end.
        kernel.record(0, turn * 10, 1000, turn);
        assert_eq!(drain(&mut rings, turn * 10, 9), if turn > 1 { vec![turn - 1] } else { vec![] });
    }
    assert_eq!(kernel.counter(0, RESERVED), 999 * 1000);
    assert_eq!(drain(&mut rings, u64::MAX, 9), [999]);
    let mut memory = vec![0; SHAPE.value_bytes - START];
    kernel.memory.read_exact_at(&mut memory, START as u64).unwrap();
    assert!(memory.iter().all(|byte| *byte == 0));
}

#[test]
fn an_empty_ring_begins_from_its_start() {
    let (kernel, mut rings) = Kernel::new();
    for turn in 1..1000 {
        kernel.record(0, turn, 1000, turn);
        assert_eq!(drain(&mut rings, turn + 1, 9), [turn]);
        assert_eq!(kernel.counter(0, RESERVED), kernel.counter(0, CONSUMED));
    }
    // It jumped: many more bytes were gone by than records came.
    assert!(kernel.counter(0, CONSUMED) > 2 * 999 * 1000);
}

#[test]
fn a_ring_that_is_not_in_the_order_of_time_keeps_each_session_in_its_own() {
    let (kernel, mut rings) = Kernel::new();
    // Two processors share the first ring: the later time got the first place.
    kernel.record(0, 11, 80, 5);
    kernel.record(0, 10, 80, 1);
    kernel.record(1, 12, 80, 2);
    assert_eq!(drain(&mut rings, 100, 9), [5, 1, 2]);
}

/// Each writes this many.
const RECORDS: u64 = 100_000;
const WRITERS: u64 = 3;

/// What the kernel's half does for one thread on two processors in turn, with its own atomic instructions.
fn write_records(memory: &File, clock: &AtomicU64, writer: u64) {
    let mapped = Mapped::new(memory.as_fd(), SHAPE.bytes()).unwrap();
    let counter = |ring: usize, at: usize| {
        // SAFETY: an aligned word of `struct ring`, used atomically by both sides.
        unsafe { AtomicU64::from_ptr(mapped.at(ring * SHAPE.value_bytes + at).cast().as_ptr()) }
    };
    let reserve = |ring: usize, size: u64| loop {
        let at = counter(ring, RESERVED).load(Ordering::SeqCst);
        let taken = (at + size).wrapping_sub(counter(ring, CONSUMED).load(Ordering::SeqCst));
        let order = Ordering::SeqCst;
        if taken.cast_signed() > SHAPE.ring_bytes as i64 {
            std::thread::yield_now();
        } else if counter(ring, RESERVED).compare_exchange(at, at + size, order, order).is_ok() {
            break START + (at as usize & (SHAPE.ring_bytes - 8));
        }
    };
    for number in 1..=RECORDS {
        let ring = ring_of((number % 3 + writer) as usize, SHAPE.rings);
        let size = 80 + number % 40 * 8;
        let end_ns = clock.fetch_add(1, Ordering::SeqCst);
        let head = mapped.at(ring * SHAPE.value_bytes + reserve(ring, size)).cast::<types::head>();
        // SAFETY: the place is ours until its state is set.
        unsafe {
            (&raw mut (*head.as_ptr()).size).write(size as u32);
            (&raw mut (*head.as_ptr()).thd).write(number);
            (&raw mut (*head.as_ptr()).tgid).write(writer as u32);
            (&raw mut (*head.as_ptr()).end_ns).write(end_ns);
            let state = AtomicU32::from_ptr(head.cast().as_ptr());
            assert_eq!(state.swap(RECORD_COMPLETE, Ordering::Release), 0, "a free place is zero");
        }
    }
}

#[test]
fn records_are_read_while_they_are_written() {
    let (kernel, mut rings) = Kernel::new();
    let clock = AtomicU64::new(1);
    let mut seen = vec![Vec::new(); WRITERS as usize];
    std::thread::scope(|scope| {
        let (memory, clock) = (&kernel.memory, &clock);
        let write = |writer| scope.spawn(move || write_records(memory, clock, writer));
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        loop {
            let have_ended = writers.iter().all(|writer| writer.is_finished());
            let now = || Some(clock.fetch_add(1, Ordering::SeqCst));
            let drained = rings.drain(now, 1000, &mut |record| {
                let head = super::super::record::head_of(record).unwrap();
                seen[head.tgid as usize].push(head.thd);
            });
            if have_ended && drained == 0 {
                break;
            }
        }
    });
    // Those of one thread, which goes from one ring to the other, come in its order.
    for seen in seen {
        assert!(seen.iter().copied().eq(1..=RECORDS), "every record comes once, in its order");
    }
}

#[test]
fn every_host_has_rings_of_a_power_of_two_that_hold_the_longest_records() {
    for asked in [1, 2, 3, 8, 96, 1024] {
        let Shape { rings, ring_bytes, value_bytes } = Shape::of(asked);
        assert_eq!(rings, asked);
        assert!(ring_bytes.is_power_of_two() && (BYTES_MIN..=BYTES_MAX).contains(&ring_bytes));
        assert!((START + ring_bytes + SLACK..4 << 20).contains(&value_bytes));
        assert_eq!(value_bytes % rustix::param::page_size(), 0);
    }
}

/// The rings that processors have.
fn rings_of(processors: &[usize], rings: usize) -> Vec<usize> {
    processors.iter().map(|processor| ring_of(*processor, rings)).collect()
}

#[test]
fn each_processor_that_is_online_has_a_ring_of_its_own_and_no_other_has_one() {
    for online in [1, 2, 17, 512] {
        let online: Vec<usize> = (0..online).collect();
        let rings = rings_for(&online);
        assert_eq!(rings_of(&online, rings), online);
        assert_eq!(rings, online.len());
    }
    // Those between are switched off: each second thread of a core, or a whole socket.
    for (online, rings) in [
        (vec![0, 2, 4, 6], 5),
        ((0..64).step_by(2).collect(), 33),
        ((0..4).chain(256..260).collect(), 9),
        (vec![511], 1),
    ] {
        assert_eq!(rings_for(&online), rings, "{online:?}");
        let mut taken = rings_of(&online, rings);
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), online.len(), "{online:?}");
    }
}

#[test]
fn memory_does_not_grow_with_processors_that_are_not_there() {
    let two = Shape::of(rings_for(&[0, 1]));
    assert!(two.bytes() < 5 << 20, "{two:?}");
    // Wherever among 512 the two are.
    for other in 1..512 {
        assert!(rings_for(&[0, other]) <= 4, "{other}");
    }
    // No number of rings up to twice as many keeps these apart.
    let apart: Vec<usize> = [1, 2, 3, 4].iter().map(|one| one * 840).collect();
    assert_eq!(rings_for(&apart), 4);
}

#[test]
fn a_processor_that_comes_online_later_shares_a_ring() {
    let rings = rings_for(&[0, 1]);
    assert_eq!(rings_of(&(2..512).collect::<Vec<_>>(), rings), [0, 1].repeat(255));
}
