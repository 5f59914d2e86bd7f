//! The tap and the sampler on one server, as the binary uses them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::ClockId;
use waggle_model::{Command, Identity, Losses, Origin, RunningStatement, Statement};
use waggle_probes::sessions::{Limits, Sampler, Sessions, TEXT_LIMIT};
use waggle_probes::tap::{Tap, TapOptions};
use waggle_probes::target::discover::servers;
use waggle_probes::target::recognise::{Builds, Recognised};
use waggle_testkit::Server;

/// A session that runs longer is a failure, so that the test cannot hang.
const REST_LIMIT: Duration = Duration::from_secs(20);

/// A captured statement that outlives its record.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: u64,
    pub(crate) command: Command,
    pub(crate) origin: Origin,
    pub(crate) text: Option<Vec<u8>>,
    pub(crate) length: u64,
    pub(crate) identity: Identity,
    pub(crate) rows_sent: Option<u64>,
    pub(crate) rows_examined: Option<u64>,
    pub(crate) rows_affected: Option<u64>,
    pub(crate) error: Option<u32>,
    pub(crate) status: Option<u32>,
    pub(crate) bytes_sent: Option<u64>,
    pub(crate) client_gone: bool,
    pub(crate) start_ns: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) latency_ns: Option<u64>,
    pub(crate) end_ns: u64,
}

impl Seen {
    fn of(statement: &Statement<'_>) -> Self {
        Self {
            connection: statement.connection_id.unwrap_or(0),
            command: statement.command.unwrap_or(Command::SLEEP),
            origin: statement.origin,
            text: statement.text.map(|text| text.bytes.to_vec()),
            length: statement.text.map_or(0, |text| text.length),
            identity: statement.identity.clone(),
            rows_sent: statement.rows_sent,
            rows_examined: statement.rows_examined,
            rows_affected: statement.rows_affected,
            error: statement.error,
            status: statement.server_status.map(|status| status.0),
            bytes_sent: statement.bytes_sent,
            client_gone: statement.client_gone,
            start_ns: statement.start_ns(),
            first_byte_ns: statement.first_byte_ns,
            latency_ns: statement.latency_ns,
            end_ns: statement.end_ns,
        }
    }
}

/// One server that is watched.
pub(crate) struct Capture {
    pub(crate) tap: Tap,
    sampler: Sampler,
    sessions: Sessions,
    pub(crate) recognised: Recognised,
    pub(crate) seen: Vec<Seen>,
}

impl Capture {
    /// Finds and recognises the server; nothing is attached yet.
    pub(crate) fn of(server: &Server) -> Self {
        let found = servers(Path::new("/proc"));
        let found = found.into_iter().find(|found| found.pid == server.pid()).unwrap();
        let recognised = Builds::default().recognise(&found).unwrap();
        Self {
            tap: Tap::new(TapOptions::default()).unwrap(),
            sampler: Sampler::load().unwrap(),
            sessions: Sessions::of(&recognised.layout).unwrap(),
            recognised,
            seen: Vec::new(),
        }
    }

    pub(crate) fn attach(&mut self) {
        self.tap.attach(&self.recognised.instance, &self.recognised.layout).unwrap();
    }

    /// Ends the watch, for as long as `meanwhile` takes.
    pub(crate) fn detached(&mut self, meanwhile: impl FnOnce()) {
        self.tap.detach(self.recognised.server.pid);
        meanwhile();
        self.attach();
    }

    pub(crate) fn losses(&self) -> Losses {
        self.tap.losses(self.recognised.server.pid)
    }

    /// What runs now; daemons of the server and readers of its binary log are no statements.
    pub(crate) fn running(&mut self) -> Vec<RunningStatement> {
        let (clocks, clock) = (self.tap.clocks(), self.recognised.layout.clock);
        let limits = Limits {
            text: TEXT_LIMIT,
            start_to_monotonic: &|start_us| clocks.start_ns(clock, start_us, monotonic_ns()),
        };
        let sample = self.sampler.sample(&self.recognised.instance, &mut self.sessions, limits);
        let mut running = sample.unwrap().running;
        running.retain(|statement| statement.command.is_statement());
        running
    }

    /// Takes what the ring holds, so that it does not fill up.
    pub(crate) fn drain(&mut self) {
        let seen = &mut self.seen;
        while self.tap.drain(10_000, |statement| seen.push(Seen::of(statement))) == 10_000 {}
    }

    /// Looks at the sessions as the binary does once a second: settles what was held back and what
    /// ended unseen. Gives what runs now.
    pub(crate) fn look(&mut self) -> Vec<RunningStatement> {
        let looked_ns = monotonic_ns();
        let running = self.running();
        self.drain();
        let (pid, seen) = (self.recognised.server.pid, &mut self.seen);
        self.tap.settle(pid, &running, looked_ns, |statement| seen.push(Seen::of(statement)));
        running
    }

    /// Everything that was captured since the last call, once every session is at rest: a session
    /// that runs nothing has sent its reply, and a reply that was sent is in the ring.
    pub(crate) fn at_rest(&mut self) -> Vec<Seen> {
        let limit = Instant::now() + REST_LIMIT;
        let mut quiet = 0;
        // A reply that was held back is released by a look that began after it was sent.
        while quiet < 2 {
            let running = self.look();
            quiet = if running.is_empty() { quiet + 1 } else { 0 };
            assert!(Instant::now() < limit, "still running: {running:?}");
            if quiet == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        std::mem::take(&mut self.seen)
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
