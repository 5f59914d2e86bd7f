//! From pairs of windows to prices with intervals.

use waggle_stats::{
    Estimate, Random, bootstrap_interval, lag_one, mean_interval, sign_flip, stratified,
    trimmed_interval,
};

use crate::arms::Arm;
use crate::load::Load;
use crate::windows::Window;

pub(crate) const CONFIDENCE: f64 = 0.95;
/// Share of the pairs that the robust estimate leaves out on each side.
pub(crate) const TRIM: f64 = 0.1;
const DRAWS: usize = 5_000;

/// What one arm costs under one load, or under all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    pub(crate) arm: Arm,
    /// `None` for all loads, each with the same weight.
    pub(crate) load: Option<Load>,
    /// Pairs that were void because of stolen time.
    pub(crate) void: usize,
    /// CPU of the server per statement without the arm, microseconds.
    pub(crate) without_us: f64,
    /// What the arm adds to it, microseconds: the mean of the paired differences.
    pub(crate) added_us: Estimate,
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

/// A pair that counts.
struct Pair<'a> {
    on: &'a Window,
    off: &'a Window,
}

fn pairs(windows: &[Window], arm: Arm, load: Load) -> Vec<Pair<'_>> {
    let two = windows.as_chunks::<2>().0.iter();
    two.filter(|[first, _]| first.arm == arm && first.load == load && !first.void)
        .map(|[first, second]| {
            let (on, off) = if first.on { (first, second) } else { (second, first) };
            Pair { on, off }
        })
        .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1);
    values.sum::<f64>() / count as f64
}

/// The prices of an arm: one for each load and one for all. Empty where there are too few pairs.
pub(crate) fn prices(windows: &[Window], arm: Arm, seed: u64) -> Vec<Price> {
    let mut random = Random::seeded(seed);
    let under = |load: Load| (load, pairs(windows, arm, load));
    let by_load: Vec<(Load, Vec<Pair<'_>>)> = Load::ALL.into_iter().map(under).collect();
    let mut prices: Vec<Price> = by_load
        .iter()
        .filter_map(|(load, pairs)| price(windows, arm, *load, pairs, &mut random))
        .collect();
    let all: Vec<f64> =
        by_load.iter().flat_map(|(_, pairs)| pairs.iter().map(difference_us)).collect();
    prices.extend(pooled(&prices, &all, &mut random));
    prices
}

fn difference_us(pair: &Pair<'_>) -> f64 {
    pair.on.server_us() - pair.off.server_us()
}

fn price(
    windows: &[Window],
    arm: Arm,
    load: Load,
    pairs: &[Pair<'_>],
    random: &mut Random,
) -> Option<Price> {
    let differences: Vec<f64> = pairs.iter().map(difference_us).collect();
    let rates: Vec<f64> =
        pairs.iter().map(|pair| (pair.on.rate() / pair.off.rate()).ln()).collect();
    let sum_on = |value: fn(&Window) -> u64| pairs.iter().map(|pair| value(pair.on)).sum::<u64>();
    let statements = sum_on(|window| window.statements).max(1) as f64;
    let is_void = |window: &&Window| window.arm == arm && window.load == load && window.void;
    Some(Price {
        arm,
        load: Some(load),
        void: windows.iter().filter(is_void).count() / 2,
        without_us: mean(pairs.iter().map(|pair| pair.off.server_us())),
        added_us: mean_interval(&differences, CONFIDENCE)?,
        trimmed_us: trimmed_interval(&differences, TRIM, CONFIDENCE)?,
        bootstrap_us: bootstrap_interval(&differences, CONFIDENCE, DRAWS, random),
        p: sign_flip(&differences, DRAWS, random)?,
        lag_one: lag_one(&differences),
        rate_percent: percent(mean_interval(&rates, CONFIDENCE)?),
        rate_without: mean(pairs.iter().map(|pair| pair.off.rate())),
        agent_cores_per_10k: sum_on(|window| window.agent_ns) as f64 / 1e9 / statements * 1e4,
        captured_share: sum_on(|window| window.captured) as f64 / statements,
        lost: sum_on(|window| window.lost),
    })
}

/// From the mean of log ratios to percent.
fn percent(log: Estimate) -> Estimate {
    let turn = |value: f64| 100.0 * value.exp_m1();
    Estimate {
        value: turn(log.value),
        low: turn(log.low),
        high: turn(log.high),
        error: 100.0 * log.error,
        ..log
    }
}

/// All loads, each with the same weight. The bootstrap and the flipping of signs take the pairs of
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

    fn window(on: bool, load: Load, server_ns: u64, void: bool) -> Window {
        Window {
            pair: 0,
            arm: Arm::Nothing,
            load,
            on,
            first: on,
            seconds: 0.5,
            statements: 1000,
            captured: if on { 1000 } else { 0 },
            server_ns,
            agent_ns: 1_000_000,
            lost: 0,
            steal_ticks: 0,
            switch_seconds: 0.0,
            void,
        }
    }

    #[test]
    fn known_differences_give_the_known_price_whatever_the_order() {
        let load = Load::ALL[0];
        let windows = [
            [window(true, load, 42_000_000, false), window(false, load, 40_000_000, false)],
            [window(false, load, 50_000_000, false), window(true, load, 54_000_000, false)],
            [window(false, load, 10_000_000, true), window(true, load, 90_000_000, true)],
        ];
        let prices = prices(windows.as_flattened(), Arm::Nothing, 1);
        assert_eq!(prices.len(), 2, "one load and all of them");
        assert_eq!(prices[0].added_us.value, 3.0);
        assert_eq!(prices[0].added_us.count, 2);
        assert_eq!((prices[0].void, prices[0].captured_share), (1, 1.0));
        assert_eq!(prices[1].added_us, prices[0].added_us);
        assert!((prices[0].agent_cores_per_10k - 0.01).abs() < 1e-12);
    }

    #[test]
    fn every_load_has_the_same_weight() {
        let mut windows = Vec::new();
        for (load, added, pairs) in [(Load::ALL[0], 1, 2), (Load::ALL[1], 5, 20)] {
            for at in 0..pairs {
                let off = 40_000_000 + at * 1000;
                windows.push(window(false, load, off, false));
                windows.push(window(true, load, off + added * 1_000_000, false));
            }
        }
        let prices = prices(&windows, Arm::Nothing, 1);
        let all = prices.last().unwrap();
        assert_eq!(all.load, None);
        assert!((all.added_us.value - 3.0).abs() < 1e-9);
    }
}
