//! On what it was measured. No host name: results are public.

use std::fs;

use anyhow::Result;
use serde::Serialize;

use crate::meter::processors;

/// The machine and the time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The day, `YYYY-MM-DD`.
    pub(crate) date: String,
    /// The time of the start, to the second, in UTC.
    pub(crate) time: String,
    pub(crate) kernel: String,
    pub(crate) processors: usize,
    pub(crate) model: String,
    /// Whether it runs in a virtual machine, as far as the processor tells.
    pub(crate) virtual_machine: bool,
    pub(crate) memory_gib: f64,
    /// How many tasks were runnable before anything was started (`/proc/loadavg`, one minute).
    pub(crate) load_before: String,
    pub(crate) waggle: &'static str,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn look() -> Result<Machine> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let of = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name));
            line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
        };
        let now = jiff::Timestamp::now();
        let meminfo = read("/proc/meminfo");
        let kib = meminfo.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
        Ok(Machine {
            date: now.strftime("%Y-%m-%d").to_string(),
            time: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processors: processors()?,
            model: of("model name").unwrap_or_else(|| "unknown".to_owned()),
            virtual_machine: of("flags").is_some_and(|flags| flags.contains("hypervisor")),
            memory_gib: kib.unwrap_or(0.0) / f64::from(1 << 20),
            load_before: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            waggle: env!("CARGO_PKG_VERSION"),
        })
    }
}
