//! The clocks and counters that a window is read with.

use std::time::Instant;

use anyhow::{Context, Result};
use waggle_bench_frame::thread_cpu;
use waggle_host::processors::{keep_on, online};
use waggle_host::{self as host, HostTime};
use waggle_testkit::{Client, Server};

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
    server: host::Meter,
}

impl Meter {
    /// Opens a session of its own. It asks by COM_STATISTICS, which the server does not count
    /// among its questions.
    pub(crate) fn of(server: &Server) -> Result<Meter> {
        let client = server.root()?;
        Ok(Meter { client, server: host::Meter::of(server.pid())? })
    }

    /// Reads everything. The counter comes first in every reading, so that the moment between it
    /// and the clocks cancels in a difference.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let questions = self.client.questions()?;
        let server_ns = self.server.cpu_ns()?;
        let at = Instant::now();
        let agent_ns = thread_cpu_ns();
        Ok(Reading {
            at,
            server_ns,
            agent_ns,
            questions,
            steal_ticks: HostTime::read()?.steal_ticks,
        })
    }
}

/// CPU of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    thread_cpu().as_nanos() as u64
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
        let cpus = online()?;
        if self == Placement::Free || cpus < 2 {
            return Ok(());
        }
        let chosen: Vec<usize> = (0..cpus).filter(|cpu| may_use(*cpu)).collect();
        keep_on(pid, &chosen)
            .with_context(|| format!("process {pid} cannot be bound to processors; run as root"))
    }
}
