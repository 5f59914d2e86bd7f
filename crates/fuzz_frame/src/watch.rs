//! Ends the process where an input hangs, or takes the memory of the host: nothing else ends a loop without an end.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

/// An input on which nothing has come back for so long is one that hangs.
const HANG: Duration = Duration::from_secs(120);
/// Pages of 4 KiB that the process may have: 2 GiB. Each check has a limit of its own; this one also holds for a check
/// that does not come back.
const PAGES_MAX: u64 = 1 << 19;
const TICK: Duration = Duration::from_millis(50);

/// What one thread is at.
pub(crate) struct Progress {
    number: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    pub(crate) fn at(number: u64) -> Progress {
        Progress { number: AtomicU64::new(number), is_over: AtomicBool::new(false) }
    }

    pub(crate) fn begin(&self, number: u64) {
        self.number.store(number, Relaxed);
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// The input that is being checked.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// Watches until every thread is over.
pub(crate) fn guard(threads: &[Arc<Progress>], name: impl Fn(u64) -> String) {
    let mut since: Vec<_> = threads.iter().map(|_| (u64::MAX, Instant::now())).collect();
    while threads.iter().any(|progress| !progress.is_over()) {
        thread::sleep(TICK);
        if resident_pages() > PAGES_MAX {
            let names: Vec<String> = threads.iter().map(|one| name(one.number())).collect();
            end(&format!("one of these takes too much memory: {}", names.join(", ")));
        }
        for (progress, (last, begin)) in threads.iter().zip(&mut since) {
            let number = progress.number();
            if number != *last || progress.is_over() {
                (*last, *begin) = (number, Instant::now());
            } else if begin.elapsed() > HANG {
                end(&format!("{} hangs", name(number)));
            }
        }
    }
}

fn end(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(1);
}

fn resident_pages() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}
