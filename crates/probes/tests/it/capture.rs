//! The tap and the sampler on one server, as the binary uses them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use waggle_host::monotonic_ns;
use waggle_model::{Command, Identity, Losses, Origin, Parts, RunningStatement, Statement, Usage};
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_probes::servers::layout::Layout;
use waggle_probes::servers::recognise::Recognised;
use waggle_probes::sessions::{Limits, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT};
use waggle_probes::tap::ServerClock;
use waggle_testkit::{Server, wait_showing};

use crate::recognised;

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
    pub(crate) parts: Option<Parts>,
    pub(crate) usage: Option<Usage>,
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
            parts: statement.parts,
            usage: statement.usage,
        }
    }
}

/// One server that is watched.
pub(crate) struct Capture {
    pub(crate) tap: Tap,
    sampler: Sampler,
    /// None where the layout does not tell which sessions run something.
    sessions: Option<Sessions>,
    pub(crate) recognised: Recognised,
    pub(crate) seen: Vec<Seen>,
}

impl Capture {
    /// Finds and recognises the server; nothing is attached yet.
    pub(crate) fn of(server: &Server) -> Self {
        let recognised = recognised(server);
        Self {
            tap: Tap::new(TapOptions::default()).unwrap(),
            sampler: Sampler::load().unwrap(),
            sessions: Sessions::of(&recognised.layout).ok(),
            recognised,
            seen: Vec::new(),
        }
    }

    /// Goes on with another layout of the server, from the next attach on.
    pub(crate) fn show(&mut self, layout: Layout) {
        self.sessions = Sessions::of(&layout).ok();
        self.recognised.layout = Arc::new(layout);
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
        let sessions = self.sessions.as_mut().expect("the layout shows no sessions");
        let Recognised { layout, instance, .. } = &self.recognised;
        let (clocks, clock) = (self.tap.clocks(), ServerClock::of(layout, instance));
        let limits = Limits {
            text: TEXT_LIMIT,
            texts: TEXTS_LIMIT,
            start_to_monotonic: &|start_us| clocks.start_ns(clock, start_us, monotonic_ns()),
        };
        let sample = self.sampler.sample(&self.recognised.instance, sessions, limits);
        let mut running = sample.unwrap().running;
        running.retain(|statement| statement.command.is_statement());
        running
    }

    /// Takes what the ring holds, so that it does not fill up.
    pub(crate) fn drain(&mut self) {
        let seen = &mut self.seen;
        self.tap.drain(Amount::UpToNow, |statement| seen.push(Seen::of(statement)));
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
        // A reply that was held back is released by a look that began after it was sent.
        wait_showing("two looks at rest", || {
            let running = [self.look(), self.look()].concat();
            if running.is_empty() { Ok(()) } else { Err(format!("{running:?}")) }
        });
        std::mem::take(&mut self.seen)
    }
}

impl Capture {
    /// The same as [`Capture::at_rest`] where the sessions may not be known: as many as are `wanted`, and
    /// those that come in the time after them in which more would have come.
    pub(crate) fn settled(&mut self, wanted: usize, is_one: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let until = Instant::now() + Duration::from_secs(5);
        let all = |seen: &[Seen]| seen.iter().filter(|seen| is_one(seen)).count() >= wanted;
        while !all(&self.seen) && Instant::now() < until {
            self.look_if_known();
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(10));
        self.look_if_known();
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter().filter(|seen| is_one(seen)).collect()
    }

    fn look_if_known(&mut self) {
        match self.sessions {
            Some(_) => drop(self.look()),
            None => self.drain(),
        }
    }
}
