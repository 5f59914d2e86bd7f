//! From windows to pairs: an arm beside its baseline in the same block.

use std::collections::{BTreeMap, BTreeSet};

use crate::gate;
use crate::metric::Metric;
use crate::window::{Cell, Measured, Window};

/// A metric of one arm in one block, over its windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Side {
    /// Mean.
    pub(super) value: f64,
    /// Mean of the logarithms; absent where a value is not above 0.
    pub(super) log: Option<f64>,
}

/// An arm and its baseline in one block, or in all blocks that had the same two server lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// The block; the first one of several.
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
    /// Blocks that do not count, because the metric belongs to a server life that several arms share.
    pub(super) shared: usize,
}

/// The windows of a cell: by block, by arm.
pub(super) struct Blocks<'a> {
    blocks: BTreeMap<u32, BTreeMap<&'a str, Vec<&'a Window>>>,
    /// Server lives that several arms had, in whatever cells.
    shared: BTreeSet<u32>,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(windows: &'a [Window], cell: &Cell) -> Blocks<'a> {
        let mut blocks: BTreeMap<u32, BTreeMap<&str, Vec<&Window>>> = BTreeMap::new();
        for window in windows.iter().filter(|window| window.cell == *cell) {
            let arms = blocks.entry(window.block).or_default();
            arms.entry(&window.arm).or_default().push(window);
        }
        let mut arms: BTreeMap<u32, &str> = BTreeMap::new();
        let has_other =
            |window: &&'a Window| *arms.entry(window.life).or_insert(&window.arm) != window.arm;
        let shared = windows.iter().filter(has_other).map(|window| window.life).collect();
        Blocks { blocks, shared }
    }

    /// The windows of an arm.
    pub(super) fn windows(&self, arm: &str) -> impl Iterator<Item = &'a Window> {
        self.blocks.values().filter_map(move |arms| arms.get(arm)).flatten().copied()
    }

    /// In how many blocks an arm has a window.
    pub(super) fn count(&self, arm: &str) -> usize {
        self.blocks.values().filter(|arms| arms.contains_key(arm)).count()
    }

    /// Whether windows of an arm count and none of them has the metric.
    pub(super) fn never_tells(&self, arm: &str, metric: Metric) -> bool {
        let mut counted = self.windows(arm).filter_map(Window::counted).peekable();
        counted.peek().is_some() && counted.all(|it| metric.of(it).is_none())
    }

    /// An arm beside its baseline. Blocks in which the two had the same pair of different lives are one
    /// pair: what sets two lives apart (where memory lies, what is cached) is the same in all of them,
    /// and more blocks do not average it out (Kalibera and Jones, "Rigorous benchmarking in reasonable
    /// time", ISMM 2013: repeat at the level that varies).
    pub(super) fn pairs(&self, baseline: &str, arm: &str, metric: Metric) -> Pairs {
        let mut found = Pairs::default();
        let mut units: BTreeMap<([u32; 2], u32), Vec<Pair>> = BTreeMap::new();
        for (block, arms) in &self.blocks {
            let (Some(of_baseline), Some(of_arm)) = (arms.get(baseline), arms.get(arm)) else {
                continue;
            };
            let lives = [of_baseline, of_arm].map(|windows| windows[0].life);
            let is_one_life = lives[0] == lives[1];
            if metric.is_of_life() && lives.iter().any(|life| self.shared.contains(life)) {
                found.shared += 1;
                continue;
            }
            // They are no neighbours in time: the level may be another one.
            let mut parts = of_baseline.iter().chain(of_arm).map(|window| window.part);
            let first = parts.next();
            let is_parted = parts.any(|part| Some(part) != first);
            match (Side::of(of_baseline, metric), Side::of(of_arm, metric)) {
                (Some(baseline), Some(arm)) if !is_parted => {
                    let unit = (lives, if is_one_life { *block } else { 0 });
                    units.entry(unit).or_default().push(Pair { block: *block, baseline, arm });
                }
                (baseline, arm) => {
                    found.void += 1;
                    let any = |windows: &[&Window], is_it: fn(&Measured) -> bool| {
                        windows.iter().filter_map(|it| it.measured.as_ref()).any(is_it)
                    };
                    let is_alone = |lacks: Option<Side>, windows: &[&Window], has: Option<Side>| {
                        lacks.is_none() && has.is_some() && !any(windows, gate::is_stolen)
                    };
                    let is_arm_alone = is_alone(arm, of_arm, baseline);
                    let is_baseline_alone = is_alone(baseline, of_baseline, arm);
                    let is_overloaded = is_arm_alone && any(of_arm, gate::is_overloaded);
                    found.void_alone[0] += usize::from(is_arm_alone);
                    found.void_alone[1] += usize::from(is_baseline_alone);
                    found.overloaded += usize::from(is_overloaded);
                }
            }
        }
        found.pairs = units.values().map(|pairs| Pair::mean(pairs)).collect();
        found
    }
}

impl Side {
    /// `None` where a window does not count or lacks the metric.
    fn of(windows: &[&Window], metric: Metric) -> Option<Side> {
        let value = |window: &&Window| window.counted().and_then(|measured| metric.of(measured));
        let values: Vec<f64> = windows.iter().map(value).collect::<Option<_>>()?;
        let sides = values.into_iter().map(|value| {
            let log = (value > 0.0).then(|| value.ln());
            Side { value, log }
        });
        Some(Side::mean(sides))
    }

    pub(super) fn mean(sides: impl Iterator<Item = Side> + Clone) -> Side {
        let count = sides.clone().count() as f64;
        let value = sides.clone().map(|side| side.value).sum::<f64>() / count;
        let log: Option<f64> = sides.map(|side| side.log).sum();
        Side { value, log: log.map(|sum| sum / count) }
    }
}

impl Pair {
    fn mean(pairs: &[Pair]) -> Pair {
        Pair {
            block: pairs.iter().map(|pair| pair.block).min().unwrap_or_default(),
            baseline: Side::mean(pairs.iter().map(|pair| pair.baseline)),
            arm: Side::mean(pairs.iter().map(|pair| pair.arm)),
        }
    }

    /// `ln(arm / baseline)`, where both are above 0.
    pub(super) fn log_ratio(&self) -> Option<f64> {
        Some(self.arm.log? - self.baseline.log?)
    }

    /// `arm - baseline` in the unit of the metric.
    pub(super) fn difference(&self) -> f64 {
        self.arm.value - self.baseline.value
    }
}
