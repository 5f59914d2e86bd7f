//! The processor time of a server.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Reads one process.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    pid: u32,
    clock: ClockId,
}

/// The process cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the processor time of process {pid} cannot be read: {error}")]
pub struct MeterError {
    pid: u32,
    error: Errno,
}

impl Meter {
    /// Finds the clock of a process (clock_getcpuclockid(3)): the time that all of its threads ran.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(pid: u32) -> Result<Meter, MeterError> {
        let raw = i32::try_from(pid).map_err(|_| MeterError { pid, error: Errno::ESRCH })?;
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(raw));
        Ok(Meter { pid, clock: clock.map_err(|error| MeterError { pid, error })? })
    }

    /// Processor time so far, ns.
    ///
    /// # Errors
    /// The process has ended.
    pub fn cpu_ns(&self) -> Result<u64, MeterError> {
        let time: TimeSpec =
            clock_gettime(self.clock).map_err(|error| MeterError { pid: self.pid, error })?;
        Ok(Duration::from(time).as_nanos() as u64)
    }
}

/// Time that the hypervisor took from all processors so far, in ticks (proc_stat(5), `steal`); 0 where
/// the kernel does not tell.
pub(crate) fn steal_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    line.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_processor_time_grows_and_that_of_no_process_is_refused() {
        let meter = Meter::of(std::process::id()).unwrap();
        let before = meter.cpu_ns().unwrap();
        let mut sum = 0_u64;
        while meter.cpu_ns().unwrap() < before + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(Meter::of(u32::MAX).is_err());
    }
}
