//! The time of day of what the tap dates by `CLOCK_MONOTONIC`.

use jiff::{SignedDuration, Timestamp};
use waggle_host::monotonic_ns;

/// Looks of which the best tells: somebody may take the processor between the two clocks.
const LOOKS: usize = 3;

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    ns: u64,
    time: Timestamp,
}

/// `CLOCK_MONOTONIC` nanoseconds before and after a time of day.
type Look = (u64, Timestamp, u64);

impl Clocks {
    /// The time of day that it was at `ns`.
    pub fn at(ns: u64, time: Timestamp) -> Clocks {
        Clocks { ns, time }
    }

    /// Looks at both clocks.
    pub fn look() -> Clocks {
        Clocks::best_of(|| {
            let before_ns = monotonic_ns();
            let time = Timestamp::now();
            (before_ns, time, monotonic_ns())
        })
    }

    /// By the look that took the least time.
    fn best_of(mut look: impl FnMut() -> Look) -> Clocks {
        let mut best = look();
        for _ in 1..LOOKS {
            let next = look();
            if next.2.saturating_sub(next.0) < best.2.saturating_sub(best.0) {
                best = next;
            }
        }
        let (before_ns, time, after_ns) = best;
        Clocks { ns: before_ns.midpoint(after_ns), time }
    }

    /// The time of day at `ns`, nanoseconds since 1970 (UTC).
    pub fn wall_ns(self, ns: u64) -> u64 {
        u64::try_from(self.time_of(ns).as_nanosecond()).unwrap_or(0)
    }

    /// The time of day at `ns`.
    pub fn time_of(self, ns: u64) -> Timestamp {
        let distance = i128::from(ns) - i128::from(self.ns);
        self.time + SignedDuration::from_nanos(i64::try_from(distance).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_kept_waiting_does_not_move_the_clock() {
        let at = |us| Timestamp::from_microsecond(us).unwrap();
        let looks = [
            (1_000, at(1), 9_001_000),
            (9_002_000, at(9_002), 9_002_400),
            (9_003_000, at(9_900), 9_903_000),
        ];
        let mut looks = looks.into_iter();
        let best = Clocks { ns: 9_002_200, time: at(9_002) };
        assert_eq!(Clocks::best_of(|| looks.next().unwrap()), best);
        assert_eq!(looks.next(), None);
    }
}
