//! What is measured: a window of one arm in one cell.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::load::Count;
use crate::meter::Usage;

/// Under what an arm is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// Sessions of the load.
    pub threads: u32,
    /// How the load is offered.
    pub load: Load,
    /// The order of the suite in which scenarios follow each other; absent where it has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// How a load is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Every session sends its next transaction when the last one has ended.
    #[default]
    Closed,
    /// Transactions arrive at a fixed mean rate, whatever the server does.
    Open {
        /// Share of the processors that was in use with the baseline at this rate, 0 to 1.
        share: f64,
    },
}

impl Load {
    /// Whether transactions arrive at a fixed rate.
    pub fn is_open(self) -> bool {
        self.share().is_some()
    }

    /// The share of the processors of a load at a fixed rate.
    pub fn share(self) -> Option<f64> {
        match self {
            Load::Open { share } => Some(share),
            Load::Closed => None,
        }
    }
}

/// One window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its place in the schedule, from 0.
    pub number: u32,
    /// Which pass over all arms.
    pub block: u32,
    /// Under what.
    pub cell: Cell,
    /// What was set: the name of a scenario, [`Window::AGAIN`] for the second arm of the baseline, or
    /// [`Window::ALONE`].
    pub arm: String,
    /// Which start of a server it was, counted over the whole run.
    #[serde(alias = "life")]
    pub server_start: u32,
    /// In which part of the run it was made, from 0: an interruption ends a part.
    pub part: u32,
    /// Transactions per second that arrived on average; absent in a closed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// What the hypervisor took of turns that do not count, as shares of the processors, 0 to 1: each was
    /// made anew because that was too much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stolen: Vec<f64>,
    /// Whether the throughput was not steady yet at the end of the longest warm-up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsteady: bool,
    /// When its first turn began.
    pub begin: Timestamp,
    /// When its last turn ended; when it began, where nothing could be measured. The arms of a block take
    /// turns, so that most of the time between was of others.
    pub end: Timestamp,
    /// What was measured; absent where nothing could be.
    pub measured: Option<Measured>,
    /// Why it does not count; absent where it does.
    pub void: Option<String>,
}

impl Window {
    /// The arm that is set as the baseline is: what differs between the two is noise (A/A).
    pub const AGAIN: &str = "baseline again";
    /// The arm that repeats one of those that share a server, alone on a server whose sessions log in under its settings.
    /// The two differ by noise, by the login, and by what other arms leave on a shared server.
    pub const ALONE: &str = "alone on a server";

    /// Whether an arm is there beside the scenarios, and sets what one of them does.
    pub fn is_control(arm: &str) -> bool {
        [Window::AGAIN, Window::ALONE].contains(&arm)
    }

    /// What was measured, where it counts.
    pub fn counted(&self) -> Option<&Measured> {
        self.measured.as_ref().filter(|_| self.void.is_none())
    }
}

/// The mean of what windows that count have measured; `None` where none of them has it.
pub(crate) fn mean<'a>(
    windows: impl IntoIterator<Item = &'a Window>,
    of: impl Fn(&Measured) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = windows.into_iter().filter_map(|one| of(one.counted()?)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What was measured in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its length, s.
    pub seconds: f64,
    /// Transactions that ended; absent where the load is not ours.
    pub transactions: Option<u64>,
    /// Statements that the server counted (`Questions`), without our own.
    pub statements: u64,
    /// Transactions that began anew, after a deadlock or a lock that was waited for too long; absent where
    /// the load is not ours.
    pub retries: Option<u64>,
    /// How long transactions took; absent where none ended, or the load is not ours.
    pub latency: Option<Latency>,
    /// Processor time of the server process, ns. This and all that is of the server's host is absent where
    /// the server is not on ours.
    pub server_cpu_ns: Option<u64>,
    /// Processor time of sysbench, ns; absent where the load is not ours.
    #[serde(default)]
    pub load_cpu_ns: Option<u64>,
    /// Share of the processors that the server may use that it used, 0 to 1.
    pub server_share: Option<f64>,
    /// Share of them that was in use, by whomever, 0 to 1.
    pub host_share: Option<f64>,
    /// Share of these and of those that waggle itself may use that the hypervisor took, 0 to 1.
    pub steal_share: Option<f64>,
    /// Context switches of the whole host.
    pub context_switches: Option<u64>,
    /// Bytes that the server had read from storage; absent where we may not look.
    pub read_bytes: Option<u64>,
    /// Bytes that the server had written to storage; absent where we may not look.
    pub written_bytes: Option<u64>,
    /// Memory of the server process in use (RSS) at the end, bytes; absent where it cannot be read.
    pub rss_bytes: Option<u64>,
    /// Memory that Performance Schema itself says it uses, bytes: 0 where it is off; absent where it
    /// cannot be read.
    pub performance_schema_bytes: Option<u64>,
    /// For how long the next arrival had been waiting for a session at the beginning and at the end, s; absent in a
    /// closed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<[f64; 2]>,
}

impl Measured {
    /// What the load did in this many seconds, where it is ours, and what server and host used meanwhile,
    /// where they can be looked at. The processor time of the load and the memory of Performance Schema are read
    /// apart from it.
    pub fn of(
        seconds: f64,
        statements: u64,
        count: Option<&Count>,
        used: Option<&Usage>,
    ) -> Measured {
        let storage = used.and_then(|used| used.storage.value().copied());
        Measured {
            seconds,
            transactions: count.map(|count| count.transactions),
            statements,
            retries: count.map(|count| count.retries),
            latency: count.and_then(Count::latency),
            server_cpu_ns: used.map(|used| used.server_cpu_ns),
            server_share: used.map(|used| used.server_share),
            // Our own time is known more finely than the ticks that it is taken from.
            host_share: used.map(|used| used.host_share.max(0.0)),
            steal_share: used.map(|used| used.steal_share),
            context_switches: used.map(|used| used.context_switches),
            read_bytes: storage.map(|storage| storage.read_bytes),
            written_bytes: storage.map(|storage| storage.written_bytes),
            rss_bytes: used.and_then(|used| used.rss_bytes.value().copied()),
            ..Measured::default()
        }
    }

    /// Statements per second.
    pub fn qps(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    /// Transactions per second; `None` where they were not counted.
    pub fn tps(&self) -> Option<f64> {
        Some(self.transactions? as f64 / self.seconds)
    }

    /// Processor time of the server per statement, ns; `None` without statements, or where it was not
    /// measured.
    pub fn cpu_ns_per_statement(&self) -> Option<f64> {
        let cpu_ns = self.server_cpu_ns? as f64;
        (self.statements > 0).then(|| cpu_ns / self.statements as f64)
    }

    /// Processor time of sysbench per statement, ns; `None` without statements, or where the load is not
    /// ours.
    pub fn load_cpu_ns_per_statement(&self) -> Option<f64> {
        let cpu_ns = self.load_cpu_ns? as f64;
        (self.statements > 0).then(|| cpu_ns / self.statements as f64)
    }
}

/// How long transactions took, from a histogram whose steps are below 0.4 %. In an open load the time
/// counts from the instant at which the transaction was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: f64,
    /// 95th percentile, ns.
    pub p95_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: f64,
    /// Longest, ns.
    pub max_ns: f64,
    /// The shape: upper edge of a bucket in ns and its count, in steps of 6 %; empty buckets are left out.
    pub shape: Vec<(u64, u64)>,
}
