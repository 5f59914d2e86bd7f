//! `waggle watch`: interval after interval, what every server ran.

mod behind;
mod csv;
mod json;
mod output;
mod server_digests;
mod slow_log;
mod table;
pub(crate) mod terminal;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use waggle_account::{Books, Grouping};
use waggle_model::{
    Cost, DigestTotals, Interval, Losses, RunningStatement, Server, SessionSettings, Statement,
};
use waggle_probes::urgent::Urgent;

use crate::capture::{Capture, News, monotonic_ns};
use crate::cost::Meter;
pub(crate) use behind::Behind;
pub(crate) use csv::Csv;
pub(crate) use output::{Finished, Lines, Output, Table};
pub(crate) use server_digests::ServerDigests;
pub(crate) use slow_log::{SlowLog, SlowLogOptions};

/// How often the rings are emptied while statements come. A ring of 2 MiB holds so long at 100 MB/s
/// of records of one processor.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// The same while none come and none runs, since waking up is most of what watching an idle server
/// costs. A flood that follows silence without any rise may bring 40 MB/s to a ring of 2 MiB.
const DRAIN_EVERY_IDLE: Duration = Duration::from_millis(50);
/// So long nothing must have come.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// What is printed and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Digests per interval.
    pub(crate) limit: usize,
    /// Literals become `?` in statements, too.
    pub(crate) redact: bool,
    /// Whether nested statements are captured.
    pub(crate) nested: bool,
    /// Whether the sessions could be read.
    pub(crate) sessions_known: bool,
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchOptions {
    /// Length of an interval.
    pub(crate) interval: Duration,
    /// When to stop; `None` runs until a signal comes.
    pub(crate) duration: Option<Duration>,
    /// By which text statements are put together.
    pub(crate) grouping: Grouping,
}

/// What was seen in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Statements captured.
    pub(crate) captured: u64,
    /// What was lost.
    pub(crate) losses: Losses,
    /// Statements of waggle's own, which are not among those captured.
    pub(crate) own: u64,
}

/// A watch that is under way.
pub(crate) struct Watch {
    capture: Capture,
    books: BTreeMap<u32, Books>,
    slow_log: Option<SlowLog>,
    server_digests: Option<ServerDigests>,
    meter: Meter,
    /// What was lost of each server up to its last interval.
    losses_before: BTreeMap<u32, Losses>,
    summary: Summary,
    /// When the last statement came.
    heard_at: Instant,
    /// Whether statements ran at the last look: where they wait for one lock, all end at once.
    is_busy: bool,
    options: WatchOptions,
}

impl Watch {
    /// Begins to watch with a capture that may already be attached.
    pub(crate) fn begin(
        capture: Capture,
        options: WatchOptions,
        slow_log: Option<SlowLog>,
        server_digests: Option<ServerDigests>,
    ) -> Watch {
        let meter = Meter::start(capture.run_time());
        let mut watch = Watch {
            capture,
            books: BTreeMap::new(),
            slow_log,
            server_digests,
            meter,
            losses_before: BTreeMap::new(),
            summary: Summary::default(),
            heard_at: Instant::now(),
            is_busy: false,
            options,
        };
        watch.open_books();
        watch
    }

    /// Runs until the time is over or `stop` is set, and hands every interval to `out`.
    pub(crate) fn run(
        mut self,
        stop: &Arc<AtomicBool>,
        out: &mut dyn Output,
    ) -> io::Result<Summary> {
        let begin = Instant::now();
        let mut closed_at = begin;
        let mut urgent = Urgent::begin().ok();
        loop {
            let is_over = self.options.duration.is_some_and(|limit| begin.elapsed() >= limit);
            let is_last = is_over || stop.load(Ordering::Relaxed);
            if is_last || closed_at.elapsed() >= self.options.interval {
                // What follows may take a while, and must take nothing from the servers.
                urgent.take();
                let length = closed_at.elapsed();
                closed_at = Instant::now();
                self.close_interval(length, out)?;
                if !is_last {
                    self.look(out)?;
                }
                urgent = Urgent::begin().ok();
            }
            if is_last {
                return Ok(self.summary);
            }
            let drained_at = Instant::now();
            if self.drain() {
                // More than a turn is waiting: an urgent thread takes half of a processor at most.
                thread::sleep(drained_at.elapsed());
            } else {
                let left = self.options.interval.saturating_sub(closed_at.elapsed());
                thread::sleep(self.pause().min(left));
            }
        }
    }

    fn drain(&mut self) -> bool {
        let (capture, mut counting) = self.counting();
        let mut is_silent = true;
        let is_more = capture.drain(|statement| {
            is_silent = false;
            counting.count(statement);
        });
        if !is_silent {
            self.heard_at = Instant::now();
        }
        is_more
    }

    /// How long to leave the rings alone.
    fn pause(&self) -> Duration {
        let is_idle = !self.is_busy && self.heard_at.elapsed() >= IDLE_AFTER;
        if is_idle { DRAIN_EVERY_IDLE } else { DRAIN_EVERY }
    }

    fn open_books(&mut self) {
        let (now, grouping) = (monotonic_ns(), self.options.grouping);
        for (pid, watched) in self.capture.watched() {
            self.books.entry(*pid).or_insert_with(|| Books::open(&watched.server, grouping, now));
            self.server_digests.iter_mut().for_each(|digests| digests.begin(&watched.server));
        }
    }

    /// The capture, and what is done with every statement that comes from it.
    fn counting(&mut self) -> (&mut Capture, Counting<'_>) {
        let Watch { capture, books, slow_log, server_digests, .. } = self;
        (capture, Counting { books, slow_log, server_digests })
    }

    fn look(&mut self, out: &mut dyn Output) -> io::Result<()> {
        let (capture, mut counting) = self.counting();
        let news = capture.look(&mut |statement| counting.count(statement));
        for news in news {
            match news {
                News::Attached(pid) => out.tell(&format!("pid {pid}: watched from now on"))?,
                News::Refused(pid, why) => {
                    out.complain(&format!("pid {pid}: not watched: {why}"));
                }
                News::Gone(server) => {
                    let news = format!("pid {}: the server has ended", server.pid);
                    self.close_last(server, out)?;
                    out.tell(&news)?;
                }
            }
        }
        self.open_books();
        for news in self.server_digests.iter().flat_map(ServerDigests::news) {
            out.complain(&news);
        }
        Ok(())
    }

    /// The interval in which a server ended.
    fn close_last(&mut self, server: Server, out: &mut dyn Output) -> io::Result<()> {
        let Some(mut books) = self.books.remove(&server.pid) else { return Ok(()) };
        books.begin_closing(monotonic_ns());
        let interval = self.close(server.pid, &mut books, Vec::new());
        self.server_digests.iter_mut().for_each(|digests| digests.end(server.pid));
        let cost = Cost::default();
        out.take(vec![Finished { server, interval, sessions_known: false, cost, ended: true }])
    }

    fn close_interval(&mut self, length: Duration, out: &mut dyn Output) -> io::Result<()> {
        let looked_ns = monotonic_ns();
        let mut running = self.capture.sample();
        if let Some(digests) = &self.server_digests {
            for (pid, running) in &mut running {
                running.iter_mut().for_each(|all| all.retain(|one| !digests.runs(*pid, one)));
            }
        }
        let mut known = running.values().flatten().flatten();
        self.is_busy = known.any(|running| running.command.is_statement());
        self.books.values_mut().for_each(|books| books.begin_closing(looked_ns));
        while self.drain() {}
        let mut intervals = Vec::new();
        for (pid, running) in &running {
            if let Ok(running) = running {
                let (capture, mut counting) = self.counting();
                capture.settle(*pid, running, looked_ns, |statement| counting.count(statement));
            }
        }
        let mut all = std::mem::take(&mut self.books);
        for (pid, books) in &mut all {
            let known = running.get(pid).and_then(|running| running.as_ref().ok());
            let interval = self.close(*pid, books, known.cloned().unwrap_or_default());
            intervals.push((*pid, interval, known.is_some()));
        }
        self.books = all;
        let statements = intervals.iter().map(|(_, interval, _)| interval.statements).sum();
        let cost = self.meter.read(self.capture.run_time(), statements, length);
        let watched = self.capture.watched();
        let finished = intervals.into_iter().filter_map(|(pid, interval, sessions_known)| {
            let server = watched.get(&pid)?.server.clone();
            Some(Finished { server, interval, sessions_known, cost, ended: false })
        });
        out.take(finished.collect())?;
        self.slow_log.as_mut().map_or(Ok(()), SlowLog::flush)
    }

    /// Closes the books of one server with what runs at the end.
    fn close(&mut self, pid: u32, books: &mut Books, running: Vec<RunningStatement>) -> Interval {
        let losses = self.losses_since(pid);
        let mut interval = books.close(running, losses);
        self.server_digests.iter().for_each(|digests| digests.write(pid, &mut interval));
        self.summary.captured += interval.statements;
        self.summary.own += interval.own_statements;
        interval
    }

    /// What was lost of a server since this was asked last.
    fn losses_since(&mut self, pid: u32) -> Losses {
        let now = self.capture.losses(pid);
        let before = self.losses_before.insert(pid, now).unwrap_or_default();
        let losses = now.since(&before);
        self.summary.losses = self.summary.losses.plus(&losses);
        losses
    }
}

/// What is done with a statement that ended.
struct Counting<'a> {
    books: &'a mut BTreeMap<u32, Books>,
    slow_log: &'a mut Option<SlowLog>,
    server_digests: &'a mut Option<ServerDigests>,
}

impl Counting<'_> {
    fn count(&mut self, statement: &Statement<'_>) {
        let Some(books) = self.books.get_mut(&statement.pid) else { return };
        if self.server_digests.as_ref().is_some_and(|digests| digests.sent(statement)) {
            books.leave_out(statement);
            return;
        }
        if let (Some(key), Some(digests)) = (books.count(statement), &self.server_digests) {
            digests.meet(key, statement);
        }
        self.slow_log.iter_mut().for_each(|log| log.add(statement));
    }
}

/// The text of a statement as it may be shown: see [`waggle_sql::printable`].
fn printable(text: &[u8], settings: Option<SessionSettings>, redact: bool) -> String {
    let settings = settings.and_then(|settings| {
        waggle_sql::SessionSettings::of_session(settings.sql_mode, settings.charset.as_str())
    });
    waggle_sql::printable(text, settings, redact)
}

/// The digests with the most load first, at most `limit`, and the sum of the rest.
fn ranked(interval: &Interval, limit: usize) -> (Vec<(u64, &DigestTotals)>, DigestTotals) {
    let mut digests: Vec<_> =
        interval.digests.iter().map(|(key, totals)| (key.text, totals)).collect();
    digests
        .sort_by_key(|(hash, totals)| (std::cmp::Reverse((totals.active_ns, totals.calls)), *hash));
    let mut other = interval.other.clone();
    for (_, totals) in digests.iter().skip(limit) {
        other.merge(totals);
    }
    digests.truncate(limit);
    (digests, other)
}
