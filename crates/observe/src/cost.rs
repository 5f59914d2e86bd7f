//! The cost of watching: measured, never assumed.

use std::time::Duration;

use waggle_host::{Process, own_cpu};
use waggle_model::Cost;
use waggle_mysql::connection::children_cost;
use waggle_probes::carrier::{RunTime, RunTimeStatistics};
use waggle_probes::servers::reader_cost;

/// The kernel's statistics themselves cost time in every program of the host. They are on for one
/// interval, then off for this many.
const INTERVALS_BETWEEN: u32 = 60;

/// In a shorter interval, such as the last one, shares of processors and of time mean nothing.
pub(crate) const SHORTEST: Duration = Duration::from_millis(50);

/// Run time of the programs in the kernel so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTime {
    /// Runs at sends of the whole host, and the time of all programs that statements meet.
    pub statements: RunTime,
    /// Of the program at context switches of the whole host, where there is one.
    pub switches: Option<Duration>,
}

/// Measures the price of interval after interval.
pub struct Meter {
    statistics: Option<RunTimeStatistics>,
    intervals_left: u32,
    before: KernelTime,
    cpu_before: Duration,
    last: Cost,
}

impl Meter {
    /// Begins to measure.
    pub fn start(kernel_time: KernelTime) -> Meter {
        Meter {
            statistics: RunTimeStatistics::enable().ok(),
            intervals_left: 0,
            before: kernel_time,
            cpu_before: spent_by_all().0,
            last: Cost::default(),
        }
    }

    /// The price of the interval that ends now.
    pub fn read(&mut self, kernel_time: KernelTime, statements: u64, interval: Duration) -> Cost {
        let seconds = interval.as_secs_f64();
        let (cpu, rss_of_children) = spent_by_all();
        let spent = cpu.saturating_sub(self.cpu_before);
        self.cpu_before = cpu;
        let is_long = interval >= SHORTEST;
        if self.statistics.is_some() && is_long {
            let KernelTime { statements: now, switches } = kernel_time;
            let runs = now.runs.saturating_sub(self.before.statements.runs);
            let time = now.time.saturating_sub(self.before.statements.time);
            let before = self.before.switches.unwrap_or_default();
            let switches = switches.map(|now| now.saturating_sub(before));
            self.last.switches_cores = switches.map(|time| time.as_secs_f64() / seconds);
            self.last.host_sends_per_s = Some(runs as f64 / seconds);
            if statements > 0 {
                self.last.bpf_ns_per_statement = Some(time.as_nanos() as f64 / statements as f64);
            }
        }
        self.switch_statistics();
        self.before = kernel_time;
        self.last.agent_cores = is_long.then(|| spent.as_secs_f64() / seconds);
        let rss = Process::own().rss_bytes();
        self.last.rss_bytes = rss.value().map(|own| own + rss_of_children);
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

/// Processor time of waggle with its children so far, and bytes of memory of the children now.
fn spent_by_all() -> (Duration, u64) {
    let (reading, of_reader) = reader_cost();
    let (asking, of_connections) = children_cost();
    (own_cpu() + reading + asking, of_reader + of_connections)
}
