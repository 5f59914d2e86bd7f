//! The clocks and counters that a window is read with.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use waggle_calibration::processors::keep_on;
use waggle_testkit::{Account, Client, Server, Transport};

/// One reading of everything, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    /// CPU that the server has used, nanoseconds: `sum_exec_runtime` over its threads, what
    /// `/proc/PID/task/TID/schedstat` shows one by one, in a single call (clock_getcpuclockid(3)).
    /// Time in breakpoints and programs of the kernel runs in its threads, so it is in there.
    pub(crate) server_ns: u64,
    /// CPU of the thread that reads the rings, nanoseconds.
    pub(crate) agent_ns: u64,
    /// `Questions` of the server.
    pub(crate) questions: u64,
    /// Time that the hypervisor took from all processors, in ticks (proc_stat(5), `steal`).
    pub(crate) steal_ticks: u64,
}

/// Reads one server.
pub(crate) struct Meter {
    client: Client,
    clock: ClockId,
}

impl Meter {
    /// Opens a session of its own. It asks by COM_STATISTICS, which the server does not count
    /// among its questions.
    pub(crate) fn of(server: &Server) -> Result<Meter> {
        let client = Client::connect(server, Transport::Unix, Account::ROOT)?;
        let pid = Pid::from_raw(i32::try_from(server.pid())?);
        let clock = ClockId::pid_cpu_clock_id(pid).context("the CPU clock of the server")?;
        Ok(Meter { client, clock })
    }

    /// Reads everything. The counter comes first in every reading, so that the moment between it
    /// and the clocks cancels in a difference.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let questions = self.client.questions()?;
        let server = clock_gettime(self.clock).context("the CPU clock of the server")?;
        let at = Instant::now();
        Ok(Reading {
            at,
            server_ns: Duration::from(server).as_nanos() as u64,
            agent_ns: thread_cpu_ns(),
            questions,
            steal_ticks: steal_ticks()?,
        })
    }
}

/// CPU of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32).as_nanos() as u64
}

/// CPU of every thread of a process in nanoseconds.
pub(crate) fn process_cpu_ns(pid: u32) -> Result<u64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))?;
    Ok(Duration::from(clock_gettime(clock)?).as_nanos() as u64)
}

fn proc_stat() -> Result<String> {
    fs::read_to_string("/proc/stat").context("/proc/stat cannot be read; is /proc mounted?")
}

/// Processors that are online, also those that this process may not use.
pub(crate) fn processors() -> Result<usize> {
    let is_one = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    Ok(proc_stat()?.lines().filter(is_one).count())
}

fn steal_ticks() -> Result<u64> {
    let stat = proc_stat()?;
    let steal = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    steal.context("/proc/stat has no steal")
}

/// A line of `/proc/PID/status` in bytes, such as `VmRSS`.
pub(crate) fn memory_bytes(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{path} has no {name}"))? * 1024)
}

/// Where the threads of the run may work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Placement {
    /// The server alone on processor 0; the load and the reader on the others.
    Split,
    /// Wherever the kernel puts them.
    Free,
}

impl Placement {
    /// The word on the command line and in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Placement::Split => "split",
            Placement::Free => "free",
        }
    }

    /// Binds the server.
    pub(crate) fn bind_server(self, pid: u32) -> Result<()> {
        self.bind(pid, |cpu| cpu == 0)
    }

    /// Binds this process and all that it will start: the reader of the rings and the load.
    pub(crate) fn bind_ourselves(self) -> Result<()> {
        self.bind(std::process::id(), |cpu| cpu != 0)
    }

    fn bind(self, pid: u32, may_use: impl Fn(usize) -> bool) -> Result<()> {
        let cpus = processors()?;
        if self == Placement::Free || cpus < 2 {
            return Ok(());
        }
        let chosen: Vec<usize> = (0..cpus).filter(|cpu| may_use(*cpu)).collect();
        keep_on(pid, &chosen)
            .with_context(|| format!("process {pid} cannot be bound to processors; run as root"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_clock_and_memory_can_be_read() {
        let pid = std::process::id();
        assert!(process_cpu_ns(pid).unwrap() >= thread_cpu_ns() / 2);
        assert!(memory_bytes(pid, "VmRSS").unwrap() > 100_000);
    }
}
