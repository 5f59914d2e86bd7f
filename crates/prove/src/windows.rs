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
        self.times.requests
    }

    /// Processor time of a statement, nanoseconds.
    fn processor_ns(&self) -> Option<f64> {
        trimmed_mean(&self.times.processor.counts_and_sums(), TRIM)
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

    /// The least statements of a window that is off.
    fn least_off(&self) -> u64 {
        self.off.statements().min(self.off_again.statements())
    }
}

/// The share of the blocks with the least and with the largest difference that is left out of a mean: something else began
/// or ended in them.
pub const BLOCK_TRIM: f64 = 0.2;
/// Of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Of the interval of the noise floor. The windows that are off differ by more than chance if it leaves out 0: of trials in
/// which all is well, one in a hundred says so.
pub const FLOOR_CONFIDENCE: f64 = 0.99;

/// All windows of a phase together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Statements that began.
    pub statements: u64,
    seconds: f64,
    /// Their processor times.
    pub processor: Times,
    /// Their latencies.
    pub latency: Times,
}

impl Sum {
    fn add(&mut self, window: &Window) {
        self.statements += window.statements();
        self.seconds += window.length.as_secs_f64();
        self.processor = Times::sum([&self.processor, &window.times.processor]);
        self.latency = Times::sum([&self.latency, &window.times.latency]);
    }

    /// Statements per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.statements as f64 / self.seconds } else { 0.0 }
    }
}

/// What the blocks have shown so far.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    count: usize,
    base_ns: Vec<f64>,
    added_ns: Vec<f64>,
    floor_ns: Vec<f64>,
    slower_percent: Vec<f64>,
    sums: [Sum; 3],
}

impl Blocks {
    /// Adds one.
    pub fn add(&mut self, block: &Block) {
        self.count += 1;
        let off = block.both_off(Window::processor_ns);
        self.base_ns.extend(off);
        self.added_ns.extend(block.on.processor_ns().zip(off).map(|(on, off)| on - off));
        let floor = block.off_again.processor_ns().zip(block.off.processor_ns());
        self.floor_ns.extend(floor.map(|(again, off)| again - off));
        let rate = block.both_off(|window| Some(window.rate())).filter(|rate| *rate > 0.0);
        self.slower_percent.extend(rate.map(|off| 100.0 * (1.0 - block.on.rate() / off)));
        for (sum, window) in self.sums.iter_mut().zip([&block.off, &block.off_again, &block.on]) {
            sum.add(window);
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What is added while it is on, nanoseconds per statement.
    pub fn added_ns(&self) -> Option<Estimate> {
        trimmed_interval(&self.added_ns, BLOCK_TRIM, CONFIDENCE)
    }

    /// All that is known.
    pub fn found(&self) -> Switched {
        let interval = |values: &[f64]| trimmed_interval(values, BLOCK_TRIM, CONFIDENCE);
        Switched {
            base_ns: interval(&self.base_ns).map(|base| base.value),
            added_ns: self.added_ns(),
            floor_ns: trimmed_interval(&self.floor_ns, BLOCK_TRIM, FLOOR_CONFIDENCE),
            slower_percent: interval(&self.slower_percent),
            sums: self.sums.clone(),
            blocks: self.count,
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
    /// The same of the windows that are off, which is chance: the noise floor, of [`FLOOR_CONFIDENCE`].
    pub floor_ns: Option<Estimate>,
    /// By how much fewer statements came per second while it was on, percent.
    pub slower_percent: Option<Estimate>,
    /// Off, off again, on.
    pub sums: [Sum; 3],
    /// How many blocks there were.
    pub blocks: usize,
}

impl Switched {
    /// Whether the windows that are off differ by more than chance: then nothing here is to be trusted.
    pub fn is_unsound(&self) -> bool {
        self.floor_ns.as_ref().is_some_and(|floor| !holds(floor, 0.0))
    }
}

/// Whether an interval holds a value.
pub fn holds(estimate: &Estimate, value: f64) -> bool {
    estimate.low <= value && value <= estimate.high
}

/// How the server became slower than is allowed while it was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slower {
    /// In two blocks one after the other, less than a third of the statements came.
    Standstill,
    /// The statements per second fell, over all blocks.
    Throughput,
    /// p99 rose, over all blocks.
    P99,
}

/// Watches whether the server becomes slower than is allowed while it is on.
#[derive(Clone, Debug)]
pub struct GiveUp {
    rate: Watch,
    p99: Watch,
    /// Whether it nearly stood still in the last block.
    stood_still: bool,
}

/// Blocks with fewer statements in a window that is off say nothing.
const HEEDED_MIN: u64 = 10;
/// With as many it is heeded whether less than a third is left while it is on. One block says nothing: the host may have
/// taken the processors away.
const STANDSTILL_MIN: u64 = 100;
/// The chance to give up without need.
const GIVE_UP_ERROR: f64 = 0.01;

impl GiveUp {
    /// By more than this share, such as 0.1.
    pub fn new(share: f64) -> Option<GiveUp> {
        // Of logarithms, which are above and below 0 alike where nothing differs.
        let limit = (1.0 + share).ln();
        let watch = || Watch::new(limit, limit + 1.0, GIVE_UP_ERROR / 2.0);
        Some(GiveUp { rate: watch()?, p99: watch()?, stood_still: false })
    }

    /// Takes a block; says what became worse. It takes about ten blocks to say so, and two where the server nearly stands
    /// still.
    pub fn heed(&mut self, block: &Block) -> Option<Slower> {
        if block.least_off() < HEEDED_MIN {
            return None;
        }
        let stands_still =
            block.least_off() >= STANDSTILL_MIN && 3 * block.on.statements() < block.least_off();
        if std::mem::replace(&mut self.stood_still, stands_still) && stands_still {
            return Some(Slower::Standstill);
        }
        let p99 = |window: &Window| window.times.latency.quantile(0.99);
        let off_rate = block.both_off(|window| Some(window.rate()))?;
        let is_slow = self.rate.heed((off_rate / block.on.rate()).ln());
        let is_late = match (block.both_off(p99), p99(&block.on)) {
            (Some(off), Some(on)) => self.p99.heed((on / off).ln()),
            _ => false,
        };
        match (is_slow, is_late) {
            (true, _) => Some(Slower::Throughput),
            (_, true) => Some(Slower::P99),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::Bucket;
    use waggle_stats::Random;

    use super::*;

    fn window(ns: u64, statements: u64) -> Window {
        let bucket = Bucket { place: 0, count: statements, sum_ns: ns * statements };
        let times = Times { buckets: (statements > 0).then_some(bucket).into_iter().collect() };
        Window {
            length: Duration::from_millis(100),
            times: ArmTimes { requests: statements, processor: times.clone(), latency: times },
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

    fn found(blocks: &[Block]) -> Switched {
        let mut all = Blocks::default();
        blocks.iter().for_each(|block| all.add(block));
        all.found()
    }

    #[test]
    fn what_is_switched_is_found_and_chance_is_shown_beside_it() {
        let mut random = Random::seeded(3);
        let found = found(&blocks(&mut random, 5_000, 0));
        let (added, floor) = (found.added_ns.unwrap(), found.floor_ns.unwrap());
        assert!(holds(&added, 5_000.0) && !holds(&added, 4_000.0), "{added:?}");
        assert!(holds(&floor, 0.0) && !found.is_unsound(), "{floor:?}");
        assert_eq!((found.blocks, found.sums[2].statements), (60, 60_000));
        assert!((found.sums[0].rate() - 10_000.0).abs() < 1.0);
    }

    #[test]
    fn windows_that_should_be_alike_and_are_not_say_that_nothing_is_to_be_trusted() {
        let found = found(&blocks(&mut Random::seeded(4), 5_000, 3_000));
        assert!(found.is_unsound(), "{:?}", found.floor_ns);
    }

    #[test]
    fn without_statements_nothing_is_known() {
        let nothing = found(&vec![Block::default(); 20]);
        assert_eq!((nothing.base_ns, nothing.added_ns, nothing.slower_percent), (None, None, None));
        assert_eq!(found(&[]).blocks, 0);
    }

    #[test]
    fn a_server_that_becomes_slower_is_let_go_and_one_that_does_not_is_kept() {
        let slower_than = |off: u64, on: u64| {
            let mut give_up = GiveUp::new(0.1).unwrap();
            (0..60).find_map(|at| {
                // In every third block the load pauses.
                let [off, on] = [off, on].map(|count| if at % 3 == 0 { 0 } else { count });
                let off = window(10_000, off + at % 7);
                let block = Block { off: off.clone(), off_again: off, on: window(10_000, on) };
                give_up.heed(&block).map(|what| (what, at))
            })
        };
        let slower = |on| slower_than(1_000, on);
        assert_eq!((slower(990), slower_than(0, 0), slower_than(3, 0)), (None, None, None));
        assert_eq!([slower(0), slower(300)], [Some((Slower::Standstill, 2)); 2]);
        assert!(slower(700).is_some_and(|(what, at)| what == Slower::Throughput && at < 30));
    }

    #[test]
    fn one_block_in_which_the_host_took_the_processors_away_ends_nothing() {
        let mut give_up = GiveUp::new(0.1).unwrap();
        let block = |on| Block {
            off: window(10_000, 1_000),
            off_again: window(10_000, 1_001),
            on: window(10_000, on),
        };
        let counts = (0..60).map(|at| if at % 20 == 5 { 10 } else { 995 + at % 9 });
        assert_eq!(counts.map(|on| give_up.heed(&block(on))).find(Option::is_some), None);
    }
}
