//! The moments of two readings of the counters, and on which side of them a statement was counted.

use std::sync::atomic::{AtomicU64, Ordering};

use waggle_host::monotonic_ns;
use waggle_mysql::counters::Part;
use waggle_mysql::verify::{Edge, Edges};

/// When each part of a reading began, nanoseconds of `CLOCK_MONOTONIC`; 0 before that. The thread that
/// reads notes a moment before it asks, so everybody else knows at once what is not read yet.
#[derive(Debug, Default)]
pub(super) struct Moments([AtomicU64; 3]);

/// The two readings.
pub(super) type Readings = [Moments; 2];

/// The server counted a statement between these two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Its reply was sent.
    pub(super) after_ns: u64,
    /// The server was done with it. This moment is past; `None` if it is not known.
    pub(super) before_ns: Option<u64>,
}

/// Where a statement stands to the reading of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It was counted before the question.
    Before,
    /// Nobody can say.
    During,
    /// It was counted after the answer.
    After,
}

impl Moments {
    /// A part begins now.
    pub(super) fn note(&self, part: Part) {
        self.0[part as usize].store(monotonic_ns(), Ordering::SeqCst);
    }

    fn of(&self, part: Part) -> Option<u64> {
        Some(self.0[part as usize].load(Ordering::SeqCst)).filter(|at| *at != 0)
    }

    /// `end` is the part that is read after `begin`.
    fn side(&self, begin: Part, end: Part, counted: Counted) -> Side {
        let begin_ns = self.of(begin);
        let is_before = |done_ns| begin_ns.is_none_or(|begin_ns| done_ns < begin_ns);
        if counted.before_ns.is_some_and(is_before) {
            Side::Before
        } else if self.of(end).is_some_and(|end_ns| counted.after_ns > end_ns) {
            Side::After
        } else {
            Side::During
        }
    }
}

/// Where a statement stands to both readings. This does not change when they go on.
pub(super) fn edges(readings: &Readings, counted: Counted) -> Edges {
    let edge = |begin, end| match readings.each_ref().map(|one| one.side(begin, end, counted)) {
        [Side::Before, _] | [_, Side::After] => None,
        [Side::After, Side::Before] => Some(Edge::Inside),
        _ => Some(Edge::AtEdge),
    };
    Edges {
        counts: edge(Part::Counts, Part::Digests),
        digests: edge(Part::Digests, Part::Histograms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Moments {
        pub(in crate::verification) fn at(moments: [u64; 3]) -> Moments {
            Moments(moments.map(AtomicU64::new))
        }
    }

    const INSIDE: Option<Edge> = Some(Edge::Inside);
    const DOUBT: Option<Edge> = Some(Edge::AtEdge);

    fn edges_at(readings: &Readings, after_ns: u64, before_ns: Option<u64>) -> [Option<Edge>; 2] {
        let edges = edges(readings, Counted { after_ns, before_ns });
        [edges.counts, edges.digests]
    }

    #[test]
    fn only_what_was_counted_while_a_part_was_read_is_in_doubt() {
        let readings = [Moments::at([100, 200, 300]), Moments::at([1100, 1200, 1300])];
        for (after_ns, before_ns, expected) in [
            (80, Some(99), [None, None]),
            (80, Some(100), [DOUBT, None]),
            (150, Some(160), [DOUBT, None]),
            (190, Some(210), [DOUBT, DOUBT]),
            (201, Some(260), [INSIDE, DOUBT]),
            (301, Some(1099), [INSIDE, INSIDE]),
            // The end of the work is late, or not known.
            (310, Some(1100), [DOUBT, INSIDE]),
            (310, Some(1250), [DOUBT, DOUBT]),
            (310, None, [DOUBT, DOUBT]),
            (80, Some(1400), [DOUBT, DOUBT]),
            (1150, Some(1160), [DOUBT, INSIDE]),
            (1201, Some(1210), [None, DOUBT]),
            (1301, None, [None, None]),
        ] {
            let found = edges_at(&readings, after_ns, before_ns);
            assert_eq!(found, expected, "{after_ns} {before_ns:?}");
        }
    }

    #[test]
    fn what_is_done_before_a_part_is_asked_for_is_before_it() {
        let nothing = Readings::default();
        assert_eq!(edges_at(&nothing, 80, Some(90)), [None, None]);
        assert_eq!(edges_at(&nothing, 80, None), [DOUBT, DOUBT], "it may be counted much later");
        let counts = [Moments::at([100, 0, 0]), Moments::default()];
        assert_eq!(edges_at(&counts, 150, Some(160)), [DOUBT, None]);
        let digests = [Moments::at([100, 200, 0]), Moments::default()];
        assert_eq!(edges_at(&digests, 250, Some(260)), [INSIDE, DOUBT]);
        let first = [Moments::at([100, 200, 300]), Moments::default()];
        assert_eq!(edges_at(&first, 350, Some(360)), [INSIDE, INSIDE]);
        let second = [Moments::at([100, 200, 300]), Moments::at([1100, 1200, 0])];
        assert_eq!(edges_at(&second, 1250, Some(1260)), [None, DOUBT]);
    }
}
