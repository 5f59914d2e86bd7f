//! Checks on one session whether a layout fits a running server.

use waggle_host::{monotonic_ns, wall_ns};
use waggle_model::RunningStatement;

use crate::servers::layout::{Field, Layout, Now};
use crate::servers::{Instance, Place, ProcessMemory};

/// The layout less the fields that do not fit what this running statement's session holds. `None`
/// where the session went on meanwhile: then nothing is concluded. Without a start that cannot be told:
/// what does not fit must do so twice.
pub fn fits(layout: &Layout, instance: &Instance, running: &RunningStatement) -> Option<Layout> {
    let mut memory = ProcessMemory::of(instance.pid);
    let monotonic_ns =
        monotonic_ns().saturating_add_signed(instance.monotonic_ahead_ns.unwrap_or(0));
    let now = Now { wall_us: wall_ns() / 1000, monotonic_us: monotonic_ns / 1000 };
    let checked = layout.validate(running.thd, now, |address, bytes| {
        let read = memory.read_one(Place::new(address, bytes.len() as u64));
        let Ok(Some(read)) = read else { return false };
        bytes.copy_from_slice(&read);
        true
    });
    let Some(offset) = layout.offset(Field::StartTime) else { return Some(checked) };
    let start = Place::new(running.thd.wrapping_add(u64::from(offset)), 8);
    let start = memory.read_one(start).ok()??;
    // A start of 0 is read as none.
    let start = start.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    (running.noted_start_us.unwrap_or(0) == start).then_some(checked)
}

#[cfg(test)]
mod tests {
    use waggle_model::{BuildKey, Flavour, Reading};

    use super::*;
    use crate::servers::CurrentThdAt;
    use crate::servers::breakpoint::Breakpoints;
    use crate::servers::layout::Place as FieldPlace;
    use crate::servers::waiting::Waiting;

    /// The address of a session comes from the memory of the server, which anybody may have made.
    #[test]
    fn a_session_at_the_end_of_all_addresses_is_none() {
        let mut layout = Layout::of(Flavour::Mariadb, BuildKey("any".into()), "11".into());
        for field in Field::ALL {
            let place = FieldPlace { offset: 1 << 20, how: "made up".into() };
            layout.fields.insert(field, Reading::Value(place));
        }
        let instance = Instance {
            pid: std::process::id(),
            start_ticks: 0,
            program: "/proc/self/exe".into(),
            load_bias: u64::MAX,
            current_thd: CurrentThdAt::ThreadLocal { offset: i64::MIN },
            breakpoints: Breakpoints::none(),
            waiting: Waiting::none(),
            monotonic_ahead_ns: Some(0),
        };
        for thd in [u64::MAX, u64::MAX - (1 << 20) + 1, 1 << 63, 8] {
            let running = RunningStatement { thd, ..RunningStatement::default() };
            assert!(fits(&layout, &instance, &running).is_none(), "{thd:#x}");
        }
    }
}
