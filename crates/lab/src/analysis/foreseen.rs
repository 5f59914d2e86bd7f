//! What the windows of a run will be able to say, before there are any.

use waggle_stats::{detectable, percent};

use crate::suite::Suite;
use crate::window::{Cell, Window};

use super::Matrix;
use super::interval::Interval;
use super::paired::{self, ERROR, PAIRS_MIN};
use super::verdict::detectable_among;

/// Standard deviation between neighbours in time on a shared host with two processors, %, whether they are
/// 10 ms or 500 ms long: turns, or whole windows where there are none
/// (`docs/decisions/0013-arms-take-turns.md`).
pub const NEIGHBOURS_DIFFER_BY_PERCENT: f64 = 10.0;

/// What a run will be able to show of the processor time per statement in a cell, where neighbours in time
/// differ by [`NEIGHBOURS_DIFFER_BY_PERCENT`]. What it was is known only after the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreseen {
    /// How many comparisons are judged together (Holm).
    pub comparisons: usize,
    /// Where arms take the most turns of all cells, and where they take the fewest: how many turns, and the
    /// smallest effect that is found in 4 of 5 cases among all of these comparisons, %.
    pub detectable_percent: [(u32, f64); 2],
    /// Half of the 95 % interval of arms that are set alike, median over the cells, %: a suite declares how
    /// much that may be.
    pub half_width_percent: f64,
}

impl Foreseen {
    /// What this many blocks of these cells will show, in each of which arms take this many `turns`. `None` below
    /// [`PAIRS_MIN`] blocks: they have no interval.
    pub(crate) fn of(
        suite: &Suite,
        cells: &[Cell],
        blocks: u32,
        turns: impl Fn(&Cell) -> u32,
    ) -> Option<Foreseen> {
        let pairs = blocks as usize;
        if pairs < PAIRS_MIN {
            return None;
        }
        let mut turns: Vec<u32> = cells.iter().map(turns).collect();
        turns.sort_unstable();
        let (fewest, most) = (*turns.first()?, *turns.last()?);
        let median = *turns.get((turns.len() - 1) / 2)?;
        let deviation = |turns: u32| NEIGHBOURS_DIFFER_BY_PERCENT / 100.0 / f64::from(turns).sqrt();
        let comparisons = comparisons(suite, cells);
        let found = paired::found(pairs, ERROR)?;
        let among = |turns: u32| {
            let alone_percent = percent(found * deviation(turns));
            (turns, detectable_among(comparisons, alone_percent, pairs))
        };
        // What lies at the end of an interval is found in every second case.
        let half = detectable(pairs, ERROR, 0.5)? * deviation(median);
        let interval = Interval { low: -half, value: 0.0, high: half }.map(percent);
        Some(Foreseen {
            comparisons,
            detectable_percent: [most, fewest].map(among),
            half_width_percent: interval.half_width(),
        })
    }
}

/// How many comparisons of a metric with the baseline are judged together where these cells are run: those
/// of the scenarios or, where the baseline is alone, those with itself.
fn comparisons(suite: &Suite, cells: &[Cell]) -> usize {
    let matrix = Matrix::of(suite, &suite.baseline);
    let run = matrix.cells.iter().filter(|(cell, _)| cells.contains(cell));
    let arms = run.flat_map(|(_, arms)| arms.iter().copied());
    let (again, others): (Vec<&str>, Vec<&str>) = arms.partition(|arm| Window::is_control(arm));
    if others.is_empty() { again.len() } else { others.len() }
}

#[cfg(test)]
mod tests {
    use crate::budget::TimeEstimate;
    use crate::lengths::Lengths;
    use crate::suite::Scale;

    use super::*;

    /// A suite with the windows of the smallest scale on servers of our own.
    fn tiny(suite: &Suite) -> TimeEstimate<'_> {
        let scale = Scale::Tiny;
        let lengths = Lengths::of(scale);
        TimeEstimate { suite, scale, lengths, is_in_use: false, has_load: true }
    }

    /// Closed read-only loads with this many sessions.
    fn reads(suite: &Suite, is_it: impl Fn(u32) -> bool) -> Vec<Cell> {
        let cells = suite.cells().into_iter().filter(|cell| !cell.load.is_open());
        cells.filter(|cell| cell.workload == "read-only" && is_it(cell.threads)).collect()
    }

    fn found(foreseen: &Foreseen) -> [f64; 2] {
        foreseen.detectable_percent.map(|(_, percent)| percent)
    }

    fn turns(foreseen: &Foreseen) -> [u32; 2] {
        foreseen.detectable_percent.map(|(turns, _)| turns)
    }

    #[test]
    fn an_effect_is_found_by_turns_and_without_them_by_windows_of_any_length() {
        let mut suite = Suite::find("rds").unwrap();
        suite.scenarios.truncate(2);
        let (tiny, one) = (tiny(&suite), reads(&suite, |threads| threads == 1));
        let foreseen = tiny.foreseen(&one, 8).unwrap();
        assert_eq!((foreseen.comparisons, turns(&foreseen)), (1, [8, 8]));
        // Of 8 pairs 1.1582 standard deviations are found, and 0.8061 are half of an interval; windows of 8
        // turns differ by 10 % / √8.
        assert!(found(&foreseen).iter().all(|it| (it - 4.18).abs() < 0.01), "{foreseen:?}");
        assert!((foreseen.half_width_percent - 2.85).abs() < 0.01, "{foreseen:?}");
        let in_use = TimeEstimate { is_in_use: true, ..tiny };
        let foreseen = in_use.foreseen(&one, 8).unwrap();
        assert_eq!(turns(&foreseen), [1, 1]);
        assert!((found(&foreseen)[0] - 12.28).abs() < 0.01, "{foreseen:?}");
        let longer = TimeEstimate { lengths: Lengths::of(Scale::Full), ..in_use };
        assert_eq!(longer.foreseen(&one, 8), Some(foreseen));
    }

    #[test]
    fn sessions_that_leave_room_for_one_turn_have_none_to_average_over() {
        let suite = Suite::find("rds").unwrap();
        let (tiny, many) = (tiny(&suite), reads(&suite, |threads| threads >= 128));
        assert_eq!(turns(&tiny.foreseen(&many, 8).unwrap()), [1, 1]);
        let foreseen = tiny.foreseen(&suite.cells(), 8).unwrap();
        assert_eq!(turns(&foreseen), [8, 1]);
        let [most, fewest] = found(&foreseen);
        assert!(8.0 < most && most < 12.0 && fewest > 2.5 * most, "{foreseen:?}");
    }

    #[test]
    fn all_comparisons_of_a_run_hide_an_effect_and_more_blocks_show_it() {
        let line = Suite::find("line").unwrap();
        let (tiny, cells) = (tiny(&line), line.cells());
        let of = |blocks| tiny.foreseen(&cells[..1], blocks).unwrap();
        // Eight scenarios beside the baseline; 12.28 % by itself.
        let (eight, forty) = (of(8), of(40));
        assert_eq!(eight.comparisons, 8);
        assert!((16.0..20.0).contains(&found(&eight)[0]), "{eight:?}");
        assert!(found(&forty)[0] < found(&eight)[0] / 2.0, "{forty:?}");
        assert!(forty.half_width_percent < eight.half_width_percent / 2.0, "{forty:?}");
        // Those of loads at a fixed rate are of the same family.
        assert_eq!(comparisons(&line, &cells), 8 * cells.len());
        // An interval needs six blocks, and a cell.
        assert_eq!((tiny.foreseen(&cells, 5), tiny.foreseen(&[], 8)), (None, None));
    }

    #[test]
    fn the_baseline_alone_is_judged_among_its_comparisons_with_itself() {
        let mut suite = Suite::find("rds").unwrap();
        suite.scenarios.truncate(1);
        assert_eq!(comparisons(&suite, &reads(&suite, |_| true)), suite.threads.len());
    }
}
