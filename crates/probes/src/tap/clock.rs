//! Converts the server's clock to the monotonic one of the kernel.
//!
//! MySQL notes a statement's start in wall-clock time, which can be stepped. The kernel stamps its
//! end in monotonic time. So waggle keeps a history of the distance between the two clocks, and
//! converts each start with the distance that held at that time. MariaDB notes it in monotonic time,
//! which in a time namespace is not the kernel's.

use std::collections::VecDeque;

use waggle_model::Clock;

use crate::servers::Instance;
use crate::servers::layout::Layout;

/// A change of the distance by more than this within one reading is a step, less is a drift.
const STEP_NS: i64 = 1_000_000;
/// Steps that are remembered; a statement that began before the oldest is read with that one.
const EPOCHS_MAX: usize = 16;
/// How much earlier or later than a step, as it was noticed, a start may lie, nanoseconds. Between
/// two readings of the clocks it is not known when the step was.
const SLACK_NS: i64 = 200_000_000;

#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it was first seen, `CLOCK_MONOTONIC` nanoseconds.
    from_ns: i64,
    /// Wall clock less monotonic clock, nanoseconds.
    distance_ns: i64,
}

/// The clock in which a server notes when its statements begin.
#[derive(Clone, Copy, Debug)]
pub struct ServerClock {
    pub(super) clock: Clock,
    /// Of its monotonic clock, as [`Instance::monotonic_ahead_ns`].
    pub(super) ahead_ns: Option<i64>,
}

impl ServerClock {
    /// That of a server of this build.
    pub fn of(layout: &Layout, instance: &Instance) -> ServerClock {
        ServerClock { clock: layout.clock, ahead_ns: instance.monotonic_ahead_ns }
    }
}

/// The distance between the wall clock and the monotonic one over time.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    epochs: VecDeque<Epoch>,
}

impl Clocks {
    /// Notes a reading of both clocks, nanoseconds.
    pub fn tick(&mut self, monotonic_ns: i64, wall_ns: i64) {
        let distance_ns = wall_ns - monotonic_ns;
        match self.epochs.back_mut() {
            Some(last) if (last.distance_ns - distance_ns).abs() < STEP_NS => {
                last.distance_ns = distance_ns;
            }
            _ => {
                if self.epochs.len() == EPOCHS_MAX {
                    self.epochs.pop_front();
                }
                self.epochs.push_back(Epoch { from_ns: monotonic_ns, distance_ns });
            }
        }
    }

    /// The start of a statement as nanoseconds of the kernel's `CLOCK_MONOTONIC`, from what the server
    /// noted (microseconds of its clock) and the time at which it ended or was seen. `None` if no
    /// distance that was in force makes sense of it, or none is known.
    pub fn start_ns(&self, server: ServerClock, start_us: u64, seen_ns: u64) -> Option<u64> {
        let start_ns = i64::try_from(start_us).ok()?.checked_mul(1000)?;
        let seen_ns = i64::try_from(seen_ns).ok()?;
        let start = match server.clock {
            Clock::Monotonic => start_ns.checked_sub(server.ahead_ns?)?,
            Clock::Wall => self.wall_to_monotonic(start_ns, seen_ns)?,
        };
        // A microsecond of rounding may put the start after the end.
        (start <= seen_ns.saturating_add(STEP_NS)).then(|| start.clamp(0, seen_ns) as u64)
    }

    fn wall_to_monotonic(&self, start_ns: i64, seen_ns: i64) -> Option<i64> {
        let mut until_ns = seen_ns.saturating_add(STEP_NS);
        for (index, epoch) in self.epochs.iter().enumerate().rev() {
            let start = start_ns.checked_sub(epoch.distance_ns)?;
            let from_ns = if index == 0 { i64::MIN } else { epoch.from_ns - SLACK_NS };
            if start >= from_ns && start <= until_ns {
                return Some(start);
            }
            until_ns = seen_ns.min(epoch.from_ns) + STEP_NS;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const WALL: i64 = 1_700_000_000 * S;
    const IN_WALL: ServerClock = ServerClock { clock: Clock::Wall, ahead_ns: None };

    fn monotonic(ahead_ns: i64) -> ServerClock {
        ServerClock { clock: Clock::Monotonic, ahead_ns: Some(ahead_ns) }
    }

    fn wall_us(monotonic_ns: i64, distance: i64) -> u64 {
        ((monotonic_ns + distance) / 1000) as u64
    }

    #[test]
    fn times_at_the_ends_of_numbers_are_read_or_refused() {
        let mut clocks = Clocks::default();
        clocks.tick(S, WALL);
        let ends = [0, 1, i64::MAX as u64 / 1000, i64::MAX as u64 - 1, i64::MAX as u64, u64::MAX];
        for (start_us, seen_ns) in ends.iter().flat_map(|one| ends.map(|other| (*one, other))) {
            for clock in [IN_WALL, monotonic(0), monotonic(i64::MIN), monotonic(i64::MAX)] {
                let start = clocks.start_ns(clock, start_us, seen_ns);
                assert!(start.is_none_or(|start| start <= seen_ns), "{start_us} {seen_ns}");
            }
        }
    }

    #[test]
    fn a_start_in_the_wall_clock_is_read_with_the_distance_of_its_time() {
        for step in [10 * S, -10 * S, S / 100, -S / 100] {
            let mut clocks = Clocks::default();
            (0..100).for_each(|i| clocks.tick(i * S / 50, WALL + i * S / 50));
            (100..200).for_each(|i| clocks.tick(i * S / 50, WALL + step + i * S / 50));
            let read = |start_us, seen: i64| {
                clocks.start_ns(IN_WALL, start_us, seen as u64).unwrap() as i64
            };
            // Began and ended before the step, spanned it, began after it.
            assert_eq!(read(wall_us(S, WALL), S + 5000), S);
            assert_eq!(read(wall_us(S, WALL), 3 * S), S);
            assert_eq!(read(wall_us(3 * S, WALL + step), 3 * S + 7000), 3 * S);
        }
    }

    #[test]
    fn a_drift_is_not_a_step() {
        let mut clocks = Clocks::default();
        (0..1000).for_each(|i| clocks.tick(i * S, WALL + i * S + i * 500_000));
        assert_eq!(clocks.epochs.len(), 1);
    }

    #[test]
    fn a_monotonic_start_needs_no_reading_and_never_lies_behind_the_end() {
        let clocks = Clocks::default();
        assert_eq!(clocks.start_ns(monotonic(0), 5, 9_000), Some(5_000));
        assert_eq!(clocks.start_ns(monotonic(0), 9, 8_500), Some(8_500));
        assert_eq!(clocks.start_ns(monotonic(0), 9_000_000, 8_500), None);
        assert_eq!(clocks.start_ns(IN_WALL, 5, 9_000), None);
    }

    #[test]
    fn a_start_in_a_time_namespace_is_one_of_the_kernel_or_none() {
        let clocks = Clocks::default();
        let read =
            |ahead_ns, start_us| clocks.start_ns(monotonic(ahead_ns), start_us, 9 * S as u64);
        assert_eq!(read(86_400 * S, 86_408_000_000), Some(8 * S as u64));
        assert_eq!(read(-5 * S, 3_000_000), Some(8 * S as u64));
        let unknown = ServerClock { clock: Clock::Monotonic, ahead_ns: None };
        assert_eq!(clocks.start_ns(unknown, 3_000_000, 9 * S as u64), None);
    }

    #[test]
    fn steps_are_remembered_up_to_a_limit() {
        let mut clocks = Clocks::default();
        (0..1000).for_each(|i| clocks.tick(i * S, WALL + i * 3 * S));
        assert_eq!(clocks.epochs.len(), EPOCHS_MAX);
    }
}
