//! What watching costs.

/// The price of watching over one interval. What was not measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Run time of the programs in the kernel per statement, nanoseconds, sends of other
    /// processes included.
    pub bpf_ns_per_statement: Option<f64>,
    /// Run time of the program at context switches of the whole host, in cores.
    pub switches_cores: Option<f64>,
    /// CPU of waggle itself, in cores.
    pub agent_cores: Option<f64>,
    /// Resident memory of waggle.
    pub rss_bytes: Option<u64>,
    /// Sends on the whole host per second. Each pays for the check whose send it is.
    pub host_sends_per_s: Option<f64>,
}
