//! What is compared.

use crate::window::Measured;

/// A number of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Processor time of the server per statement, ns. What instruments consume, at any load; at
    /// saturation throughput follows it.
    CpuPerStatement,
    /// Processor time of sysbench per statement, ns. A host that is slow for a while makes it longer, and so
    /// does an arm at which sysbench has to wait longer, by a multiple of that: it cannot be divided out.
    LoadCpuPerStatement,
    /// Statements per second.
    Qps,
    /// Transactions per second.
    Tps,
    /// Mean time of a transaction, ns.
    LatencyMean,
    /// Median time of a transaction, ns.
    LatencyP50,
    /// 95th percentile of the time of a transaction, ns.
    LatencyP95,
    /// 99th percentile of the time of a transaction, ns.
    LatencyP99,
    /// Share of the processors that the server may use that it used, 0 to 1.
    ServerShare,
    /// Memory of the server process, bytes.
    Rss,
    /// Memory that Performance Schema says it uses, bytes; 0 where it is off.
    PerformanceSchemaMemory,
    /// Context switches of the host per statement.
    ContextSwitchesPerStatement,
    /// Bytes that the server had written to storage per statement.
    WrittenBytesPerStatement,
}

/// What more of a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Better.
    Gain,
    /// Worse.
    Cost,
    /// It depends on what else changes.
    Depends,
}

impl Metric {
    /// Every metric, the most telling first.
    pub const ALL: [Metric; 13] = [
        Metric::CpuPerStatement,
        Metric::LoadCpuPerStatement,
        Metric::Qps,
        Metric::Tps,
        Metric::LatencyMean,
        Metric::LatencyP50,
        Metric::LatencyP95,
        Metric::LatencyP99,
        Metric::ServerShare,
        Metric::Rss,
        Metric::PerformanceSchemaMemory,
        Metric::ContextSwitchesPerStatement,
        Metric::WrittenBytesPerStatement,
    ];

    /// What it is called in files.
    pub fn key(self) -> &'static str {
        match self {
            Metric::CpuPerStatement => "cpu_per_statement",
            Metric::LoadCpuPerStatement => "load_cpu_per_statement",
            Metric::Qps => "qps",
            Metric::Tps => "tps",
            Metric::LatencyMean => "latency_mean",
            Metric::LatencyP50 => "latency_p50",
            Metric::LatencyP95 => "latency_p95",
            Metric::LatencyP99 => "latency_p99",
            Metric::ServerShare => "server_share",
            Metric::Rss => "rss",
            Metric::PerformanceSchemaMemory => "performance_schema_memory",
            Metric::ContextSwitchesPerStatement => "context_switches_per_statement",
            Metric::WrittenBytesPerStatement => "written_bytes_per_statement",
        }
    }

    /// Its value in a window, in its unit; `None` where it was not measured, or nothing happened by which
    /// to divide.
    pub fn of(self, measured: &Measured) -> Option<f64> {
        let statements = (measured.statements > 0).then_some(measured.statements as f64);
        let has_some = measured.transactions.is_some_and(|count| count > 0);
        let latency = measured.latency.as_ref().filter(|_| has_some);
        let value = match self {
            Metric::CpuPerStatement => measured.cpu_ns_per_statement(),
            Metric::LoadCpuPerStatement => measured.load_cpu_ns_per_statement(),
            Metric::Qps => Some(measured.qps()),
            Metric::Tps => measured.tps(),
            Metric::LatencyMean => latency.map(|latency| latency.mean_ns),
            Metric::LatencyP50 => latency.map(|latency| latency.p50_ns),
            Metric::LatencyP95 => latency.map(|latency| latency.p95_ns),
            Metric::LatencyP99 => latency.map(|latency| latency.p99_ns),
            Metric::ServerShare => measured.server_share,
            Metric::Rss => measured.rss_bytes.map(|bytes| bytes as f64),
            Metric::PerformanceSchemaMemory => {
                measured.performance_schema_bytes.map(|bytes| bytes as f64)
            }
            Metric::ContextSwitchesPerStatement => {
                statements.zip(measured.context_switches).map(|(count, all)| all as f64 / count)
            }
            Metric::WrittenBytesPerStatement => {
                statements.zip(measured.written_bytes).map(|(count, bytes)| bytes as f64 / count)
            }
        };
        value.filter(|value| value.is_finite())
    }

    /// Whether it is a rate at which work is done.
    pub fn is_rate(self) -> bool {
        matches!(self, Metric::Qps | Metric::Tps)
    }

    /// What more of it is, under a load at a fixed rate (`is_open`) or a closed one. A closed load that gets less done
    /// may use less of the processors, and what sysbench uses and how often threads are switched follows from how
    /// long who waits.
    pub fn more(self, is_open: bool) -> More {
        match self {
            Metric::Qps | Metric::Tps => More::Gain,
            Metric::ServerShare if is_open => More::Cost,
            Metric::ServerShare
            | Metric::LoadCpuPerStatement
            | Metric::ContextSwitchesPerStatement => More::Depends,
            Metric::CpuPerStatement
            | Metric::LatencyMean
            | Metric::LatencyP50
            | Metric::LatencyP95
            | Metric::LatencyP99
            | Metric::Rss
            | Metric::PerformanceSchemaMemory
            | Metric::WrittenBytesPerStatement => More::Cost,
        }
    }

    /// Whether it belongs to one server start rather than to a window. Memory that a server has taken is
    /// not given back when an arm ends: an arm has what those before it took on the same server start.
    pub fn is_per_server_start(self) -> bool {
        matches!(self, Metric::Rss | Metric::PerformanceSchemaMemory)
    }
}
