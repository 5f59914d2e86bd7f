//! Windows with something and without it, four at a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use waggle_host::{HostTime, Meter, MeterError};
use waggle_stats::{Estimate, Random, log_ratios, mean_interval, ratio_interval, trimmed_interval};

/// A block in which the hypervisor took more than this share of a processor is void. One tick is forgiven: it
/// can be the rounding of the counter.
const STEAL_MAX: f64 = 0.05;
/// Share of the blocks left out at either end for [`Block::added_ns_typical`], as is usual for a trimmed mean
/// (Wilcox, "Introduction to robust estimation and hypothesis testing", 4.3).
const TRIM: f64 = 0.2;
/// So many fours have one that can be left out at either end.
const FOURS_MIN: usize = 3;
/// Most rounds that are made again because blocks of them were void: half of those wanted, and a few at any rate.
const AGAIN_MIN: usize = 30;

/// How windows are made: `off on on off` or `on off off on`, by the toss of a coin. Each window with it
/// has one without it beside it, and a drift that is even over the four cancels.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Length of a window.
    pub window: Duration,
    /// Time after each switch that no window counts.
    pub settle: Duration,
    /// Fours that follow each other in a block.
    pub fours: usize,
}

/// Sums of the windows of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Half {
    cpu_ns: f64,
    statements: f64,
    seconds: f64,
}

impl Half {
    fn add(&mut self, other: Half) {
        self.cpu_ns += other.cpu_ns;
        self.statements += other.statements;
        self.seconds += other.seconds;
    }

    fn ns_per_statement(&self) -> f64 {
        self.cpu_ns / self.statements
    }

    /// Statements per second.
    fn rate(&self) -> f64 {
        self.statements / self.seconds
    }
}

/// Two pairs of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Four {
    with: Half,
    without: Half,
}

/// Some fours, one after another: what they share is one value to those who compare blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    sum: Four,
    /// What it adds to the processor time of a statement, ns, by each four.
    added_ns: Vec<f64>,
}

impl Windows {
    /// Measures one block. `switch` turns it on and off, `statements` tells how many there were so far.
    /// `None` where too much time was stolen, or there were no statements.
    ///
    /// # Errors
    /// What `switch` and `statements` say, or the server has ended.
    pub fn block<E: From<MeterError>>(
        self,
        meter: &Meter,
        random: &mut Random,
        switch: &mut dyn FnMut(bool) -> Result<(), E>,
        statements: &mut dyn FnMut() -> Result<u64, E>,
    ) -> Result<Option<Block>, E> {
        let (begin, stolen) = (Instant::now(), meter.host()?.steal_ticks);
        let mut fours = Vec::with_capacity(self.fours);
        for _ in 0..self.fours {
            fours.push(self.four(meter, random, switch, statements)?);
        }
        let stolen = meter.host()?.steal_ticks.saturating_sub(stolen).saturating_sub(1);
        let stolen_s = stolen as f64 / HostTime::TICKS_PER_S;
        let is_void = stolen_s > STEAL_MAX * begin.elapsed().as_secs_f64();
        Ok(Block::of(&fours).filter(|_| !is_void))
    }

    fn four<E: From<MeterError>>(
        self,
        meter: &Meter,
        random: &mut Random,
        switch: &mut dyn FnMut(bool) -> Result<(), E>,
        statements: &mut dyn FnMut() -> Result<u64, E>,
    ) -> Result<Four, E> {
        let outer = random.coin();
        let mut four = Four::default();
        let mut now = None;
        for on in [outer, !outer, !outer, outer] {
            if now != Some(on) {
                switch(on)?;
                sleep(self.settle);
                now = Some(on);
            }
            let half = if on { &mut four.with } else { &mut four.without };
            let before = (statements()?, meter.cpu_ns()?, Instant::now());
            sleep(self.window);
            let after = (statements()?, meter.cpu_ns()?, Instant::now());
            half.add(Half {
                statements: after.0.saturating_sub(before.0) as f64,
                cpu_ns: after.1.saturating_sub(before.1) as f64,
                seconds: (after.2 - before.2).as_secs_f64(),
            });
        }
        Ok(four)
    }
}

/// How many rounds are made at most to have this many blocks that count.
pub fn rounds_max(wanted: usize) -> usize {
    wanted + (wanted / 2).max(AGAIN_MIN)
}

impl Block {
    /// `None` where a four has windows without statements.
    fn of(fours: &[Four]) -> Option<Block> {
        let mut sum = Four::default();
        for four in fours {
            sum.with.add(four.with);
            sum.without.add(four.without);
        }
        let added = |four: &Four| four.with.ns_per_statement() - four.without.ns_per_statement();
        let added_ns: Vec<f64> = fours.iter().map(added).collect();
        let is_whole = !added_ns.is_empty() && added_ns.iter().all(|ns| ns.is_finite());
        is_whole.then_some(Block { sum, added_ns })
    }

    /// What it adds to the processor time of a statement, ns: all time by all statements, with the interval
    /// of [`ratio_interval`]. `None` below two blocks.
    pub fn added_ns(blocks: &[Block], confidence: f64) -> Option<Estimate> {
        let sums: Vec<[f64; 4]> = blocks
            .iter()
            .map(|Block { sum: Four { with, without }, .. }| {
                [with.cpu_ns, with.statements, without.cpu_ns, without.statements]
            })
            .collect();
        ratio_interval(&sums, confidence)
    }

    /// The same of what is paid at every statement alike: without the fours and the blocks in which
    /// something else took the processor, which are the lowest and the highest, with the interval of
    /// [`trimmed_interval`]. Not for what comes in bursts: they would be left out. `None` below two blocks.
    pub fn added_ns_typical(blocks: &[Block], confidence: f64) -> Option<Estimate> {
        let typical: Vec<f64> = blocks.iter().map(Block::typical_ns).collect();
        trimmed_interval(&typical, TRIM, confidence)
    }

    /// The mean of the fours without the lowest and the highest.
    fn typical_ns(&self) -> f64 {
        let mut added = self.added_ns.clone();
        added.sort_by(f64::total_cmp);
        let kept = match added.len() {
            count if count >= FOURS_MIN => &added[1..count - 1],
            _ => &added[..],
        };
        kept.iter().sum::<f64>() / kept.len() as f64
    }

    /// Processor time per statement without it, ns, over all blocks.
    pub fn without_ns(blocks: &[Block]) -> f64 {
        let sum = |part: fn(&Block) -> f64| blocks.iter().map(part).sum::<f64>();
        sum(|block| block.sum.without.cpu_ns) / sum(|block| block.sum.without.statements)
    }

    /// By how much it changes the statements per second, percent: the geometric mean over the blocks, with
    /// the interval of [`mean_interval`] of the logarithms. `None` below two blocks.
    pub fn rate_percent(blocks: &[Block], confidence: f64) -> Option<Estimate> {
        let rates: Vec<[f64; 2]> =
            blocks.iter().map(|Block { sum, .. }| [sum.without.rate(), sum.with.rate()]).collect();
        Some(mean_interval(&log_ratios(&rates)?, confidence)?.log_to_percent())
    }

    /// Statements per second without it, over all blocks.
    pub fn rate_without(blocks: &[Block]) -> f64 {
        let sum = |part: fn(&Block) -> f64| blocks.iter().map(part).sum::<f64>();
        sum(|block| block.sum.without.statements) / sum(|block| block.sum.without.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(cpu_ns: f64, statements: f64, seconds: f64) -> Half {
        Half { cpu_ns, statements, seconds }
    }

    fn block(with: Half, without: Half) -> Block {
        Block::of(&[Four { with, without }]).unwrap()
    }

    #[test]
    fn what_is_switched_on_is_measured_with_it() {
        let meter = Meter::of(std::process::id()).unwrap();
        let windows =
            Windows { window: Duration::from_millis(1), settle: Duration::ZERO, fours: 8 };
        let mut switched = Vec::new();
        let mut count = 0;
        let mut statements = || -> Result<u64, MeterError> {
            count += 1;
            Ok(count)
        };
        let mut switch = |on| -> Result<(), MeterError> {
            switched.push(on);
            Ok(())
        };
        windows.block(&meter, &mut Random::seeded(1), &mut switch, &mut statements).unwrap();
        for ends in switched.chunks(3) {
            assert!(ends == [true, false, true] || ends == [false, true, false], "{switched:?}");
        }
        assert_eq!((count, switched.len()), (2 * 4 * 8, 3 * 8));
    }

    #[test]
    fn what_is_added_is_by_sums_or_without_what_stands_out() {
        let without = half(1000.0, 10.0, 0.5);
        let blocks =
            [block(half(1200.0, 10.0, 0.5), without), block(half(1400.0, 10.0, 0.5), without)];
        assert_eq!(Block::added_ns(&blocks, 0.95).unwrap().value, 30.0);
        assert_eq!(Block::without_ns(&blocks), 100.0);
        assert_eq!(Block::added_ns(&blocks[..1], 0.95), None);

        let four = |cpu_ns| Four { with: half(cpu_ns, 10.0, 0.5), without };
        // 10, 20, 30 and, disturbed, 900.
        let fours = [four(1100.0), four(1300.0), four(10_000.0), four(1200.0)];
        assert_eq!(Block::of(&fours).unwrap().typical_ns(), 25.0);
        assert_eq!(Block::of(&fours[..2]).unwrap().typical_ns(), 20.0);
        let still = Four { with: half(1000.0, 0.0, 0.5), without };
        assert_eq!(Block::of(&[fours[0], still]), None);
        let typical = [10.0, 20.0, 30.0, 40.0, 900.0]
            .map(|added| block(half(1000.0 + 10.0 * added, 10.0, 0.5), without));
        assert_eq!(Block::added_ns_typical(&typical, 0.95).unwrap().value, 30.0);
        assert_eq!(Block::added_ns_typical(&typical[..1], 0.95), None);
    }

    #[test]
    fn the_change_of_the_rate_is_that_of_statements_by_time() {
        let blocks = [
            block(half(1.0, 90.0, 1.0), half(1.0, 200.0, 2.0)),
            block(half(1.0, 180.0, 2.0), half(1.0, 100.0, 1.0)),
        ];
        let change = Block::rate_percent(&blocks, 0.95).unwrap();
        assert!((change.value + 10.0).abs() < 1e-9, "{change:?}");
        assert_eq!(Block::rate_without(&blocks), 100.0);
        assert_eq!(Block::rate_percent(&blocks[..1], 0.95), None);
    }
}
