//! From windows to pairs: an arm beside its baseline in the same block.

use std::collections::{BTreeMap, BTreeSet};

use crate::gate;
use crate::metric::Metric;
use crate::window::{Cell, Measured, Window};

/// A metric of one arm in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Side {
    pub(super) value: f64,
    /// Its logarithm; absent where it is not above 0.
    pub(super) log: Option<f64>,
}

/// An arm and its baseline in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) block: u32,
    pub(super) baseline: Side,
    pub(super) arm: Side,
}

/// What the windows of a cell give for one arm and metric.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pairs {
    /// Those that count, in the order of time.
    pub(super) pairs: Vec<Pair>,
    /// Blocks that do not count, because a window of either arm is void, or because the run was
    /// interrupted between the two.
    pub(super) void: usize,
    /// Of these, where only the window of the arm does not count, and where only that of the baseline does not, but for
    /// what the hypervisor took: that is no doing of theirs.
    pub(super) void_alone: [usize; 2],
    /// Of these, where the arm could not keep up with a fixed rate, and the baseline could.
    pub(super) overloaded: usize,
    /// Blocks that do not count, because the metric belongs to one server start that several arms share.
    pub(super) shared: usize,
}

/// The windows of a cell: by block, by arm.
pub(super) struct Blocks<'a> {
    blocks: BTreeMap<u32, BTreeMap<&'a str, &'a Window>>,
    /// Server lives that several arms had, in whatever cells.
    shared: BTreeSet<u32>,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(windows: &'a [Window], cell: &Cell) -> Blocks<'a> {
        let mut blocks: BTreeMap<u32, BTreeMap<&str, &Window>> = BTreeMap::new();
        for window in windows.iter().filter(|window| window.cell == *cell) {
            blocks.entry(window.block).or_default().insert(&window.arm, window);
        }
        let mut arms: BTreeMap<u32, &str> = BTreeMap::new();
        let has_other = |window: &&'a Window| {
            *arms.entry(window.server_start).or_insert(&window.arm) != window.arm
        };
        let shared = windows.iter().filter(has_other).map(|window| window.server_start).collect();
        Blocks { blocks, shared }
    }

    /// The windows of an arm.
    pub(super) fn windows(&self, arm: &str) -> impl Iterator<Item = &'a Window> {
        self.blocks.values().filter_map(move |arms| arms.get(arm)).copied()
    }

    /// In how many blocks an arm has a window.
    pub(super) fn count(&self, arm: &str) -> usize {
        self.windows(arm).count()
    }

    /// Whether windows of an arm count and none of them has the metric.
    pub(super) fn never_tells(&self, arm: &str, metric: Metric) -> bool {
        let mut counted = self.windows(arm).filter_map(Window::counted).peekable();
        counted.peek().is_some() && counted.all(|it| metric.of(it).is_none())
    }

    /// An arm beside its baseline. Servers are started anew for each block: what sets two of them apart (where memory lies,
    /// what is cached) differs from pair to pair, and so averages out (Kalibera and Jones, "Rigorous benchmarking in
    /// reasonable time", ISMM 2013: repeat at the level that varies).
    pub(super) fn pairs(&self, baseline: &str, arm: &str, metric: Metric) -> Pairs {
        let mut found = Pairs::default();
        for (block, arms) in &self.blocks {
            let (Some(of_baseline), Some(of_arm)) = (arms.get(baseline), arms.get(arm)) else {
                continue;
            };
            let both = [of_baseline, of_arm];
            if metric.is_per_server_start()
                && both.iter().any(|it| self.shared.contains(&it.server_start))
            {
                found.shared += 1;
                continue;
            }
            match both.map(|it| Side::of(it, metric)) {
                // Of two parts of a run they are no neighbours in time: the level may be another one.
                [Some(baseline), Some(arm)] if of_baseline.part == of_arm.part => {
                    found.pairs.push(Pair { block: *block, baseline, arm });
                }
                [baseline, arm] => {
                    found.void += 1;
                    let is = |window: &Window, is_it: fn(&Measured) -> bool| {
                        window.measured.as_ref().is_some_and(is_it)
                    };
                    let is_alone = |lacks: Option<Side>, window: &Window, has: Option<Side>| {
                        lacks.is_none() && has.is_some() && !is(window, gate::is_stolen)
                    };
                    let is_arm_alone = is_alone(arm, of_arm, baseline);
                    let is_baseline_alone = is_alone(baseline, of_baseline, arm);
                    let is_overloaded = is_arm_alone && is(of_arm, gate::is_overloaded);
                    found.void_alone[0] += usize::from(is_arm_alone);
                    found.void_alone[1] += usize::from(is_baseline_alone);
                    found.overloaded += usize::from(is_overloaded);
                }
            }
        }
        found
    }
}

impl Side {
    /// `None` where a window does not count or lacks the metric.
    fn of(window: &Window, metric: Metric) -> Option<Side> {
        let value = metric.of(window.counted()?)?;
        Some(Side { value, log: (value > 0.0).then(|| value.ln()) })
    }

    pub(super) fn mean(sides: impl Iterator<Item = Side> + Clone) -> Side {
        let count = sides.clone().count() as f64;
        let value = sides.clone().map(|side| side.value).sum::<f64>() / count;
        let log: Option<f64> = sides.map(|side| side.log).sum();
        Side { value, log: log.map(|sum| sum / count) }
    }
}

impl Pair {
    /// `ln(arm / baseline)`, where both are above 0.
    pub(super) fn log_ratio(&self) -> Option<f64> {
        Some(self.arm.log? - self.baseline.log?)
    }

    /// `arm - baseline` in the unit of the metric.
    pub(super) fn difference(&self) -> f64 {
        self.arm.value - self.baseline.value
    }
}
