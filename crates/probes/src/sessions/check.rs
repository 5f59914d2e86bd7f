//! Whether a layout fits a running server, seen on one of its sessions.

use rustix::time::{ClockId, clock_gettime};
use waggle_model::RunningStatement;

use crate::target::layout::{Field, Layout, Now};
use crate::target::{Instance, Place, ProcessMemory};

/// The layout less the fields that do not fit what this running statement's session holds. `None`
/// where the session went on meanwhile: then nothing is concluded.
pub fn fits(layout: &Layout, instance: &Instance, running: &RunningStatement) -> Option<Layout> {
    let mut memory = ProcessMemory::of(instance.pid);
    let microseconds = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000
    };
    let now = Now {
        wall_us: microseconds(ClockId::Realtime),
        monotonic_us: microseconds(ClockId::Monotonic),
    };
    let checked = layout.validate(running.thd, now, |address, bytes| {
        let read = memory.read_one(Place::new(address, bytes.len() as u64));
        let Ok(Some(read)) = read else { return false };
        bytes.copy_from_slice(&read);
        true
    });
    let start = Place::new(running.thd + u64::from(layout.offset(Field::StartTime)?), 8);
    let start = memory.read_one(start).ok()??;
    (running.noted_start_us == start.try_into().ok().map(u64::from_ne_bytes)).then_some(checked)
}
