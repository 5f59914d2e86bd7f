//! What every fuzzing test does alike: it numbers its inputs, shares them among threads, and ends at the first one
//! that panics, hangs, or takes too much memory.
//!
//! An input follows from its number and the seed alone. A test says how its inputs are made, and what holds for each.
//! `cargo xtask fuzz` runs many of them; the environment says how many: `WAGGLE_FUZZ_INPUTS`, `WAGGLE_FUZZ_SEED`,
//! `WAGGLE_FUZZ_THREADS`, `WAGGLE_FUZZ_FIRST` (the number of the first), `WAGGLE_FUZZ_RESULTS` (a file for the result).
//!
//! Memory is counted by the allocator of the test program, so that a program that is measured must not use this crate.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    reason = "it fails as a test does"
)]

mod counts;
mod mutate;
mod settings;
mod watch;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub use counts::Counts;
pub use mutate::{edge, mutate, put};
pub use waggle_stats::Random;

use settings::Settings;
use watch::{Progress, guard};

/// What a fuzzing test says of itself. Each thread has its own.
pub trait Fuzzer {
    /// The name for `cargo xtask fuzz`.
    const SUBJECT: &'static str;
    /// Inputs of the small form.
    const INPUTS: u64 = 20_000;
    /// Bytes that the check of an input may hold at a time.
    const MEMORY_MAX: u64;

    /// Makes the input of a number, and returns its length in bytes. All that is random comes from `random`.
    fn make(&mut self, number: u64, random: &mut Random) -> usize;

    /// Checks the input that was made last: panics where something does not hold, and counts what it met.
    fn check(&mut self, counts: &mut Counts);
}

/// Runs a fuzzing test, and returns how many inputs there were and what was counted, so that the test can say that its
/// inputs were of every kind. A run of a few chosen inputs counts little: then it returns `None`.
///
/// # Panics
/// An input failed. The message says how to run it again.
pub fn run<F: Fuzzer>(new: impl Fn() -> F + Send + Sync + 'static) -> Option<(u64, Counts)> {
    let settings = Settings::read(F::INPUTS);
    let begin = Instant::now();
    let new = Arc::new(new);
    let workers: Vec<_> = (0..settings.threads)
        .map(|lane| {
            let progress = Arc::new(Progress::at(settings.first + lane));
            let (shared, new) = (Arc::clone(&progress), Arc::clone(&new));
            let work = move || work(new(), &settings, lane, &shared);
            (thread::spawn(work), progress)
        })
        .collect();
    let watched: Vec<_> = workers.iter().map(|(_, progress)| Arc::clone(progress)).collect();
    let again = move |number| settings.again(F::SUBJECT, number);
    let guard = thread::spawn(move || guard(&watched, again));
    let mut all = Seen::default();
    for (worker, progress) in workers {
        let ended = worker.join();
        progress.end();
        let Ok(seen) = ended else {
            panic!("{} failed, see above", again(progress.number()));
        };
        all.add(&seen);
    }
    assert!(guard.join().is_ok());
    all.report(&settings, begin.elapsed());
    (settings.inputs >= F::INPUTS).then_some((settings.inputs, all.counts))
}

/// What one thread has seen.
#[derive(Default)]
struct Seen {
    bytes: u64,
    longest: usize,
    slowest: (Duration, u64),
    largest: (u64, u64),
    counts: Counts,
}

fn work<F: Fuzzer>(mut fuzzer: F, settings: &Settings, lane: u64, progress: &Progress) -> Seen {
    let mut seen = Seen::default();
    for number in settings.numbers(lane) {
        progress.begin(number);
        let length = fuzzer.make(number, &mut settings.random(number));
        let counts = &mut seen.counts;
        let mut check = |counts: &mut Counts| {
            let begin = Instant::now();
            let held = allocation_counter::measure(|| fuzzer.check(counts)).bytes_max;
            (begin.elapsed(), held)
        };
        let (mut time, held) = check(counts);
        assert!(held <= F::MEMORY_MAX, "{held} bytes held; {} may be", F::MEMORY_MAX);
        if time > seen.slowest.0 {
            // Once more: the processor may have been with somebody else.
            time = time.min(check(&mut Counts::default()).0);
        }
        seen.bytes += length as u64;
        seen.longest = seen.longest.max(length);
        seen.slowest = seen.slowest.max((time, number));
        seen.largest = seen.largest.max((held, number));
    }
    progress.end();
    seen
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.bytes += other.bytes;
        self.longest = self.longest.max(other.longest);
        self.slowest = self.slowest.max(other.slowest);
        self.largest = self.largest.max(other.largest);
        self.counts.add(&other.counts);
    }

    fn report(&self, settings: &Settings, time: Duration) {
        let mut result = serde_json::json!({
            "inputs": settings.inputs,
            "seed": settings.seed,
            "threads": settings.threads,
            "seconds": time.as_secs_f64().ceil(),
            "bytes": self.bytes,
            "longest_input_bytes": self.longest,
            "slowest_input_us": self.slowest.0.as_micros() as u64,
            "slowest_input": self.slowest.1,
            "most_memory_bytes": self.largest.0,
            "most_memory_input": self.largest.1,
        });
        for (name, count) in self.counts.all() {
            result[name] = count.into();
        }
        println!("{result}");
        settings.keep(&result);
    }
}

#[cfg(test)]
mod tests;
