//! The processor time of a process, and that of the whole host.

use std::fmt::Display;
use std::time::Duration;
use std::{fs, io};

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

/// What was used cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The process has ended.
    #[error("the CPU time of process {pid} cannot be read: {error}")]
    Process {
        /// Which.
        pid: u32,
        /// What the system says.
        error: Errno,
    },
    /// Which processors it may use cannot be told, or what they and the others did.
    #[error("what the CPUs of process {pid} do cannot be read: {error}")]
    Processors {
        /// Which.
        pid: u32,
        /// What the system says.
        error: io::Error,
    },
}

impl Meter {
    /// Finds the clock of a process (clock_getcpuclockid(3)): the time that all of its threads ran.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(pid: u32) -> Result<Meter, MeterError> {
        let failed = |error| MeterError::Process { pid, error };
        let raw = i32::try_from(pid).map_err(|_| failed(Errno::ESRCH))?;
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(raw)).map_err(failed)?;
        Ok(Meter { pid, clock })
    }

    /// Processor time so far, ns.
    ///
    /// # Errors
    /// The process has ended.
    pub fn cpu_ns(&self) -> Result<u64, MeterError> {
        let time: TimeSpec = clock_gettime(self.clock)
            .map_err(|error| MeterError::Process { pid: self.pid, error })?;
        Ok(Duration::from(time).as_nanos() as u64)
    }

    /// What all processors did so far, those that the process may not use among them.
    ///
    /// # Errors
    /// The system does not say.
    pub fn host(&self) -> Result<HostTime, MeterError> {
        HostTime::read().map_err(|error| MeterError::Processors { pid: self.pid, error })
    }
}

/// Processor time of all threads of this process so far.
pub fn own_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// What processors did since the host was started (proc_stat(5)). Times are in ticks, of which there
/// are [`HostTime::TICKS_PER_S`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTime {
    /// How many there are: those that are switched on.
    pub processors: u64,
    /// Time of all of them together: in use, idle, or taken away.
    pub total_ticks: u64,
    /// Of that, neither used nor taken away; waiting for storage is idle.
    pub idle_ticks: u64,
    /// Of that, taken by the hypervisor; 0 where the kernel does not tell.
    pub steal_ticks: u64,
    /// Context switches of the whole host.
    pub context_switches: u64,
}

/// What all processors did.
const STAT: &str = "/proc/stat";

impl HostTime {
    /// `USER_HZ`, 100 on every architecture of ours.
    pub const TICKS_PER_S: f64 = 100.0;

    /// Reads `/proc/stat` of all processors.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn read() -> io::Result<HostTime> {
        HostTime::read_where(|_| true)
    }

    /// The same of some processors only.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read, or has none of them.
    pub fn read_of(processors: &[usize]) -> io::Result<HostTime> {
        HostTime::read_where(|processor| processors.contains(&processor))
    }

    fn read_where(is_meant: impl Fn(usize) -> bool) -> io::Result<HostTime> {
        ProcessorTimes::read()?.sum(is_meant)
    }

    fn parse(stat: &str, is_meant: impl Fn(usize) -> bool) -> HostTime {
        let mut time = HostTime::default();
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
            if name == "ctxt" {
                time.context_switches = number(0);
            }
            // The line `cpu`, without a number, is the sum of all.
            let processor = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
            if processor.is_some_and(&is_meant) {
                // user nice system idle iowait irq softirq steal; what follows is part of user.
                time.processors += 1;
                time.total_ticks += (0..8).map(number).sum::<u64>();
                time.idle_ticks += number(3) + number(4);
                time.steal_ticks += number(7);
            }
        }
        time
    }
}

/// What each processor did so far, read once for several questions: on a large host that takes a while.
#[derive(Debug)]
pub struct ProcessorTimes(String);

impl ProcessorTimes {
    /// Reads `/proc/stat`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read() -> io::Result<ProcessorTimes> {
        fs::read_to_string(STAT).map(ProcessorTimes).map_err(|error| failed(&error))
    }

    /// What some processors did.
    ///
    /// # Errors
    /// There is none of them.
    pub fn of(&self, processors: &[usize]) -> io::Result<HostTime> {
        self.sum(|processor| processors.contains(&processor))
    }

    fn sum(&self, is_meant: impl Fn(usize) -> bool) -> io::Result<HostTime> {
        let time = HostTime::parse(&self.0, is_meant);
        match time.total_ticks {
            0 => Err(failed(&"it has none of these processors")),
            _ => Ok(time),
        }
    }
}

fn failed(why: &dyn Display) -> io::Error {
    io::Error::other(format!("{STAT}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_processor_time_grows_and_that_of_no_process_is_refused() {
        let meter = Meter::of(std::process::id()).unwrap();
        let (before, own) = (meter.cpu_ns().unwrap(), own_cpu());
        let mut sum = 0_u64;
        while meter.cpu_ns().unwrap() < before + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(own_cpu() > own && Meter::of(u32::MAX).is_err());
    }

    #[test]
    fn the_time_of_the_host_is_read_whole_and_guests_are_not_counted_twice() {
        // Two processors of proc_stat(5), with the interrupts cut.
        let stat = "cpu  100 20 30 4000 50 6 7 80 9 1\ncpu0 50 10 15 2000 25 3 4 40 5 1\n\
                    cpu1 50 10 15 2000 25 3 3 40 4 0\nintr 5 1 2\nctxt 1990473\nbtime 1062191376\n";
        let wanted = HostTime {
            processors: 2,
            total_ticks: 4293,
            idle_ticks: 4050,
            steal_ticks: 80,
            context_switches: 1_990_473,
        };
        assert_eq!(HostTime::parse(stat, |_| true), wanted);
        let second = HostTime::parse(stat, |processor| processor == 1);
        assert_eq!((second.processors, second.total_ticks, second.idle_ticks), (1, 2146, 2025));
        let now = HostTime::read().unwrap();
        assert!(now.processors > 0 && now.idle_ticks < now.total_ticks, "{now:?}");
        assert!(now.context_switches > 0);
        assert!(HostTime::read_of(&[0]).unwrap().total_ticks > 0);
        assert!(HostTime::read_of(&[]).is_err());
    }
}
