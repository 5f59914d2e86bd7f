//! The list of watched servers that every program looks into.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use waggle_model::{Loss, Losses};

use super::mapped::Mapped;
use super::skeleton::types;

/// `TARGETS_MAX` of `shared.h`.
pub(super) const TARGETS_MAX: usize = 64;
/// In the order of `enum lost_kind` of `shared.h`.
const LOST_KINDS: [Loss; 4] =
    [Loss::RingFull, Loss::UnreadableSession, Loss::UnreadableText, Loss::MapFull];

/// The list, in memory that the programs read at every send.
pub(super) struct Targets {
    memory: Mapped,
    /// The process of each place.
    pids: [Option<u32>; TARGETS_MAX],
    /// How often anything was admitted.
    turn: u32,
}

impl Targets {
    /// Maps the list.
    pub(super) fn new(map: BorrowedFd<'_>) -> io::Result<Targets> {
        let memory = Mapped::new(map, size_of::<types::targets>())?;
        Ok(Targets { memory, pids: [None; TARGETS_MAX], turn: 0 })
    }

    /// Puts a process on the list, for the program of this number; false where there is no room.
    pub(super) fn admit(&mut self, pid: u32, program: u32) -> bool {
        let place = self.place_of(Some(pid)).or_else(|| self.place_of(None));
        let Some(place) = place else { return false };
        self.pids[place] = Some(pid);
        self.turn += 1;
        for kind in 0..LOST_KINDS.len() {
            self.lost(place, kind).store(0, Ordering::Relaxed);
        }
        self.word(place, offset_of!(types::target, program)).store(program, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, turn)).store(self.turn, Ordering::Relaxed);
        self.word(place, offset_of!(types::target, tgid)).store(pid, Ordering::Release);
        self.count().fetch_max(place as u32 + 1, Ordering::Release);
        true
    }

    /// Takes a process off the list, and says what was lost of it since it was put there.
    pub(super) fn dismiss(&mut self, pid: u32) -> Losses {
        let Some(place) = self.place_of(Some(pid)) else { return Losses::default() };
        self.word(place, offset_of!(types::target, tgid)).store(0, Ordering::Release);
        let losses = self.losses(pid);
        self.pids[place] = None;
        losses
    }

    /// What the programs lost of a process since it was put on the list.
    pub(super) fn losses(&self, pid: u32) -> Losses {
        let mut losses = Losses::default();
        if let Some(place) = self.place_of(Some(pid)) {
            for (at, kind) in LOST_KINDS.into_iter().enumerate() {
                losses.add(kind, self.lost(place, at).load(Ordering::Relaxed));
            }
        }
        losses
    }

    fn place_of(&self, pid: Option<u32>) -> Option<usize> {
        self.pids.iter().position(|known| *known == pid)
    }

    fn count(&self) -> &AtomicU32 {
        self.atomic(offset_of!(types::targets, count))
    }

    /// A word of the entry at a place.
    fn word(&self, place: usize, offset: usize) -> &AtomicU32 {
        self.atomic(entry(place) + offset)
    }

    fn atomic(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the offset is that of an aligned word of `struct targets`; others use it
        // atomically or only read it.
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

fn entry(place: usize) -> usize {
    offset_of!(types::targets, target) + place * size_of::<types::target>()
}
