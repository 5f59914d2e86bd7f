//! Whether 95 % intervals hold the truth in 95 % of the cases.

use waggle_stats::{
    Estimate, Random, Watch, mean_interval, ratio_interval, sign_flip_interval, trimmed_interval,
};

const TRUTH: f64 = 1.5;
const PAIRS: usize = 40;

/// A draw from the uniform distribution on 0 to 1.
fn uniform(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Twelve uniform draws less six: nearly normal.
fn noise(random: &mut Random) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// The share of `rounds` samples whose interval holds the truth.
fn coverage(
    rounds: u32,
    mut draw: impl FnMut(&mut Random) -> f64,
    mut interval: impl FnMut(&[f64], &mut Random) -> (f64, f64),
) -> f64 {
    let mut random = Random::seeded(20);
    let mut held = 0;
    for _ in 0..rounds {
        let sample: Vec<f64> = (0..PAIRS).map(|_| TRUTH + draw(&mut random)).collect();
        let (low, high) = interval(&sample, &mut random);
        held += u32::from(low <= TRUTH && TRUTH <= high);
    }
    f64::from(held) / f64::from(rounds)
}

fn ends(estimate: Option<Estimate>) -> (f64, f64) {
    estimate.map_or((f64::NAN, f64::NAN), |estimate| (estimate.low, estimate.high))
}

#[test]
fn students_interval_holds_the_truth_in_95_of_100() {
    let share = coverage(4000, noise, |sample, _| ends(mean_interval(sample, 0.95)));
    assert!((0.938..0.962).contains(&share), "{share}");
}

#[test]
fn the_trimmed_interval_holds_it_too_also_with_wild_values() {
    let wild = |random: &mut Random| {
        let scale = if random.below(20) == 0 { 30.0 } else { 1.0 };
        scale * noise(random)
    };
    for trim in [0.1, 0.2] {
        let share = coverage(4000, wild, |sample, _| ends(trimmed_interval(sample, trim, 0.95)));
        assert!((0.93..0.98).contains(&share), "{trim}: {share}");
    }
}

#[test]
fn the_interval_of_the_sign_flips_holds_it_in_95_of_100_also_with_wild_values() {
    let wild = |random: &mut Random| {
        let scale = if random.below(20) == 0 { 30.0 } else { 1.0 };
        scale * noise(random)
    };
    let share = coverage(4000, wild, |sample, random| {
        sign_flip_interval(sample, 0.95, 2000, random).unwrap_or((f64::NAN, f64::NAN))
    });
    assert!((0.938..0.962).contains(&share), "{share}");
}

#[test]
fn the_interval_of_a_ratio_holds_it_where_the_sizes_of_the_blocks_differ_a_lot() {
    // CPU and statements with and without an arm; few statements come with more CPU each.
    let draw = |random: &mut Random| {
        let half = |per_statement: f64, random: &mut Random| {
            let statements = if random.below(20) == 0 { 20.0 } else { 1000.0 };
            [statements * (per_statement + noise(random)), statements]
        };
        let ([a, b], [c, d]) = (half(50.0 + TRUTH, random), half(50.0, random));
        [a, b, c, d]
    };
    let mut random = Random::seeded(7);
    let mut held = 0;
    for _ in 0..4000 {
        let blocks: Vec<[f64; 4]> = (0..PAIRS).map(|_| draw(&mut random)).collect();
        let estimate = ratio_interval(&blocks, 0.95).unwrap();
        held += u32::from(estimate.low <= TRUTH && TRUTH <= estimate.high);
    }
    let share = f64::from(held) / 4000.0;
    assert!((0.938..0.962).contains(&share), "{share}");
}

/// The share of games of 1,800 windows in which the mean is said to be above 1.03, and the median
/// number of windows that this took.
fn noticed(mean: f64) -> (f64, usize) {
    const GAMES: usize = 400;
    let mut random = Random::seeded(21);
    let mut at: Vec<usize> = (0..GAMES)
        .filter_map(|_| {
            let mut watch = Watch::new(1.03, 3.0, 0.01)?;
            (0..1800).position(|_| watch.heed(mean + 0.06 * noise(&mut random)))
        })
        .collect();
    at.sort_unstable();
    (at.len() as f64 / GAMES as f64, at.get(at.len() / 2).copied().unwrap_or(usize::MAX))
}

#[test]
fn a_watch_of_half_an_hour_is_seldom_wrong_and_soon_right() {
    let (wrong, _) = noticed(1.03);
    assert!(wrong <= 0.02, "{wrong} of the games at the limit");
    let (right, windows) = noticed(1.10);
    assert!(right > 0.999 && windows < 60, "{right} of the games in {windows} windows");
}
