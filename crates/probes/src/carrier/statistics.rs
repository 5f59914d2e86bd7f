//! The kernel's run-time statistics of BPF programs.

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;
use std::{fs, io};

use libbpf_rs::libbpf_sys;

/// The kernel's statistics of programs (`run_cnt` and `run_time_ns` of `bpf_prog_info`). They only
/// grow while `BPF_ENABLE_STATS` is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    /// How often a program ran, for any process of the host.
    pub runs: u64,
    /// How long they ran in all.
    pub time: Duration,
}

/// Keeps `BPF_ENABLE_STATS` on as long as it lives (kernel 5.8 and later). It concerns every
/// program of the host and costs each run two readings of a clock, so it is meant for moments.
#[derive(Debug)]
pub struct RunTimeStatistics {
    /// `None` if the statistics were on already, by `kernel.bpf_stats_enabled`.
    _on: Option<OwnedFd>,
}

impl RunTimeStatistics {
    /// Turns the statistics on, unless somebody else did.
    ///
    /// # Errors
    ///
    /// Without `CAP_SYS_ADMIN`, or before kernel 5.8.
    pub fn enable() -> io::Result<Self> {
        let sysctl = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").unwrap_or_default();
        if sysctl.trim() == "1" {
            return Ok(Self { _on: None });
        }
        // SAFETY: the call takes no pointers; it returns a new descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the descriptor was just made for us and nobody else has it.
        Ok(Self { _on: Some(unsafe { OwnedFd::from_raw_fd(fd) }) })
    }
}
