//! Windows with something and without it, four at a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use waggle_stats::{Estimate, Random, log_ratios, mean_interval, percent, trimmed_interval};

use crate::meter::{HostTime, Meter, MeterError};

/// A block in which the hypervisor took more than this share of a processor is void.
const STEAL_MAX: f64 = 0.05;
/// Share of the blocks left out at either end, as is usual for a trimmed mean (Wilcox, "Introduction to
/// robust estimation and hypothesis testing", 4.3): those in which something else took the processor.
const TRIM: f64 = 0.2;
/// Most blocks that are made again because they were void: half of those wanted, and a few at any rate.
const AGAIN_MIN: usize = 30;

/// How windows are made: `off on on off` or `on off off on`, by the toss of a coin. Each window with it
/// has one without it beside it, and a drift that is even over the block cancels.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Length of a window.
    pub window: Duration,
    /// Time after each switch that no window counts.
    pub settle: Duration,
}

/// Sums of the windows of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Half {
    cpu_ns: f64,
    statements: f64,
    seconds: f64,
}

impl Half {
    fn ns_per_statement(&self) -> f64 {
        self.cpu_ns / self.statements
    }

    /// Statements per second.
    fn rate(&self) -> f64 {
        self.statements / self.seconds
    }
}

/// Two pairs of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    with: Half,
    without: Half,
}

impl Windows {
    /// Measures one block. `switch` turns it on and off, `statements` tells how many there were so far.
    /// `None` where too much time was stolen.
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
        let outer = random.coin();
        let mut block = Block { with: Half::default(), without: Half::default() };
        let (begin, stolen) = (Instant::now(), HostTime::read().steal_ticks);
        let mut now = None;
        for on in [outer, !outer, !outer, outer] {
            if now != Some(on) {
                switch(on)?;
                sleep(self.settle);
                now = Some(on);
            }
            let half = if on { &mut block.with } else { &mut block.without };
            let before = (statements()?, meter.cpu_ns()?, Instant::now());
            sleep(self.window);
            let after = (statements()?, meter.cpu_ns()?, Instant::now());
            half.statements += after.0.saturating_sub(before.0) as f64;
            half.cpu_ns += after.1.saturating_sub(before.1) as f64;
            half.seconds += (after.2 - before.2).as_secs_f64();
        }
        // One tick can be the rounding of the counter.
        let stolen = HostTime::read().steal_ticks.saturating_sub(stolen).saturating_sub(1);
        let stolen_s = stolen as f64 / HostTime::TICKS_PER_S;
        let is_void = stolen_s > STEAL_MAX * begin.elapsed().as_secs_f64();
        Ok((!is_void && block.is_alive()).then_some(block))
    }
}

/// How many blocks are made at most to have so many that count.
pub fn blocks_max(wanted: usize) -> usize {
    wanted + (wanted / 2).max(AGAIN_MIN)
}

impl Block {
    fn is_alive(&self) -> bool {
        self.with.statements > 0.0 && self.without.statements > 0.0
    }

    /// What it adds to the processor time of a statement, ns, with the interval of [`trimmed_interval`] over
    /// the blocks. Which window comes first is left to chance, so that what is left out leans to no side.
    /// `None` below two blocks.
    pub fn added_ns(blocks: &[Block], confidence: f64) -> Option<Estimate> {
        let added: Vec<f64> = blocks
            .iter()
            .map(|block| block.with.ns_per_statement() - block.without.ns_per_statement())
            .collect();
        trimmed_interval(&added, TRIM, confidence)
    }

    /// Processor time per statement without it, ns, over all blocks.
    pub fn without_ns(blocks: &[Block]) -> f64 {
        let sum = |part: fn(&Block) -> f64| blocks.iter().map(part).sum::<f64>();
        sum(|block| block.without.cpu_ns) / sum(|block| block.without.statements)
    }

    /// By how much it changes the statements per second, percent: the geometric mean over the blocks, with
    /// the interval of [`mean_interval`] of the logarithms. `None` below two blocks.
    pub fn rate_percent(blocks: &[Block], confidence: f64) -> Option<Estimate> {
        let rates: Vec<[f64; 2]> =
            blocks.iter().map(|block| [block.without.rate(), block.with.rate()]).collect();
        let log = mean_interval(&log_ratios(&rates)?, confidence)?;
        Some(Estimate {
            value: percent(log.value),
            low: percent(log.low),
            high: percent(log.high),
            error: 100.0 * log.error,
            ..log
        })
    }

    /// Statements per second without it, over all blocks.
    pub fn rate_without(blocks: &[Block]) -> f64 {
        let sum = |part: fn(&Block) -> f64| blocks.iter().map(part).sum::<f64>();
        sum(|block| block.without.statements) / sum(|block| block.without.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_on_is_measured_with_it_and_what_is_added_follows() {
        let meter = Meter::of(std::process::id()).unwrap();
        let windows = Windows { window: Duration::from_millis(1), settle: Duration::ZERO };
        let switched = std::cell::RefCell::new(Vec::new());
        let mut count = 0;
        let mut statements = || -> Result<u64, MeterError> {
            count += 1;
            Ok(count)
        };
        let mut switch = |on| -> Result<(), MeterError> {
            switched.borrow_mut().push(on);
            Ok(())
        };
        for _ in 0..8 {
            windows.block(&meter, &mut Random::seeded(1), &mut switch, &mut statements).unwrap();
        }
        let switched = switched.into_inner();
        let ends = [switched[0], switched[1], switched[2]];
        assert!(ends == [true, false, true] || ends == [false, true, false], "{switched:?}");

        let half = |cpu_ns, statements| Half { cpu_ns, statements, seconds: 0.5 };
        let blocks = [
            Block { with: half(1200.0, 10.0), without: half(1000.0, 10.0) },
            Block { with: half(1400.0, 10.0), without: half(1000.0, 10.0) },
        ];
        assert_eq!(Block::added_ns(&blocks, 0.95).unwrap().value, 30.0);
        assert_eq!(Block::without_ns(&blocks), 100.0);
        assert_eq!(Block::added_ns(&blocks[..1], 0.95), None);
    }

    #[test]
    fn the_change_of_the_rate_is_that_of_statements_by_time() {
        let half = |statements, seconds| Half { cpu_ns: 1.0, statements, seconds };
        let blocks = [
            Block { with: half(90.0, 1.0), without: half(200.0, 2.0) },
            Block { with: half(180.0, 2.0), without: half(100.0, 1.0) },
        ];
        let change = Block::rate_percent(&blocks, 0.95).unwrap();
        assert!((change.value + 10.0).abs() < 1e-9, "{change:?}");
        assert_eq!(Block::rate_without(&blocks), 100.0);
        assert_eq!(Block::rate_percent(&blocks[..1], 0.95), None);
    }
}
