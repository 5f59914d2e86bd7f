//! Clocks of the kernel (clock_gettime(2)).

use rustix::time::{ClockId, clock_gettime};

use crate::time_namespace::own_monotonic_ahead_ns;

/// `CLOCK_MONOTONIC` of the kernel, nanoseconds: the clock of all that the kernel stamps, also where waggle is in a time
/// namespace.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic).saturating_add_signed(-own_monotonic_ahead_ns())
}

/// `CLOCK_REALTIME`, nanoseconds since 1970 (UTC).
pub fn wall_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// `CLOCK_THREAD_CPUTIME_ID`: for how long the thread that asks has run so far, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).unsigned_abs()
}
