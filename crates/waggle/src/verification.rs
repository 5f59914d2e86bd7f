//! `waggle verify`: capture between two readings of the server's own counters, and compare.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use waggle_account::{Digests, Grouping};
use waggle_model::{Statement, StatementKey};
use waggle_mysql::counters::{Counters, Histograms};
use waggle_mysql::verify::{CapturedKey, Edge, verify};
use waggle_mysql::{Captured, Connection, Report};
use waggle_probes::tap::{Event, Hook, Ready};
use waggle_probes::urgent::Urgent;

use crate::capture::{Capture, monotonic_ns};

/// The server counts a statement shortly after its reply: so long before and after a reading it is
/// not known on which side of it a statement fell.
const EDGE: Duration = Duration::from_millis(20);
/// How often the rings are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
/// How often the sessions are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long our own statement may take to come back through the tap.
const MARKER_WAIT: Duration = Duration::from_secs(3);

/// A verification that is under way.
pub(crate) struct Verification {
    capture: Capture,
    connection: Connection,
    pid: u32,
    book: Book,
}

/// What is captured, sorted by the time of the two readings.
struct Book {
    pid: u32,
    own_connection: u64,
    digests: Digests,
    captured: Captured,
    /// What ended last in each session, and is not known to be done with yet.
    unfinished: HashMap<u64, Unfinished>,
    /// Whether it is told when a session is ready for its next request. A thread of a pool reads a
    /// request when it has come, not when the one before is done.
    tells_ready: bool,
    /// Begin and end of the first reading, then of the second, as far as they are known.
    edges: [Option<(u64, Option<u64>)>; 2],
}

impl Verification {
    /// Finds out which of the watched servers the connection leads to, by a statement of its own.
    pub(crate) fn begin(mut capture: Capture, mut connection: Connection) -> anyhow::Result<Self> {
        let identity = connection.server_identity();
        let own_connection = identity.connection_id;
        let thread_per_connection = identity.thread_per_connection;
        let marker = format!("waggle_{}_{}", std::process::id(), monotonic_ns());
        connection.say(&marker)?;
        let begin = Instant::now();
        let mut found = None;
        while found.is_none() && begin.elapsed() < MARKER_WAIT {
            thread::sleep(DRAIN_EVERY);
            capture.drain(|statement| {
                let is_ours = statement.connection_id == Some(own_connection)
                    && statement.text.is_some_and(|text| holds(text.bytes, marker.as_bytes()));
                if is_ours {
                    found = Some(statement.pid);
                }
            });
        }
        let pid = found.ok_or_else(|| {
            anyhow!(
                "the option file leads to a server that is not watched here: a statement of ours \
                 did not come through the tap; name the socket of the server in the option file, \
                 or choose it with --pid"
            )
        })?;
        capture.keep_only(pid);
        let watched = &capture.watched()[&pid];
        let book = Book {
            pid,
            own_connection,
            digests: Digests::of(&watched.server, Grouping::Digest),
            captured: Captured::default(),
            unfinished: HashMap::new(),
            tells_ready: thread_per_connection && watched.hook == Hook::Send,
            edges: [None, None],
        };
        Ok(Verification { capture, connection, pid, book })
    }

    /// The server that is verified.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads the counters, captures for `duration` or until `stop` is set, reads them again and
    /// compares. `ready` is called when the first reading is complete.
    pub(crate) fn run(
        mut self,
        duration: Option<Duration>,
        stop: &AtomicBool,
        ready: impl FnOnce(),
    ) -> anyhow::Result<Report> {
        let losses_before = self.capture.losses(self.pid);
        let earlier = self.read_counters(0)?;
        ready();
        let begin = Instant::now();
        let mut looked = begin;
        let urgent = Urgent::begin().ok();
        while !stop.load(Ordering::Relaxed) && duration.is_none_or(|limit| begin.elapsed() < limit)
        {
            thread::sleep(DRAIN_EVERY);
            self.drain();
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                self.look();
            }
        }
        drop(urgent);
        let later = self.read_counters(1)?;
        thread::sleep(EDGE);
        self.drain();
        self.look();
        self.book.captured.lost = self.capture.losses(self.pid).since(&losses_before);
        let difference = later.since(&earlier).context("the two readings cannot be compared")?;
        Ok(verify(&self.book.captured, &difference))
    }

    /// Reads the counters while the capture goes on.
    fn read_counters(&mut self, which: usize) -> anyhow::Result<Counters> {
        self.drain();
        self.book.edges[which] = Some((monotonic_ns(), None));
        let Verification { capture, connection, book, .. } = self;
        let counters = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                // What was answered just now is counted in a moment.
                thread::sleep(EDGE);
                let counters = Counters::read(connection, Histograms::Read);
                thread::sleep(EDGE);
                counters
            });
            let _urgent = Urgent::begin().ok();
            while !reading.is_finished() {
                thread::sleep(DRAIN_EVERY);
                capture.drain_events(|event| book.note(event));
            }
            reading.join()
        });
        let counters =
            counters.map_err(|_| anyhow!("the reading of the counters was aborted"))??;
        self.drain();
        let begin_ns = self.book.edges[which].map_or(0, |(begin, _)| begin);
        self.book.edges[which] = Some((begin_ns, Some(monotonic_ns())));
        Ok(counters)
    }

    fn drain(&mut self) {
        let Verification { capture, book, .. } = self;
        while capture.drain_events(|event| book.note(event)) {}
    }

    fn look(&mut self) {
        let looked_ns = monotonic_ns();
        let running = self.capture.sample();
        self.drain();
        if let Some(Ok(running)) = running.get(&self.pid) {
            let Verification { capture, book, pid, .. } = self;
            capture.settle(*pid, running, looked_ns, |statement| book.count(statement));
        }
    }
}

/// A statement whose reply was sent while the server still works on it.
struct Unfinished {
    statement: StatementKey,
    digest: CapturedKey,
    start_ns: u64,
}

impl Book {
    fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Ended(statement) => self.count(statement),
            Event::Ready(ready) if self.tells_ready => self.finish(ready),
            Event::Ready(_) => {}
        }
    }

    /// The server is done with a statement: the time that Performance Schema calls its duration.
    fn finish(&mut self, ready: Ready) {
        let unfinished = self.unfinished.remove(&ready.statement.thd);
        let Some(known) = unfinished.filter(|known| known.statement == ready.statement) else {
            return;
        };
        self.captured.finish(&known.digest, ready.at_ns.saturating_sub(known.start_ns));
    }

    fn count(&mut self, statement: &Statement<'_>) {
        if statement.pid != self.pid || statement.connection_id == Some(self.own_connection) {
            return;
        }
        let Some(edge) = self.edge(statement.end_ns) else { return };
        let text = statement.text.map_or("", |text| self.digests.text_of(text, statement.settings));
        let digest = self.captured.record(statement, text, edge);
        let (Some(digest), Some(start_ns)) = (digest, statement.start_ns()) else { return };
        if self.tells_ready {
            let unfinished = Unfinished { statement: statement.key(), digest, start_ns };
            self.unfinished.insert(statement.thd, unfinished);
        }
    }

    /// Where a statement that ended at this time stands to the readings; `None` outside them.
    fn edge(&self, end_ns: u64) -> Option<Edge> {
        let (begin, end) = self.edges[0]?;
        if end_ns < begin {
            return None;
        }
        if end.is_none_or(|end| end_ns <= end) {
            return Some(Edge::AtEdge);
        }
        match self.edges[1] {
            None => Some(Edge::Inside),
            Some((begin, _)) if end_ns < begin => Some(Edge::Inside),
            Some((_, end)) if end.is_none_or(|end| end_ns <= end) => Some(Edge::AtEdge),
            Some(_) => None,
        }
    }
}

fn holds(text: &[u8], marker: &[u8]) -> bool {
    text.windows(marker.len()).any(|window| window == marker)
}
