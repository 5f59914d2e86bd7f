//! A trial in windows: what is switched is on in one of the three windows of a block, and off in two.

use std::time::Duration;

use waggle_model::{ArmTimes, Times, Trial};
use waggle_stats::{Estimate, Watch, trimmed_interval, trimmed_mean};

use crate::TRIM;

/// What a window is for. The numbers are those of the arms of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Off.
    Off,
    /// Off again: the same as before, to see what differs by chance.
    OffAgain,
    /// On.
    On,
    /// Between two windows: what runs here counts nowhere.
    Between,
}

impl Phase {
    /// Those of a block.
    pub const OF_BLOCK: [Phase; 3] = [Phase::Off, Phase::OffAgain, Phase::On];

    /// Whether what is tried is on.
    pub fn is_on(self) -> bool {
        self == Phase::On
    }

    /// The arm of the trial.
    pub fn arm(self) -> usize {
        self as usize
    }

    /// The trial with these arms.
    pub fn trial() -> Trial {
        Trial::in_windows(Phase::Between as usize + 1)
    }
}

/// What one window has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it was.
    pub length: Duration,
    /// Its statements.
    pub times: ArmTimes,
}

impl Window {
    fn statements(&self) -> u64 {
        self.times.latency.count()
    }

    /// Processor time of a statement, nanoseconds.
    fn processor_ns(&self) -> Option<f64> {
        trimmed_mean(&self.times.processor.buckets, TRIM)
    }

    /// Statements per second.
    fn rate(&self) -> f64 {
        self.statements() as f64 / self.length.as_secs_f64()
    }
}

/// Three windows that follow each other, in an order that was left to chance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// [`Phase::Off`].
    pub off: Window,
    /// [`Phase::OffAgain`].
    pub off_again: Window,
    /// [`Phase::On`].
    pub on: Window,
}

impl Block {
    /// The window of a phase; `None` between windows.
    pub fn window_mut(&mut self, phase: Phase) -> Option<&mut Window> {
        match phase {
            Phase::Off => Some(&mut self.off),
            Phase::OffAgain => Some(&mut self.off_again),
            Phase::On => Some(&mut self.on),
            Phase::Between => None,
        }
    }

    fn both_off(&self, of: impl Fn(&Window) -> Option<f64>) -> Option<f64> {
        Some((of(&self.off)? + of(&self.off_again)?) / 2.0)
    }
}

/// The share of the blocks with the least and with the largest difference that is left out of a mean: something else began
/// or ended in them.
pub const BLOCK_TRIM: f64 = 0.2;
/// Of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// The windows that are off differ by more than chance, if an interval of this confidence leaves out 0.
const UNSOUND: f64 = 0.99;

/// All windows of a phase together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Statements.
    pub statements: u64,
    /// Per second.
    pub rate: f64,
    /// Their processor times.
    pub processor: Times,
    /// Their latencies.
    pub latency: Times,
}

impl Sum {
    fn of<'a>(windows: impl Iterator<Item = &'a Window> + Clone) -> Sum {
        let statements = windows.clone().map(Window::statements).sum();
        let seconds: f64 = windows.clone().map(|window| window.length.as_secs_f64()).sum();
        Sum {
            statements,
            rate: if seconds > 0.0 { statements as f64 / seconds } else { 0.0 },
            processor: Times::sum(windows.clone().map(|window| &window.times.processor)),
            latency: Times::sum(windows.map(|window| &window.times.latency)),
        }
    }
}

/// What a trial in windows has shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Switched {
    /// Processor time of a statement while it is off, nanoseconds; `None` where too few statements came.
    pub base_ns: Option<f64>,
    /// What is added while it is on, nanoseconds per statement; `None` with too few blocks.
    pub added_ns: Option<Estimate>,
    /// The same of the windows that are off, which is chance: the noise floor.
    pub floor_ns: Option<Estimate>,
    /// By how much fewer statements came per second while it was on, percent.
    pub slower_percent: Option<Estimate>,
    /// Whether the windows that are off differ by more than chance: then nothing here is to be trusted.
    pub is_unsound: bool,
    /// Off, off again, on.
    pub sums: [Sum; 3],
    /// How many blocks there were.
    pub blocks: usize,
}

impl Switched {
    /// From what the blocks have counted.
    pub fn of(blocks: &[Block]) -> Switched {
        let each = |of: &dyn Fn(&Block) -> Option<f64>| -> Vec<f64> {
            blocks.iter().filter_map(of).collect()
        };
        let interval =
            |values: &[f64], confidence| trimmed_interval(values, BLOCK_TRIM, confidence);
        let base = each(&|block| block.both_off(Window::processor_ns));
        let added =
            each(&|block| Some(block.on.processor_ns()? - block.both_off(Window::processor_ns)?));
        let floor =
            each(&|block| Some(block.off_again.processor_ns()? - block.off.processor_ns()?));
        let slower = each(&|block| {
            let off = block.both_off(|window| Some(window.rate())).filter(|rate| *rate > 0.0)?;
            Some(100.0 * (1.0 - block.on.rate() / off))
        });
        Switched {
            base_ns: trimmed_interval(&base, BLOCK_TRIM, CONFIDENCE).map(|base| base.value),
            added_ns: interval(&added, CONFIDENCE),
            floor_ns: interval(&floor, CONFIDENCE),
            slower_percent: interval(&slower, CONFIDENCE),
            is_unsound: interval(&floor, UNSOUND).is_some_and(|floor| !holds(&floor, 0.0)),
            sums: [
                Sum::of(blocks.iter().map(|block| &block.off)),
                Sum::of(blocks.iter().map(|block| &block.off_again)),
                Sum::of(blocks.iter().map(|block| &block.on)),
            ],
            blocks: blocks.len(),
        }
    }

    /// A time as a part of that of a statement while it is off, percent.
    pub fn percent(&self, ns: f64) -> Option<f64> {
        self.base_ns.map(|base| 100.0 * ns / base)
    }
}

/// Whether an interval holds a value.
pub fn holds(estimate: &Estimate, value: f64) -> bool {
    estimate.low <= value && value <= estimate.high
}

/// Watches whether the server becomes slower than is allowed while it is on.
#[derive(Clone, Debug)]
pub struct GiveUp {
    rate: Watch,
    p99: Watch,
}

/// Where so many statements came while it was off, and none while it is on, the server stands still.
const STOPPED_MIN: u64 = 100;
/// The chance to give up without need.
const GIVE_UP_ERROR: f64 = 0.01;

impl GiveUp {
    /// By more than this share, such as 0.1.
    pub fn new(share: f64) -> Option<GiveUp> {
        let watch = || Watch::new(1.0 + share, 2.0 + 2.0 * share, GIVE_UP_ERROR / 2.0);
        Some(GiveUp { rate: watch()?, p99: watch()? })
    }

    /// Takes a block; says what became slower.
    pub fn heed(&mut self, block: &Block) -> Option<&'static str> {
        if block.on.statements() == 0
            && block.off.statements().min(block.off_again.statements()) >= STOPPED_MIN
        {
            return Some("throughput");
        }
        let p99 = |window: &Window| window.times.latency.quantile(0.99);
        let off_rate = block.both_off(|window| Some(window.rate()))?;
        let on_rate = block.on.rate();
        let is_slow =
            self.rate.heed(if on_rate > 0.0 { off_rate / on_rate } else { f64::INFINITY });
        let is_late = match (block.both_off(p99), p99(&block.on)) {
            (Some(off), Some(on)) => self.p99.heed(on / off),
            _ => false,
        };
        match (is_slow, is_late) {
            (true, _) => Some("throughput"),
            (_, true) => Some("p99 of the latency"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use waggle_stats::Random;

    use super::*;

    fn window(ns: u64, statements: u64) -> Window {
        let times = Times { buckets: vec![(statements, ns * statements)] };
        Window {
            length: Duration::from_millis(100),
            times: ArmTimes { processor: times.clone(), latency: times },
        }
    }

    /// Blocks in which the server drifts, and some other work comes and goes.
    fn blocks(random: &mut Random, more_ns: u64, again_ns: u64) -> Vec<Block> {
        let noisy = |random: &mut Random, ns: u64, drift: u64| {
            let wild = if random.below(20) == 0 { 40_000 } else { 0 };
            window(ns + drift + wild + random.below(2_000) as u64, 1_000)
        };
        (0..60)
            .map(|at| Block {
                off: noisy(random, 20_000, at * 50),
                off_again: noisy(random, 20_000 + again_ns, at * 50),
                on: noisy(random, 20_000 + more_ns, at * 50),
            })
            .collect()
    }

    #[test]
    fn what_is_switched_is_found_and_chance_is_shown_beside_it() {
        let mut random = Random::seeded(3);
        let found = Switched::of(&blocks(&mut random, 5_000, 0));
        let (added, floor) = (found.added_ns.unwrap(), found.floor_ns.unwrap());
        assert!(holds(&added, 5_000.0) && !holds(&added, 4_000.0), "{added:?}");
        assert!(holds(&floor, 0.0) && !found.is_unsound, "{floor:?}");
        assert_eq!((found.blocks, found.sums[2].statements), (60, 60_000));
        assert!((found.sums[0].rate - 10_000.0).abs() < 1.0);
        assert!(found.percent(found.base_ns.unwrap()) == Some(100.0));
    }

    #[test]
    fn windows_that_should_be_alike_and_are_not_say_that_nothing_is_to_be_trusted() {
        let found = Switched::of(&blocks(&mut Random::seeded(4), 5_000, 3_000));
        assert!(found.is_unsound, "{:?}", found.floor_ns);
    }

    #[test]
    fn without_statements_nothing_is_known() {
        let found = Switched::of(&vec![Block::default(); 20]);
        assert_eq!((found.base_ns, found.added_ns, found.slower_percent), (None, None, None));
        assert_eq!(Switched::of(&[]).blocks, 0);
    }

    #[test]
    fn a_server_that_becomes_slower_is_let_go_and_one_that_does_not_is_kept() {
        let slower = |on: u64| {
            let mut give_up = GiveUp::new(0.1).unwrap();
            (0..60).find_map(|at| {
                let off = window(10_000, 1_000 + at % 7);
                let block = Block { off: off.clone(), off_again: off, on: window(10_000, on) };
                give_up.heed(&block).map(|what| (what, at))
            })
        };
        assert_eq!(slower(990), None);
        assert_eq!(slower(0), Some(("throughput", 0)));
        assert!(slower(700).is_some_and(|(what, at)| what == "throughput" && at < 20));
    }
}
