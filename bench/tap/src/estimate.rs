//! From blocks of windows to prices with intervals.

use waggle_bench_frame::CONFIDENCE;
use waggle_stats::{
    Estimate, Random, bootstrap_interval, lag_one, mean_interval, ratio_interval, sign_flip,
    stratified, trimmed_interval,
};

use crate::arms::Arm;
use crate::load::Load;
use crate::windows::{BLOCK, Window};

/// Share of the blocks that the robust estimate leaves out on each side.
pub(crate) const TRIM: f64 = 0.1;
const DRAWS: usize = 5_000;

/// What one arm costs under one load, or under all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    pub(crate) arm: Arm,
    /// `None` for all loads, each with the same weight.
    pub(crate) load: Option<Load>,
    /// Blocks that were void because of stolen time.
    pub(crate) void: usize,
    /// CPU of the server per statement without the arm, microseconds.
    pub(crate) without_us: f64,
    /// What the arm adds to it, microseconds: all CPU with it over all statements with it, less the
    /// same without it.
    pub(crate) added_us: Estimate,
    /// The mean of the differences within the blocks.
    pub(crate) block_mean_us: Estimate,
    /// The same by a mean that leaves out the extremes.
    pub(crate) trimmed_us: Estimate,
    /// The interval of the mean by the bootstrap.
    pub(crate) bootstrap_us: Option<(f64, f64)>,
    /// p of "the arm adds nothing" by flipping signs.
    pub(crate) p: f64,
    /// Correlation of a difference with the next one of the arm.
    pub(crate) lag_one: Option<f64>,
    /// Change of the statements per second, percent.
    pub(crate) rate_percent: Estimate,
    /// Statements per second without the arm.
    pub(crate) rate_without: f64,
    /// CPU of the reader, cores per 10,000 statements per second.
    pub(crate) agent_cores_per_10k: f64,
    /// Captured per statement that the server counted, while attached.
    pub(crate) captured_share: f64,
    pub(crate) lost: u64,
}

/// What the windows of one kind in a block sum up to.
#[derive(Clone, Copy, Default)]
struct Half {
    seconds: f64,
    statements: u64,
    captured: u64,
    server_ns: u64,
    agent_ns: u64,
    lost: u64,
}

impl Half {
    fn of<'a>(windows: impl Iterator<Item = &'a Window>) -> Half {
        windows.fold(Half::default(), |sum, window| Half {
            seconds: sum.seconds + window.seconds,
            statements: sum.statements + window.statements,
            captured: sum.captured + window.captured,
            server_ns: sum.server_ns + window.server_ns,
            agent_ns: sum.agent_ns + window.agent_ns,
            lost: sum.lost + window.lost,
        })
    }

    /// CPU of the server per statement in microseconds.
    fn server_us(&self) -> f64 {
        self.server_ns as f64 / 1e3 / self.statements.max(1) as f64
    }

    /// Statements per second; one that never came counts as one, so that ratios exist.
    fn rate(&self) -> f64 {
        self.statements.max(1) as f64 / self.seconds
    }
}

/// A block that counts.
#[derive(Clone, Copy)]
struct Block {
    on: Half,
    off: Half,
}

impl Block {
    fn of(windows: &[Window; BLOCK]) -> Block {
        let half = |on| Half::of(windows.iter().filter(move |window| window.on == on));
        Block { on: half(true), off: half(false) }
    }

    /// CPU in microseconds and statements, with the arm and then without it.
    fn cpu_and_statements(&self) -> [f64; 4] {
        let of = |half: &Half| [half.server_ns as f64 / 1e3, half.statements.max(1) as f64];
        let ([a, b], [c, d]) = (of(&self.on), of(&self.off));
        [a, b, c, d]
    }

    fn difference_us(&self) -> f64 {
        self.on.server_us() - self.off.server_us()
    }
}

fn blocks(windows: &[Window], arm: Arm, load: Load) -> Vec<Block> {
    let four = windows.as_chunks().0.iter();
    four.filter(|[first, ..]: &&[Window; BLOCK]| {
        first.arm == arm && first.load == load && !first.void
    })
    .map(Block::of)
    .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1);
    values.sum::<f64>() / count as f64
}

/// The prices of an arm: one for each load and one for all. Empty where there are too few
/// blocks.
pub(crate) fn prices(windows: &[Window], arm: Arm, seed: u64) -> Vec<Price> {
    let mut random = Random::seeded(seed);
    let under = |load: Load| (load, blocks(windows, arm, load));
    let by_load: Vec<(Load, Vec<Block>)> = Load::ALL.into_iter().map(under).collect();
    let mut prices: Vec<Price> = by_load
        .iter()
        .filter_map(|(load, blocks)| price(windows, arm, *load, blocks, &mut random))
        .collect();
    let all: Vec<f64> =
        by_load.iter().flat_map(|(_, blocks)| blocks.iter().map(Block::difference_us)).collect();
    prices.extend(pooled(&prices, &all, &mut random));
    prices
}

fn price(
    windows: &[Window],
    arm: Arm,
    load: Load,
    blocks: &[Block],
    random: &mut Random,
) -> Option<Price> {
    let differences: Vec<f64> = blocks.iter().map(Block::difference_us).collect();
    let ratios: Vec<[f64; 4]> = blocks.iter().map(Block::cpu_and_statements).collect();
    let rates: Vec<f64> =
        blocks.iter().map(|block| (block.on.rate() / block.off.rate()).ln()).collect();
    let sum_on = |value: fn(&Half) -> u64| blocks.iter().map(|block| value(&block.on)).sum::<u64>();
    let statements = sum_on(|half| half.statements).max(1) as f64;
    let is_void = |window: &&Window| window.arm == arm && window.load == load && window.void;
    Some(Price {
        arm,
        load: Some(load),
        void: windows.iter().filter(is_void).count() / BLOCK,
        without_us: mean(blocks.iter().map(|block| block.off.server_us())),
        added_us: ratio_interval(&ratios, CONFIDENCE)?,
        block_mean_us: mean_interval(&differences, CONFIDENCE)?,
        trimmed_us: trimmed_interval(&differences, TRIM, CONFIDENCE)?,
        bootstrap_us: bootstrap_interval(&differences, CONFIDENCE, DRAWS, random),
        p: sign_flip(&differences, DRAWS, random)?,
        lag_one: lag_one(&differences),
        rate_percent: mean_interval(&rates, CONFIDENCE)?.log_to_percent(),
        rate_without: mean(blocks.iter().map(|block| block.off.rate())),
        agent_cores_per_10k: sum_on(|half| half.agent_ns) as f64 / 1e9 / statements * 1e4,
        captured_share: sum_on(|half| half.captured) as f64 / statements,
        lost: sum_on(|half| half.lost),
    })
}

/// All loads, each with the same weight. The bootstrap and the flipping of signs take the blocks of
/// all loads as one sample, so they hold the differences between the loads as well.
fn pooled(of_loads: &[Price], all: &[f64], random: &mut Random) -> Option<Price> {
    let first = of_loads.first()?;
    let strata = |part: fn(&Price) -> Estimate| {
        stratified(&of_loads.iter().map(part).collect::<Vec<_>>(), CONFIDENCE)
    };
    let average = |part: fn(&Price) -> f64| mean(of_loads.iter().map(part));
    Some(Price {
        arm: first.arm,
        load: None,
        void: of_loads.iter().map(|price| price.void).sum(),
        without_us: average(|price| price.without_us),
        added_us: strata(|price| price.added_us)?,
        block_mean_us: strata(|price| price.block_mean_us)?,
        trimmed_us: strata(|price| price.trimmed_us)?,
        bootstrap_us: bootstrap_interval(all, CONFIDENCE, DRAWS, random),
        p: sign_flip(all, DRAWS, random)?,
        lag_one: lag_one(all),
        rate_percent: strata(|price| price.rate_percent)?,
        rate_without: average(|price| price.rate_without),
        agent_cores_per_10k: average(|price| price.agent_cores_per_10k),
        captured_share: average(|price| price.captured_share),
        lost: of_loads.iter().map(|price| price.lost).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of windows of 1,000 statements each, from their CPU in milliseconds.
    fn block(load: Load, on_first: bool, server_ms: [u64; BLOCK], void: bool) -> [Window; BLOCK] {
        let on = [on_first, !on_first, !on_first, on_first];
        std::array::from_fn(|at| Window {
            block: 0,
            arm: Arm::Nothing,
            load,
            on: on[at],
            seconds: 0.5,
            statements: 1000,
            captured: if on[at] { 1000 } else { 0 },
            server_ns: server_ms[at] * 1_000_000,
            agent_ns: 1_000_000,
            lost: 0,
            steal_ticks: 0,
            void,
        })
    }

    #[test]
    fn a_drift_cancels_and_known_differences_give_the_known_price_in_either_order() {
        let load = Load::ALL[0];
        // It drifts by 10 from window to window; the arm adds 2 and then 4.
        let windows = [
            block(load, false, [40, 52, 62, 70], false),
            block(load, true, [44, 50, 60, 74], false),
            block(load, true, [500, 1, 1, 500], true),
        ];
        let prices = prices(windows.as_flattened(), Arm::Nothing, 1);
        assert_eq!(prices.len(), 2, "one load and all of them");
        assert!((prices[0].added_us.value - 3.0).abs() < 1e-9);
        assert_eq!(prices[0].block_mean_us.value, 3.0);
        assert_eq!(prices[0].added_us.count, 2);
        assert_eq!((prices[0].void, prices[0].captured_share), (1, 1.0));
        assert!((prices[1].added_us.value - prices[0].added_us.value).abs() < 1e-9);
        assert!((prices[0].agent_cores_per_10k - 0.01).abs() < 1e-12);
        assert!(prices[0].rate_percent.value.abs() < 1e-9);
    }

    #[test]
    fn every_load_has_the_same_weight() {
        let mut windows = Vec::new();
        for (load, added, blocks) in [(Load::ALL[0], 1, 2), (Load::ALL[1], 5, 20)] {
            for at in 0..blocks {
                let [off, on] = [40 + at, 40 + at + added];
                windows.extend(block(load, false, [off, on, on, off], false));
            }
        }
        let prices = prices(&windows, Arm::Nothing, 1);
        let all = prices.last().unwrap();
        assert_eq!(all.load, None);
        assert!((all.added_us.value - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_window_in_which_nothing_ran_breaks_nothing() {
        let mut windows = block(Load::ALL[0], true, [0, 0, 0, 0], false).to_vec();
        windows.iter_mut().for_each(|window| window.statements = 0);
        windows.extend(block(Load::ALL[0], false, [40, 41, 41, 40], false));
        let prices = prices(&windows, Arm::Nothing, 1);
        assert!(prices[0].added_us.value.is_finite() && prices[0].rate_percent.value.is_finite());
    }
}
