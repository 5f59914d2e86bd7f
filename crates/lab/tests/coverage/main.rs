//! Whether the intervals of 95 % that a report prints hold the truth in 93 to 97 of 100 runs, and an effect is called smaller
//! than it is in about 5: on noise that lasts, is wild and drifts, and on noise resampled from windows that were
//! kept.
#![cfg(test)]

#[path = "../kept_runs/mod.rs"]
mod kept_runs;
mod simulated;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::sync::LazyLock;

use kept_runs::kept_runs;
use simulated::{Cells, Coverage, Design, Noise, Places, of_two_runs, residuals};
use waggle_lab::Metric;
use waggle_lab::run_dir::{RunDir, read_run, read_windows};
use waggle_lab::{Latency, Manifest, Measured, Window};

/// Whether `cargo xtask soak` runs the tests: it sets this variable.
static IS_SOAK: LazyLock<bool> = LazyLock::new(|| env::var_os("WAGGLE_SOAK_STATEMENTS").is_some());
/// Runs that are simulated for one share. The limits are the same.
static RUNS: LazyLock<usize> = LazyLock::new(|| if *IS_SOAK { 10_000 } else { 2_000 });
/// Blocks of the runs that are simulated.
const PAIRS: &[usize] = &[8, 20, 40];
/// Of those of the metrics whose noise is much like that of the processor time. The soak has all.
static FEW_PAIRS: LazyLock<&[usize]> = LazyLock::new(|| if *IS_SOAK { PAIRS } else { &[20] });
/// Scenarios of the largest suite and the second arm of the baseline.
const ARMS: usize = 7;
/// Arms of the runs whose cells are pooled: the two that are compared and one between them. Further ones
/// would only take time.
const POOLED_ARMS: usize = 3;
/// The fewest cells that are pooled, and as many as suite `rds` has with closed loads.
const POOLED_CELLS: [usize; 2] = [2, 33];
const SEED: u64 = 20;
/// Share of the windows of a cell that may be void.
const VOID: f64 = 0.05;

/// Simulates runs of so many blocks.
fn check(noise: &Noise, blocks: &[usize], what: &str) {
    for &pairs in blocks {
        let design = Design { pairs, arms: ARMS, places: Places::Random };
        let coverage = Coverage::of(noise, &design, *RUNS, SEED);
        println!("{what}, {pairs} pairs: {coverage:?}");
        for share in [Some(coverage.interval), coverage.bootstrap].into_iter().flatten() {
            assert!((0.93..=0.97).contains(&share), "{what}, {pairs} pairs: {coverage:?}");
        }
        // Where tails are heavy it may hold the truth more often.
        assert!(coverage.student >= 0.93, "{what}, {pairs} pairs: {coverage:?}");
        // As far from 5 of 100 as the others may be.
        assert!(coverage.wrongly_small <= 0.07, "{what}, {pairs} pairs: {coverage:?}");
    }
}

#[test]
fn on_normal_noise() {
    check(&Noise::default(), PAIRS, "normal");
}

#[test]
fn on_noise_with_heavy_tails() {
    check(&Noise { has_heavy_tails: true, ..Noise::default() }, PAIRS, "heavy tails");
}

#[test]
fn on_noise_that_lasts_and_drifts() {
    check(&Noise { correlation: 0.8, drift: 10.0, ..Noise::default() }, PAIRS, "lasting, drifting");
}

#[test]
fn on_noise_that_lasts_drifts_and_is_wild() {
    let noise = Noise { correlation: 0.8, drift: 10.0, has_heavy_tails: true, ..Noise::default() };
    check(&noise, PAIRS, "lasting, drifting, heavy tails");
}

/// Simulates the interval that is pooled over cells of 8, 20 and 40 blocks. Their true effects are so far
/// from each other, in errors that the effect of one cell has on normal noise, and blocks are so far from
/// each other, in the noise of a window; each cell lacks a block with such a chance.
fn check_pooled(noise: &Noise, distances: &[[f64; 3]], what: &str) {
    for &pairs in PAIRS {
        let design = Design { pairs, arms: POOLED_ARMS, places: Places::Random };
        // That of the mean of differences between two windows, each with noise of 1.
        let error = (2.0 / pairs as f64).sqrt();
        for count in POOLED_CELLS {
            for [between, common, lacking] in distances {
                let (between, common, lacking) = (between * error, *common, *lacking);
                let cells = Cells { count, between, common, lacking };
                let share = cells.coverage(noise, &design, *RUNS, SEED);
                let said = format!("{what}, {pairs} pairs, {cells:?}: {share}");
                println!("{said}");
                assert!((0.93..=0.97).contains(&share), "{said}");
            }
        }
    }
}

#[test]
fn of_a_pooled_effect_on_normal_noise() {
    let distances = [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, VOID]];
    check_pooled(&Noise::default(), &distances, "normal");
}

#[test]
fn of_a_pooled_effect_on_noise_with_heavy_tails() {
    let noise = Noise { has_heavy_tails: true, ..Noise::default() };
    check_pooled(&noise, &[[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], "heavy tails");
}

#[test]
fn of_a_pooled_effect_on_noise_that_lasts_drifts_and_is_wild() {
    let noise = Noise { correlation: 0.8, drift: 10.0, has_heavy_tails: true, ..Noise::default() };
    check_pooled(&noise, &[[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], "lasting, drifting, heavy tails");
}

#[test]
fn of_a_pooled_effect_on_the_noise_of_the_processor_time_of_every_run_that_was_kept() {
    for (what, noise) in kept_noise(Metric::CpuPerStatement) {
        check_pooled(&noise, &[[0.0, 0.0, 0.0]], &what);
    }
}

/// Simulates pairs of runs of 8, 20 and 40 blocks, as `waggle lab compare` compares them.
fn check_two_runs(noise: &Noise, what: &str) {
    for &pairs in PAIRS {
        let design = Design { pairs, arms: ARMS, places: Places::Random };
        let share = of_two_runs(noise, &design, *RUNS, SEED);
        println!("{what}, two runs of {pairs} pairs: {share}");
        assert!((0.93..=0.97).contains(&share), "{what}, {pairs} pairs: {share}");
    }
}

#[test]
fn of_what_sets_two_runs_apart() {
    check_two_runs(&Noise::default(), "normal");
    let noise = Noise { correlation: 0.8, drift: 10.0, ..Noise::default() };
    check_two_runs(&noise, "lasting, drifting");
    for (what, noise) in kept_noise(Metric::CpuPerStatement) {
        check_two_runs(&noise, &what);
    }
}

#[test]
fn no_interval_saves_a_fixed_order_from_a_drift() {
    let noise = Noise { correlation: 0.8, drift: 100.0, ..Noise::default() };
    let held = |places| {
        let design = Design { pairs: 40, arms: ARMS, places };
        Coverage::of(&noise, &design, 1000, SEED).interval
    };
    assert!(held(Places::Fixed) < 0.8, "{}", held(Places::Fixed));
    assert!(held(Places::Random) > 0.93, "{}", held(Places::Random));
}

#[test]
fn on_the_noise_of_the_processor_time_of_every_run_that_was_kept() {
    check_kept(Metric::CpuPerStatement, PAIRS);
}

#[test]
fn on_the_noise_of_the_throughput_of_every_run_that_was_kept() {
    check_kept(Metric::Qps, &FEW_PAIRS);
}

#[test]
fn on_the_noise_of_the_latency_of_every_run_that_was_kept() {
    check_kept(Metric::LatencyP95, &FEW_PAIRS);
}

/// Those that have a value in every window: not of memory, of which a server has one value in all cells, nor of
/// storage, to which a load that reads writes nothing.
#[test]
fn on_the_noise_of_every_other_metric_of_every_run_that_was_kept() {
    for metric in [
        Metric::LoadCpuPerStatement,
        Metric::LatencyMean,
        Metric::LatencyP50,
        Metric::LatencyP99,
        Metric::ServerShare,
        Metric::ContextSwitchesPerStatement,
    ] {
        for (what, as_kept) in kept_noise(metric) {
            check(&as_kept, &FEW_PAIRS, &what);
        }
    }
}

fn check_kept(metric: Metric, blocks: &[usize]) {
    for (what, as_kept) in kept_noise(metric) {
        check(&as_kept, blocks, &what);
        let worse = Noise { correlation: 0.6, drift: 10.0, has_heavy_tails: true, ..as_kept };
        check(&worse, blocks, &format!("{what}, lasting, drifting, heavy tails"));
    }
}

/// The noise of the runs of each suite that were kept, together, and of one that is written here; each with its
/// name.
fn kept_noise(metric: Metric) -> Vec<(String, Noise)> {
    let place = tempfile::TempDir::new().unwrap();
    let written = place.path().join("written");
    write_run(&written);
    let mut series: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    let mut add = |name: String, run: &Path| {
        let of_run = residuals(&read_windows(run).unwrap(), metric);
        assert!(!of_run.is_empty(), "{}: no noise of {metric:?}", run.display());
        series.entry(name).or_default().extend(of_run);
    };
    for run in kept_runs() {
        let manifest: Manifest = read_run(&run).unwrap();
        add(manifest.suite().unwrap().name, &run);
    }
    add("written".to_owned(), &written);
    let noise = |(name, kept)| (format!("{name} {metric:?}"), Noise { kept, ..Noise::default() });
    series.into_iter().map(noise).collect()
}

/// A run of three arms in thirty blocks, whose level swings slowly.
fn write_run(path: &Path) {
    let mut kept = RunDir::create(path, &"a test").unwrap();
    for number in 0..90_u32 {
        let swing = (f64::from(number) / 7.0).sin() + f64::from(number * 37 % 11) / 10.0;
        let cpu_ns = 100_000.0 * (1.0 + 0.02 * swing);
        let window = Window {
            number,
            block: number / 3,
            arm: ["off", "on", Window::AGAIN][number as usize % 3].to_owned(),
            measured: Some(measured(cpu_ns)),
            ..Window::default()
        };
        kept.append(&[window]).unwrap();
    }
}

fn measured(cpu_ns: f64) -> Measured {
    Measured {
        seconds: cpu_ns / 100_000.0,
        transactions: Some(5000),
        statements: 100_000,
        latency: Some(Latency {
            mean_ns: 10.0 * cpu_ns,
            p50_ns: 9.0 * cpu_ns,
            p95_ns: 30.0 * cpu_ns,
            p99_ns: 50.0 * cpu_ns,
            ..Latency::default()
        }),
        server_cpu_ns: Some((cpu_ns * 1e5) as u64),
        load_cpu_ns: Some((cpu_ns * 3e4) as u64),
        server_share: Some(cpu_ns / 150_000.0),
        host_share: Some(0.99),
        context_switches: Some(cpu_ns as u64),
        ..Measured::default()
    }
}
