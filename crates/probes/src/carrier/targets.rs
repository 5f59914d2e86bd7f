//! The list of watched servers. Every program looks into it.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use waggle_model::{Loss, Losses};

use super::mapped::Mapped;
use super::skeleton::types;
use crate::servers::x_protocol::XEndpoint;

const PLACES: usize = size_of::<types::targets>() / size_of::<types::target>();
/// `TARGET_TRIES` of `shared.h`.
const TRIES: usize = 4;
/// `X_SOCKET_MAX` of `shared.h`.
const X_SOCKET_MAX: usize = 112;
/// In the order of `enum lost_kind` of `shared.h`.
const LOST_KINDS: [Loss; 8] = [
    Loss::RingFull,
    Loss::UnreadableSession,
    Loss::UnreadableText,
    Loss::MapFull,
    Loss::NoStatement,
    Loss::XProtocol,
    Loss::ProfileSample,
    Loss::LockWait,
];

/// What the program must know that accounts the time of a server's threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartsPlaces {
    /// Its number; 0: none accounts it.
    pub(crate) program: u32,
    pub(crate) load_bias: u64,
    /// Where the C library begins in the process, and its bytes; 0: its frames are not known.
    pub(crate) library: u64,
    pub(crate) library_bytes: u32,
}

/// The list, in memory that the programs read at every send.
pub(super) struct Targets {
    memory: Mapped,
    /// The process of each place.
    pids: [Option<u32>; PLACES],
    /// How often anything was admitted.
    turn: u32,
}

impl Targets {
    /// Maps the list.
    pub(super) fn new(map: BorrowedFd<'_>) -> io::Result<Targets> {
        let memory = Mapped::new(map, size_of::<types::targets>())?;
        Ok(Targets { memory, pids: [None; PLACES], turn: 0 })
    }

    /// Puts a process on the list, for the program of this number; false if there is no room.
    pub(super) fn admit(&mut self, pid: u32, program: u32) -> bool {
        let place =
            self.place_of(pid).or_else(|| places(pid).find(|place| self.pids[*place].is_none()));
        let Some(place) = place else { return false };
        if self.pids[place] != Some(pid) {
            self.expect_x_protocol_at(place, &XEndpoint::default());
        }
        self.pids[place] = Some(pid);
        self.turn += 1;
        for kind in 0..LOST_KINDS.len() {
            self.lost(place, kind).store(0, Ordering::Relaxed);
        }
        self.word(place, offset_of!(types::target, parts_program)).store(0, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, program)).store(program, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, marks_tcp)).store(0, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, untold)).store(0, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, turn)).store(self.turn, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, tgid)).store(pid, Ordering::Release);
        true
    }

    /// Says where a process on the list accepts clients of the X protocol.
    pub(super) fn expect_x_protocol(&mut self, pid: u32, endpoint: &XEndpoint) {
        if let Some(place) = self.place_of(pid) {
            self.expect_x_protocol_at(place, endpoint);
        }
    }

    fn expect_x_protocol_at(&self, place: usize, endpoint: &XEndpoint) {
        let mut path = [0; X_SOCKET_MAX];
        let length = endpoint.socket.len().min(X_SOCKET_MAX - 1);
        path[..length].copy_from_slice(&endpoint.socket[..length]);
        // While the length is 0, nobody looks at the path. Behind it the programs see its end.
        let length = if length == 0 { 0 } else { length as u32 + 1 };
        let store = |offset, word| self.word(place, offset).store(word, Ordering::Release);
        store(offset_of!(types::target, x_socket_length), 0);
        for (at, word) in path.as_chunks().0.iter().enumerate() {
            store(offset_of!(types::target, x_socket) + 4 * at, u32::from_ne_bytes(*word));
        }
        store(offset_of!(types::target, x_socket_length), length);
        store(offset_of!(types::target, x_port), endpoint.port.into());
    }

    /// Says of a process on the list which program accounts the time of its threads, and where it has what.
    pub(super) fn tell_parts(&mut self, pid: u32, places: &PartsPlaces) {
        let Some(place) = self.place_of(pid) else { return };
        let store = |offset, word| self.word(place, offset).store(word, Ordering::Relaxed);
        let halves = |offset, number: u64| {
            store(offset, number as u32);
            store(offset + 4, (number >> 32) as u32);
        };
        halves(offset_of!(types::target, load_bias), places.load_bias);
        halves(offset_of!(types::target, library), places.library);
        store(offset_of!(types::target, library_bytes), places.library_bytes);
        let program = self.word(place, offset_of!(types::target, parts_program));
        program.store(places.program, Ordering::Release);
    }

    /// The processes in all places for this one; none where it has or finds a free one.
    pub(super) fn in_the_way(&self, pid: u32) -> Vec<u32> {
        let taken: Option<Vec<u32>> = places(pid).map(|place| self.pids[place]).collect();
        taken.unwrap_or_default().into_iter().filter(|_| self.place_of(pid).is_none()).collect()
    }

    /// Takes a process off the list, and says what was lost of it since it was put there.
    pub(super) fn dismiss(&mut self, pid: u32) -> Losses {
        let Some(place) = self.place_of(pid) else { return Losses::default() };
        self.word(place, offset_of!(types::target, tgid)).store(0, Ordering::Release);
        let losses = self.losses(pid);
        self.pids[place] = None;
        losses
    }

    /// What the programs lost of a process since it was put on the list.
    pub(super) fn losses(&self, pid: u32) -> Losses {
        let mut losses = Losses::default();
        if let Some(place) = self.place_of(pid) {
            for (at, kind) in LOST_KINDS.into_iter().enumerate() {
                losses.add(kind, self.lost(place, at).load(Ordering::Relaxed));
            }
        }
        losses
    }

    /// Sessions of a process that its end has reached and that could not be told.
    pub(super) fn untold(&self, pid: u32) -> u32 {
        let word = |place| self.word(place, offset_of!(types::target, untold));
        self.place_of(pid).map_or(0, |place| word(place).load(Ordering::Relaxed))
    }

    fn place_of(&self, pid: u32) -> Option<usize> {
        places(pid).find(|place| self.pids[*place] == Some(pid))
    }

    /// A word of the entry at a place.
    fn word(&self, place: usize, offset: usize) -> &AtomicU32 {
        let offset = entry(place) + offset;
        // SAFETY: the offset is that of an aligned word of `struct targets`, which the programs read
        // and write as a whole.
        unsafe { AtomicU32::from_ptr(self.memory.at(offset).cast().as_ptr()) }
    }

    /// A counter of losses of the entry at a place.
    fn lost(&self, place: usize, kind: usize) -> &AtomicU64 {
        let offset = entry(place) + offset_of!(types::target, lost) + kind * size_of::<u64>();
        // SAFETY: the offset is that of an aligned counter of `struct targets`, which the programs
        // add to atomically.
        unsafe { AtomicU64::from_ptr(self.memory.at(offset).cast().as_ptr()) }
    }
}

/// Where the programs look for a process.
fn places(pid: u32) -> impl Iterator<Item = usize> {
    (0..TRIES).map(move |next| (pid as usize + next) % PLACES)
}

fn entry(place: usize) -> usize {
    offset_of!(types::targets, target) + place * size_of::<types::target>()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn targets() -> Targets {
        let memory = memfd_create("targets", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, size_of::<types::targets>() as u64).unwrap();
        Targets::new(memory.as_fd()).unwrap()
    }

    #[test]
    fn a_process_has_its_place_until_it_is_dismissed() {
        let mut targets = targets();
        for pid in [7, 7 + PLACES as u32, 8] {
            assert!(targets.admit(pid, 1));
        }
        let tgid = |targets: &Targets, place| {
            targets.word(place, offset_of!(types::target, tgid)).load(Ordering::Relaxed)
        };
        assert_eq!([7, 8, 9].map(|place| tgid(&targets, place)), [7, 7 + PLACES as u32, 8]);
        targets.lost(9, 1).store(5, Ordering::Relaxed);
        assert_eq!(targets.losses(8).get(LOST_KINDS[1]), 5);
        assert_eq!(targets.dismiss(8).get(LOST_KINDS[1]), 5);
        assert_eq!(targets.losses(8), Losses::default());
        assert_eq!(tgid(&targets, 9), 0);
        assert!(
            targets.admit(9, 1),
            "the place is free again, and what was lost there is forgotten"
        );
        assert_eq!(targets.losses(9), Losses::default());
    }

    #[test]
    fn the_programs_look_at_as_many_places() {
        let shared = include_str!("shared.h");
        assert!(
            shared.contains(&format!("#define TARGET_TRIES {TRIES}\n")),
            "shared.h says otherwise"
        );
        assert!(shared.contains(&format!("#define X_SOCKET_MAX {X_SOCKET_MAX}\n")));
        let kinds = shared
            .split_once("enum lost_kind {")
            .and_then(|(_, rest)| rest.split_once("LOST_KINDS"));
        assert_eq!(kinds.unwrap().0.matches("LOST_").count(), LOST_KINDS.len());
    }

    #[test]
    fn more_processes_than_the_programs_look_at_are_refused() {
        let mut targets = targets();
        for turn in 0..TRIES as u32 {
            assert!(targets.admit(1 + turn * PLACES as u32, 1));
        }
        let next = 1 + TRIES as u32 * PLACES as u32;
        assert!(!targets.admit(next, 1));
        assert_eq!(targets.in_the_way(next).len(), TRIES);
        assert_eq!(targets.in_the_way(1), [0; 0], "it has its place");
        assert_eq!(targets.in_the_way(3), [0; 0], "one is free");
        targets.dismiss(1);
        assert_eq!(targets.in_the_way(next), [0; 0]);
        assert!(targets.admit(next, 1));
    }
}
