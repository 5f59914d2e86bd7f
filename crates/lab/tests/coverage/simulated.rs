//! Whether the intervals that are printed hold the truth as often as they say.
//!
//! Runs are simulated: a long series of windows is disturbed as windows are, cut in blocks, and in each
//! block two arms are put in places as a schedule puts them. One of the two costs a known share more;
//! counted is how often the intervals hold that share. Of several cells, each with a series and an effect
//! of its own and all with something in common in a block, it is the mean of their effects that the interval
//! of the pooled one has to hold.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use waggle_lab::analysis::paired::{self, Intervals, PAIRS_MIN};
use waggle_lab::analysis::runs_apart;
use waggle_lab::{Cell, Metric, Window};
use waggle_stats::{Estimate, Random, block_means, lag_one};

/// The effect that is to be found, as a logarithm: about 5 %.
const TRUTH: f64 = 0.05;
/// A margin beside which the noise of a run is small, so that the far side of it plays no part.
const MARGIN: f64 = 20.0;

/// What disturbs the windows of a run. All of it is in units of its own standard deviation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noise {
    /// Series of windows that were kept ([`residuals`]), of which pieces are put together in random
    /// order; without any, normal noise.
    pub(crate) kept: Vec<Vec<f64>>,
    /// How much of a disturbance lasts to the next window, on top of what the series have, 0 to 1 (an
    /// autoregression of order one).
    pub(crate) correlation: f64,
    /// Whether every disturbance is divided by the root of a mean of three squares, which makes normal
    /// noise Student's with 3 degrees of freedom.
    pub(crate) has_heavy_tails: bool,
    /// How far the level moves from the first window of a run to the last, up or down.
    pub(crate) drift: f64,
}

/// In which places of a block the two arms are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// Left to chance in every block, as in a schedule.
    Random,
    /// The baseline first and the arm second in every block: what a schedule must not do.
    Fixed,
}

/// The shape of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Design {
    /// Blocks, each of which gives a pair.
    pub(crate) pairs: usize,
    /// Arms, each of which has a window in a block; at least 2.
    pub(crate) arms: usize,
    /// Where the two arms are that are compared.
    pub(crate) places: Places,
}

/// Shares of the simulated runs whose interval of 95 % held the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Coverage {
    /// Of the interval that is printed.
    pub(crate) interval: f64,
    /// Of Student's interval.
    pub(crate) student: f64,
    /// Of the bootstrap's, where it is printed.
    pub(crate) bootstrap: Option<f64>,
    /// The share of the runs in which an effect that is just the margin was called smaller.
    pub(crate) wrongly_small: f64,
}

impl Coverage {
    /// Simulates runs.
    pub(crate) fn of(noise: &Noise, design: &Design, runs: usize, seed: u64) -> Coverage {
        let mut random = Random::seeded(seed);
        let (mut interval, mut student, mut bootstrap, mut resampled) = (0, 0, 0, 0);
        let mut small = 0;
        for _ in 0..runs {
            let mut differences = design.run(noise, &mut random);
            let Some(found) = Intervals::of(&differences) else { continue };
            interval += usize::from(found.interval.holds(TRUTH));
            student += usize::from(holds(&found.student, TRUTH));
            resampled += usize::from(found.bootstrap.is_some());
            bootstrap += usize::from(found.bootstrap.is_some_and(|it| it.holds(TRUTH)));
            differences.iter_mut().for_each(|difference| *difference += MARGIN - TRUTH);
            let at_margin = paired::student(&differences);
            small += usize::from(
                at_margin.is_some_and(|it| paired::is_within(&differences, &it, MARGIN)),
            );
        }
        let share = |held: usize| held as f64 / runs as f64;
        Coverage {
            interval: share(interval),
            student: share(student),
            bootstrap: (resampled > 0).then(|| share(bootstrap)),
            wrongly_small: share(small),
        }
    }
}

/// The share of the simulated pairs of runs, both with the same true effect, in which the interval of 95 % of what sets
/// them apart ([`waggle_lab::analysis::RunDifference::percent`]) held 0.
pub(crate) fn of_two_runs(noise: &Noise, design: &Design, runs: usize, seed: u64) -> f64 {
    let mut random = Random::seeded(seed);
    let mut held = 0;
    for _ in 0..runs {
        let [one, other] = [(); 2].map(|()| paired::student(&design.run(noise, &mut random)));
        let apart = one.zip(other).and_then(|(one, other)| runs_apart(&one, &other));
        held += usize::from(apart.is_some_and(|apart| holds(&apart, 0.0)));
    }
    held as f64 / runs as f64
}

/// Cells over which an effect is pooled. Each has noise of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    /// How many.
    pub(crate) count: usize,
    /// How far their true effects are from each other: the standard deviation of a normal distribution, in
    /// that of the noise of a window.
    pub(crate) between: f64,
    /// How far blocks are from each other in all cells alike, as the starts of servers set them apart:
    /// likewise.
    pub(crate) common: f64,
    /// The chance that a cell lacks a block, as where a window is void, 0 to 1.
    pub(crate) lacking: f64,
}

impl Cells {
    /// The share of the simulated runs in which the pooled interval of 95 % ([`waggle_lab::analysis::PooledEffect`]) held
    /// the mean of the effects of these cells, of those that have one: of a few too many blocks are lacking.
    pub(crate) fn coverage(&self, noise: &Noise, design: &Design, runs: usize, seed: u64) -> f64 {
        let mut random = Random::seeded(seed);
        let (mut held, mut known) = (0, 0);
        for _ in 0..runs {
            let (truth, cells) = self.run(noise, design, &mut random);
            let cells: Vec<&[(u32, f64)]> = cells.iter().map(Vec::as_slice).collect();
            let interval = block_means(&cells).and_then(|blocks| paired::interval(&blocks));
            known += usize::from(interval.is_some());
            held += usize::from(interval.is_some_and(|interval| interval.holds(truth)));
        }
        held as f64 / known as f64
    }

    /// The mean of the effects of a run, and what is seen in each cell and block.
    fn run(
        &self,
        noise: &Noise,
        design: &Design,
        random: &mut Random,
    ) -> (f64, Vec<Vec<(u32, f64)>>) {
        let of_blocks: Vec<f64> = (0..design.pairs).map(|_| self.common * normal(random)).collect();
        let effects: Vec<f64> = (0..self.count).map(|_| self.between * normal(random)).collect();
        let cell = |effect: &f64| {
            let differences = design.run(noise, random).into_iter().zip(&of_blocks);
            let seen = differences.map(|(difference, block)| difference + block + effect);
            let seen: Vec<(u32, f64)> = (0..).zip(seen).collect();
            let mut is_there = || random.below(10_000) as f64 >= 1e4 * self.lacking;
            seen.into_iter().filter(|_| is_there()).collect()
        };
        let cells = effects.iter().map(cell).collect();
        (TRUTH + effects.iter().sum::<f64>() / self.count as f64, cells)
    }
}

/// Whether the truth lies in the interval of an estimate.
fn holds(estimate: &Estimate, truth: f64) -> bool {
    estimate.low <= truth && truth <= estimate.high
}

impl Design {
    /// The differences within the pairs of one run.
    fn run(&self, noise: &Noise, random: &mut Random) -> Vec<f64> {
        let series = noise.series(self.pairs * self.arms, random);
        let difference = |block: &[f64]| {
            let [baseline, arm] = self.places(random);
            TRUTH + block[arm] - block[baseline]
        };
        series.chunks_exact(self.arms).map(difference).collect()
    }

    fn places(&self, random: &mut Random) -> [usize; 2] {
        match self.places {
            Places::Fixed => [0, 1],
            Places::Random => {
                let baseline = random.below(self.arms);
                let arm = random.below(self.arms - 1);
                [baseline, if arm < baseline { arm } else { arm + 1 }]
            }
        }
    }
}

impl Noise {
    /// So many windows in a row.
    fn series(&self, count: usize, random: &mut Random) -> Vec<f64> {
        let mut source: Vec<f64> = if self.kept.is_empty() {
            (0..count).map(|_| normal(random)).collect()
        } else {
            pieces(&self.kept[random.below(self.kept.len())], count, random)
        };
        if self.has_heavy_tails {
            source.iter_mut().for_each(|value| *value /= chi_of_three(random));
        }
        let direction = if random.coin() { self.drift } else { -self.drift };
        let fresh = (1.0 - self.correlation * self.correlation).sqrt();
        let mut lasting = 0.0;
        let disturbed = source.iter().enumerate().map(|(at, value)| {
            lasting = self.correlation * lasting + fresh * value;
            lasting + direction * at as f64 / count as f64
        });
        disturbed.collect()
    }
}

/// What is left of windows that were kept when the level of each arm in each cell is taken away: a series
/// a cell, in the order of time, of standard deviation 1. Arms with fewer windows than an interval needs
/// are left out, and so is what does not vary.
pub(crate) fn residuals(windows: &[Window], metric: Metric) -> Vec<Vec<f64>> {
    let mut cells: Vec<(&Cell, Vec<Entry<'_>>)> = Vec::new();
    for window in windows {
        let value = window.counted().and_then(|measured| metric.of(measured));
        let Some(value) = value.filter(|value| *value > 0.0) else { continue };
        let entry = (window.number, window.arm.as_str(), value.ln());
        match cells.iter_mut().find(|(cell, _)| **cell == window.cell) {
            Some((_, entries)) => entries.push(entry),
            None => cells.push((&window.cell, vec![entry])),
        }
    }
    cells.into_iter().filter_map(|(_, entries)| without_levels(entries)).collect()
}

/// Number and arm of a window, and the logarithm of its value.
type Entry<'a> = (u32, &'a str, f64);

fn without_levels(mut entries: Vec<Entry<'_>>) -> Option<Vec<f64>> {
    entries.sort_by_key(|(number, ..)| *number);
    let mut arms: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (_, arm, log) in &entries {
        let (sum, count) = arms.entry(arm).or_default();
        *sum += log;
        *count += 1;
    }
    let left: Vec<f64> = entries
        .iter()
        .filter_map(|(_, arm, log)| {
            let (sum, count) = arms.get(arm).filter(|(_, count)| *count >= PAIRS_MIN)?;
            Some(log - sum / *count as f64)
        })
        .collect();
    let deviation =
        (left.iter().map(|value| value * value).sum::<f64>() / left.len() as f64).sqrt();
    (deviation > 0.0).then(|| left.iter().map(|value| value / deviation).collect())
}

/// So many values out of a series, in pieces of random places whose length is the root of that number:
/// within a piece, what lasts is kept (Künsch, "The jackknife and the bootstrap for general stationary
/// observations", Annals of Statistics 1989).
fn pieces(series: &[f64], count: usize, random: &mut Random) -> Vec<f64> {
    let length = ((count as f64).sqrt().ceil() as usize).clamp(1, series.len());
    let mut values = Vec::with_capacity(count + length);
    while values.len() < count {
        let begin = random.below(series.len() - length + 1);
        values.extend_from_slice(&series[begin..begin + length]);
    }
    values.truncate(count);
    values
}

/// Box and Muller, "A note on the generation of random normal deviates", Annals of Mathematical
/// Statistics 1958.
fn normal(random: &mut Random) -> f64 {
    let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    let (length, angle) = ((-2.0 * (1.0 - uniform()).ln()).sqrt(), TAU * uniform());
    length * angle.cos()
}

fn chi_of_three(random: &mut Random) -> f64 {
    ((0..3).map(|_| normal(random).powi(2)).sum::<f64>() / 3.0).sqrt()
}

#[test]
fn noise_is_as_it_was_asked_for() {
    let mut random = Random::seeded(2);
    let lasting = Noise { correlation: 0.8, ..Noise::default() }.series(5000, &mut random);
    assert!((lag_one(&lasting).unwrap() - 0.8).abs() < 0.05);
    let spread = lasting.iter().map(|value| value * value).sum::<f64>() / 5000.0;
    assert!((spread - 1.0).abs() < 0.2, "{spread}");

    let wild = |values: Vec<f64>| values.into_iter().filter(|value| value.abs() > 5.0).count();
    let heavy = Noise { has_heavy_tails: true, ..Noise::default() };
    assert_eq!(wild(Noise::default().series(5000, &mut random)), 0);
    assert!(wild(heavy.series(5000, &mut random)) > 20);

    let drifting = Noise { drift: 100.0, ..Noise::default() }.series(100, &mut random);
    assert!((drifting[99] - drifting[0]).abs() > 90.0);
}

#[test]
fn kept_noise_is_put_together_from_pieces_of_what_was_kept() {
    let kept: Vec<f64> = (0..50).map(f64::from).collect();
    let noise = Noise { kept: vec![kept], ..Noise::default() };
    let series = noise.series(100, &mut Random::seeded(3));
    assert_eq!(series.len(), 100);
    let next = series.windows(2).filter(|two| two[1] == two[0] + 1.0).count();
    // Ten pieces of ten values.
    assert!((90..100).contains(&next), "{next}");
}

#[test]
fn cells_and_blocks_are_as_far_from_each_other_as_was_asked_for() {
    let design = Design { pairs: 20, arms: 2, places: Places::Random };
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
    };
    let variances = |between, common| {
        let cells = Cells { count: 2000, between, common, lacking: 0.0 };
        let (truth, seen) = cells.run(&Noise::default(), &design, &mut Random::seeded(6));
        assert!((truth - TRUTH).abs() < 0.1, "{truth}");
        let mean = |cell: &Vec<(u32, f64)>| cell.iter().map(|(_, seen)| seen).sum::<f64>();
        let of_cells: Vec<f64> = seen.iter().map(|cell| mean(cell) / 20.0).collect();
        let seen: Vec<&[(u32, f64)]> = seen.iter().map(Vec::as_slice).collect();
        [variance(&of_cells), variance(&block_means(&seen).unwrap())]
    };
    // The mean of 20 differences of two windows has the variance 2 / 20, that of 2,000 has 2 / 2000.
    let [cells, blocks] = variances(0.0, 0.0);
    assert!((cells - 0.1).abs() < 0.02 && blocks < 0.003, "{cells} {blocks}");
    let [cells, blocks] = variances(1.0, 1.0);
    assert!((cells - 1.1).abs() < 0.2 && (0.4..2.0).contains(&blocks), "{cells} {blocks}");
}

#[test]
fn the_two_arms_of_a_block_are_in_different_places_and_in_every_place() {
    let design = Design { pairs: 8, arms: 3, places: Places::Random };
    let mut random = Random::seeded(5);
    let seen: std::collections::BTreeSet<[usize; 2]> =
        (0..200).map(|_| design.places(&mut random)).collect();
    let every = [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), every);
}
