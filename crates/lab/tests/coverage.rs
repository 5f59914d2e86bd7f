//! Whether the intervals of 95 % that a report prints hold the truth in 93 to 97 of 100 runs: on noise that
//! lasts, is wild and drifts, and on noise resampled from windows that were kept.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]
#![allow(clippy::print_stdout, reason = "the shares are part of the answer")]

mod kept_runs;

use std::path::Path;

use jiff::Timestamp;
use kept_runs::kept_runs;
use waggle_lab::analysis::Metric;
use waggle_lab::analysis::coverage::{Coverage, Design, Noise, Places, residuals};
use waggle_lab::kept::{Kept, read_windows};
use waggle_lab::{Cell, Latency, Load, Measured, Window};

const RUNS: usize = 10_000;
/// Scenarios of the largest suite and the second arm of the baseline.
const ARMS: usize = 7;
const SEED: u64 = 20;

/// Simulates runs of 8, 20 and 40 blocks.
fn check(noise: &Noise, what: &str) {
    for pairs in [8, 20, 40] {
        let design = Design { pairs, arms: ARMS, places: Places::Random };
        let coverage = Coverage::of(noise, &design, RUNS, SEED);
        println!("{what}, {pairs} pairs: {coverage:?}");
        for share in [Some(coverage.interval), coverage.bootstrap].into_iter().flatten() {
            assert!((0.93..=0.97).contains(&share), "{what}, {pairs} pairs: {coverage:?}");
        }
    }
}

#[test]
fn on_normal_noise() {
    check(&Noise::default(), "normal");
}

#[test]
fn on_noise_with_heavy_tails() {
    check(&Noise { has_heavy_tails: true, ..Noise::default() }, "heavy tails");
}

#[test]
fn on_noise_that_lasts_and_drifts() {
    check(&Noise { correlation: 0.8, drift: 10.0, ..Noise::default() }, "lasting, drifting");
}

#[test]
fn on_noise_that_lasts_drifts_and_is_wild() {
    let noise = Noise { correlation: 0.8, drift: 10.0, has_heavy_tails: true, ..Noise::default() };
    check(&noise, "lasting, drifting, heavy tails");
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
    check_kept(Metric::CpuPerStatement);
}

#[test]
fn on_the_noise_of_the_throughput_of_every_run_that_was_kept() {
    check_kept(Metric::Qps);
}

#[test]
fn on_the_noise_of_the_latency_of_every_run_that_was_kept() {
    check_kept(Metric::LatencyP95);
}

fn check_kept(metric: Metric) {
    let place = tempfile::TempDir::new().unwrap();
    let written = place.path().join("written");
    write_run(&written);
    for run in kept_runs().into_iter().chain([written]) {
        let kept = residuals(&read_windows(&run).unwrap(), metric);
        assert!(!kept.is_empty(), "{}: no noise of {metric:?}", run.display());
        let what = format!("{} {metric:?}", run.display());
        let as_kept = Noise { kept, ..Noise::default() };
        check(&as_kept, &what);
        let worse = Noise { correlation: 0.6, drift: 10.0, has_heavy_tails: true, ..as_kept };
        check(&worse, &format!("{what}, lasting, drifting, heavy tails"));
    }
}

/// A run of three arms in thirty blocks, whose level swings slowly.
fn write_run(path: &Path) {
    let mut kept = Kept::create(path, &"a test").unwrap();
    for number in 0..90_u32 {
        let swing = (f64::from(number) / 7.0).sin() + f64::from(number * 37 % 11) / 10.0;
        let cpu_ns = 100_000.0 * (1.0 + 0.02 * swing);
        let window = Window {
            number,
            block: number / 3,
            cell: Cell {
                workload: "read-only".to_owned(),
                threads: 8,
                load: Load::Closed,
                order: None,
            },
            arm: ["off", "on", Window::AGAIN][number as usize % 3].to_owned(),
            life: 0,
            session: 0,
            rate: None,
            begin: Timestamp::UNIX_EPOCH,
            measured: Some(measured(cpu_ns)),
            void: None,
        };
        kept.append(&window).unwrap();
    }
}

fn measured(cpu_ns: f64) -> Measured {
    Measured {
        seconds: cpu_ns / 100_000.0,
        transactions: Some(5000),
        statements: 100_000,
        retries: Some(0),
        latency: Some(Latency { p95_ns: 30.0 * cpu_ns, ..Latency::default() }),
        server_cpu_ns: Some((cpu_ns * 1e5) as u64),
        server_share: Some(0.9),
        host_share: Some(0.99),
        steal_share: Some(0.0),
        context_switches: Some(100_000),
        read_bytes: Some(0),
        written_bytes: Some(0),
        rss_bytes: Some(1 << 30),
        performance_schema_bytes: None,
    }
}
