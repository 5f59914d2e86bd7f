//! The threads of one process, from the iterator in `mod.bpf.c`.

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;

use libbpf_rs::{Object, ObjectBuilder};

use super::SessionsError;
use crate::carrier::{kernel_error, walk_threads};

/// The compiled program.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sessions.bpf.o"));

/// One thread, at the moment at which the iterator passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// Its thread pointer, from which thread-local storage counts.
    pub(super) pointer: u64,
    /// How often it gave up the processor, by itself or not.
    pub(super) switches: u64,
    /// Its start, nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) started: u64,
    /// Its id in the first pid namespace.
    pub(super) tid: u32,
    /// Its process in the first pid namespace.
    pub(super) tgid: u32,
    /// It waits for something.
    pub(super) asleep: bool,
}

impl Thread {
    /// Whether this thread, seen again, has executed nothing in between. A thread counts a switch
    /// when it goes to sleep, not when it wakes: so it must be asleep both times.
    pub(super) fn has_not_run_since(&self, before: &Thread) -> bool {
        self.asleep && self == before
    }
}

/// `struct row` of `mod.bpf.c`.
const ROW: usize = 40;

/// The rows as the iterator wrote them; a row that is cut is left out.
pub(super) fn decode(rows: &[u8]) -> impl Iterator<Item = Thread> {
    rows.chunks_exact(ROW).map(|row| {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&row[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        let ids = word(3).to_ne_bytes();
        let [tid, tgid] = [[ids[0], ids[1], ids[2], ids[3]], [ids[4], ids[5], ids[6], ids[7]]];
        Thread {
            pointer: word(0),
            switches: word(1),
            started: word(2),
            tid: u32::from_ne_bytes(tid),
            tgid: u32::from_ne_bytes(tgid),
            asleep: word(4) != 0,
        }
    })
}

/// The loaded iterator.
#[derive(Debug)]
pub(super) struct ThreadWalk {
    object: Object,
}

impl ThreadWalk {
    pub(super) fn load() -> Result<Self, SessionsError> {
        let object = ObjectBuilder::default()
            .name("waggle_sessions")
            .and_then(|builder| builder.open_memory(OBJECT))
            .and_then(libbpf_rs::OpenObject::load)
            .map_err(kernel_error("the iterator of threads"))
            .map_err(SessionsError::Load)?;
        Ok(Self { object })
    }

    /// The threads of the process with this pid in our pid namespace, by their id; none if it has ended.
    pub(super) fn threads(
        &self,
        pid: u32,
        rows: &mut Vec<u8>,
    ) -> Result<Vec<Thread>, SessionsError> {
        let program = self.object.progs().next().ok_or(SessionsError::NoProgram)?;
        let walk = |source| SessionsError::Walk { pid, source };
        let mut file = walk_threads(program.as_fd(), pid).map_err(walk)?;
        rows.clear();
        file.read_to_end(rows).map_err(walk)?;
        of_process(decode(rows).collect(), pid, in_first_namespace)
    }
}

/// Sorts the threads, and leaves those of one process where an old kernel walked all of them.
fn of_process(
    mut threads: Vec<Thread>,
    pid: u32,
    in_first_namespace: fn() -> bool,
) -> Result<Vec<Thread>, SessionsError> {
    // They come in the order in which they were made, so this changes little.
    threads.sort_unstable_by_key(|thread| thread.tid);
    let Some(first) = threads.first().map(|thread| thread.tgid) else { return Ok(threads) };
    if threads.iter().all(|thread| thread.tgid == first) {
        return Ok(threads);
    }
    if !in_first_namespace() {
        return Err(SessionsError::Namespace { pid });
    }
    threads.retain(|thread| thread.tgid == pid);
    Ok(threads)
}

/// `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
fn in_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASLEEP: Thread =
        Thread { pointer: 0x7f00, switches: 5, started: 9, tid: 12, tgid: 10, asleep: true };

    fn row(thread: &Thread) -> Vec<u8> {
        let ids = [thread.tid.to_ne_bytes(), thread.tgid.to_ne_bytes()].concat();
        let word = |word: u64| word.to_ne_bytes().to_vec();
        [
            word(thread.pointer),
            word(thread.switches),
            word(thread.started),
            ids,
            word(u64::from(thread.asleep)),
        ]
        .concat()
    }

    #[test]
    fn rows_are_decoded_and_a_cut_one_is_left_out() {
        let rows = [row(&ASLEEP), row(&Thread { asleep: false, ..ASLEEP })].concat();
        let threads: Vec<Thread> = decode(&rows).collect();
        assert_eq!(threads, [ASLEEP, Thread { asleep: false, ..ASLEEP }]);
        for end in 0..rows.len() {
            assert_eq!(decode(&rows[..end]).count(), end / ROW);
        }
    }

    #[test]
    fn a_thread_has_not_run_only_if_it_slept_through() {
        assert!(ASLEEP.has_not_run_since(&ASLEEP));
        let awake = Thread { asleep: false, ..ASLEEP };
        // It may have run for an hour without a switch.
        assert!(!awake.has_not_run_since(&awake));
        assert!(!awake.has_not_run_since(&ASLEEP));
        assert!(!ASLEEP.has_not_run_since(&awake));
        assert!(!Thread { switches: 6, ..ASLEEP }.has_not_run_since(&ASLEEP));
        // The id was given to another thread.
        assert!(!Thread { started: 10, ..ASLEEP }.has_not_run_since(&ASLEEP));
    }

    #[test]
    fn threads_of_other_processes_are_left_out_where_an_old_kernel_walks_all() {
        let other = Thread { tgid: 11, tid: 11, ..ASLEEP };
        assert_eq!(of_process(vec![ASLEEP, other], 10, || true).unwrap(), [ASLEEP]);
        assert!(of_process(vec![ASLEEP, other], 10, || false).is_err());
        // In a pid namespace the pid that we know is not the one that the kernel reports.
        assert_eq!(of_process(vec![ASLEEP], 1, || false).unwrap(), [ASLEEP]);
        assert_eq!(of_process(vec![], 1, || true).unwrap(), []);
    }
}
