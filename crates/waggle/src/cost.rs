//! What watching costs: measured, never assumed.

use std::fs;
use std::time::Duration;

use waggle_model::Cost;
use waggle_probes::tap::{RunTime, RunTimeStatistics};

/// The kernel's statistics cost time themselves, for every program of the host: they are on for
/// one interval and then off for so many.
const INTERVALS_BETWEEN: u32 = 60;

/// In a shorter interval, such as the last one, a share of a processor means nothing.
const SHORTEST: Duration = Duration::from_millis(50);

/// Measures the price of interval after interval.
pub(crate) struct Meter {
    statistics: Option<RunTimeStatistics>,
    intervals_left: u32,
    run_time_before: RunTime,
    cpu_before: Duration,
    last: Cost,
}

impl Meter {
    /// Begins to measure.
    pub(crate) fn start(run_time: RunTime) -> Meter {
        Meter {
            statistics: RunTimeStatistics::enable().ok(),
            intervals_left: 0,
            run_time_before: run_time,
            cpu_before: cpu_time(),
            last: Cost::default(),
        }
    }

    /// The price of the interval that ends now.
    pub(crate) fn read(&mut self, run_time: RunTime, statements: u64, interval: Duration) -> Cost {
        let seconds = interval.as_secs_f64();
        let cpu = cpu_time();
        let spent = cpu.saturating_sub(self.cpu_before);
        self.cpu_before = cpu;
        let is_long = interval >= SHORTEST;
        if self.statistics.is_some() && is_long {
            let runs = run_time.runs.saturating_sub(self.run_time_before.runs);
            let time = run_time.time.saturating_sub(self.run_time_before.time);
            self.last.host_sends_per_s = Some(runs as f64 / seconds);
            if statements > 0 {
                self.last.bpf_ns_per_statement = Some(time.as_nanos() as f64 / statements as f64);
            }
        }
        self.switch_statistics();
        self.run_time_before = run_time;
        self.last.agent_cores = is_long.then(|| spent.as_secs_f64() / seconds);
        self.last.rss_bytes = resident_bytes();
        self.last
    }

    fn switch_statistics(&mut self) {
        if self.statistics.is_some() && self.last.bpf_ns_per_statement.is_none() {
            // Nothing ran yet whose price could be told.
            return;
        }
        if self.intervals_left > 0 {
            self.intervals_left -= 1;
            if self.intervals_left == 0 {
                self.statistics = RunTimeStatistics::enable().ok();
            }
        } else {
            self.statistics = None;
            self.intervals_left = INTERVALS_BETWEEN;
        }
    }
}

fn cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// The second field of `/proc/self/statm`, in pages.
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
