//! Everything of this crate on mutated statements and random bytes: no panic, no hang, texts that
//! are bounded.
//!
//! An input follows from its number and the seed alone. `cargo xtask fuzz sql` runs many of them;
//! the environment says how many: `WAGGLE_FUZZ_INPUTS`, `WAGGLE_FUZZ_SEED`, `WAGGLE_FUZZ_THREADS`,
//! `WAGGLE_FUZZ_FIRST` (the number of the first), `WAGGLE_FUZZ_RESULTS` (a file for the result).
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the result is for whoever runs it")]

mod check;
mod input;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use check::Checker;
use input::Inputs;

/// An input on which nothing has come back for so long is one that hangs.
const HANG: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);

/// What one thread is at.
struct Progress {
    /// The number of the input that is being checked.
    number: AtomicU64,
    done: AtomicBool,
}

/// What one thread has seen.
#[derive(Default)]
struct Seen {
    bytes: u64,
    longest: usize,
    slowest: Duration,
    slowest_number: u64,
    complete: u64,
    tables: u64,
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value}: no whole number")),
        Err(_) => default,
    }
}

#[test]
fn no_input_makes_anything_panic_hang_or_grow() {
    let count = setting("WAGGLE_FUZZ_INPUTS", 100_000);
    let seed = setting("WAGGLE_FUZZ_SEED", 1);
    let threads = setting("WAGGLE_FUZZ_THREADS", 2).max(1);
    let first = setting("WAGGLE_FUZZ_FIRST", 0);
    let begin = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|lane| {
            let number = AtomicU64::new(first + lane);
            let progress = Arc::new(Progress { number, done: AtomicBool::new(false) });
            let shared = Arc::clone(&progress);
            let numbers = (first + lane..first + count).step_by(threads as usize);
            (thread::spawn(move || work(seed, numbers, &shared)), progress)
        })
        .collect();
    let watched: Vec<_> = workers.iter().map(|(_, progress)| Arc::clone(progress)).collect();
    let guard = thread::spawn(move || guard(seed, &watched));
    let mut all = Seen::default();
    for (worker, progress) in workers {
        let ended = worker.join();
        progress.done.store(true, Relaxed);
        let Ok(seen) = ended else {
            let number = progress.number.load(Relaxed);
            panic!("input {number} of seed {seed} failed, see above; {}", again(seed, number));
        };
        all.add(&seen);
    }
    guard.join().unwrap();
    all.report(count, seed, threads, begin.elapsed());
    // The inputs are of both kinds: whole statements and what none of the parts understands.
    assert!(all.complete * 10 > count && all.complete < 4 * count, "{} complete", all.complete);
    assert!(all.tables * 20 > count, "{} tables", all.tables);
}

fn work(seed: u64, numbers: impl Iterator<Item = u64>, progress: &Progress) -> Seen {
    let mut inputs = Inputs::new(seed);
    let mut checker = Checker::new();
    let mut seen = Seen::default();
    for number in numbers {
        progress.number.store(number, Relaxed);
        let sql = inputs.input(number);
        let mut check = || {
            let begin = Instant::now();
            let found = checker.check(sql, number);
            (found, begin.elapsed())
        };
        let ((complete, tables), mut time) = check();
        if time > seen.slowest {
            // Once more: the processor may have been with somebody else.
            time = time.min(check().1);
        }
        seen.bytes += sql.len() as u64;
        seen.longest = seen.longest.max(sql.len());
        seen.complete += complete;
        seen.tables += tables;
        if time > seen.slowest {
            (seen.slowest, seen.slowest_number) = (time, number);
        }
    }
    progress.done.store(true, Relaxed);
    seen
}

/// Ends the process where a thread stays at one input: nothing else ends a loop without an end.
fn guard(seed: u64, threads: &[Arc<Progress>]) {
    let mut since: Vec<_> = threads.iter().map(|_| (u64::MAX, Instant::now())).collect();
    while threads.iter().any(|progress| !progress.done.load(Relaxed)) {
        thread::sleep(TICK);
        for (progress, (last, begin)) in threads.iter().zip(&mut since) {
            let number = progress.number.load(Relaxed);
            if number != *last || progress.done.load(Relaxed) {
                (*last, *begin) = (number, Instant::now());
            } else if begin.elapsed() > HANG {
                eprintln!("input {number} of seed {seed} hangs; {}", again(seed, number));
                std::process::exit(1);
            }
        }
    }
}

fn again(seed: u64, number: u64) -> String {
    format!("again: cargo xtask fuzz sql --inputs 1 --threads 1 --seed {seed} --first {number}")
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.bytes += other.bytes;
        self.longest = self.longest.max(other.longest);
        self.complete += other.complete;
        self.tables += other.tables;
        if other.slowest > self.slowest {
            (self.slowest, self.slowest_number) = (other.slowest, other.slowest_number);
        }
    }

    fn report(&self, inputs: u64, seed: u64, threads: u64, time: Duration) {
        let result = serde_json::json!({
            "inputs": inputs,
            "seed": seed,
            "threads": threads,
            "seconds": time.as_secs(),
            "bytes": self.bytes,
            "longest_input_bytes": self.longest,
            "complete_digests": self.complete,
            "tables": self.tables,
            "slowest_input_us": self.slowest.as_micros() as u64,
            "slowest_input": self.slowest_number,
        });
        println!("{result}");
        if let Ok(path) = std::env::var("WAGGLE_FUZZ_RESULTS") {
            std::fs::write(&path, format!("{result:#}\n")).unwrap();
        }
    }
}
