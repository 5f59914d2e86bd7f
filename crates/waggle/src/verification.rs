//! `waggle verify`: capture between two readings of the server's own counters, and compare.

mod book;
mod moments;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use waggle_account::Grouping;
use waggle_model::Reading;
use waggle_mysql::counters::{Counters, Histograms};
use waggle_mysql::verify::verify;
use waggle_mysql::{Connection, Report};
use waggle_observe::{Capture, Observer, ObserverOptions, Sinks};
use waggle_probes::servers::layout::{Field, Layout};
use waggle_probes::tap::Hook;

use book::{Book, COUNTED_WITHIN};
use moments::Moments;

use crate::own_server;

/// How often the sessions are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A verification that is under way.
pub(crate) struct Verification {
    observer: Observer,
    connection: Connection,
    pid: u32,
    book: Book,
}

impl Verification {
    /// Finds out which of the watched servers the connection leads to, by a statement of its own.
    pub(crate) fn begin(mut capture: Capture, mut connection: Connection) -> anyhow::Result<Self> {
        let identity = connection.server_identity();
        let thread_per_connection = identity.thread_per_connection;
        let (pid, own_session) = own_server::found(&mut capture, &mut connection)?;
        capture.keep_only(pid);
        let watched = &capture.watched()[&pid];
        let mut server = watched.server.clone();
        if let length @ Reading::Value(_) = connection.digest_length()? {
            server.max_digest_length = length;
        }
        let tells_ready = thread_per_connection && watched.hook == Hook::Send;
        let book = Book::new(&server, own_session, no_digests(&watched.layout), tells_ready);
        let options = ObserverOptions {
            interval: LOOK_EVERY,
            grouping: Grouping::Digest,
            looks_for_servers: false,
        };
        Ok(Verification { observer: Observer::begin(capture, options), connection, pid, book })
    }

    /// The server that is verified.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads the counters, captures until it is over, reads them again and compares. `ready` is called when the
    /// first reading is complete.
    pub(crate) fn run(
        mut self,
        is_over: &mut dyn FnMut() -> bool,
        ready: impl FnOnce(),
    ) -> anyhow::Result<Report> {
        let losses_before = self.observer.losses(self.pid);
        let readings = self.book.readings();
        // What was answered before the capture began is counted before the first reading.
        self.observe_a_while();
        let earlier = self.read_counters(&readings[0])?;
        ready();
        observe(&mut self.observer, &mut self.book, is_over);
        let later = self.read_counters(&readings[1])?;
        // What was answered during the second reading is done with soon.
        self.observe_a_while();
        let lost = self.observer.losses(self.pid).since(&losses_before);
        let captured = self.book.close(lost);
        let difference = later.since(&earlier).context("the two readings cannot be compared")?;
        Ok(verify(&captured, &difference))
    }

    fn observe_a_while(&mut self) {
        let begin = Instant::now();
        let is_over = &mut || begin.elapsed() >= COUNTED_WITHIN;
        observe(&mut self.observer, &mut self.book, is_over);
    }

    /// Reads the counters while the capture goes on.
    fn read_counters(&mut self, moments: &Moments) -> anyhow::Result<Counters> {
        let Verification { observer, connection, book, .. } = self;
        let begins = |part| moments.note(part);
        let read = || Counters::read_telling(connection, Histograms::Read, begins);
        let counters = thread::scope(|scope| {
            let reading = scope.spawn(read);
            observe(observer, book, &mut || reading.is_finished());
            reading.join()
        });
        Ok(counters.map_err(|_| anyhow!("the reading of the counters was aborted"))??)
    }
}

fn observe(observer: &mut Observer, book: &mut Book, is_over: &mut dyn FnMut() -> bool) {
    observer.run(&mut Sinks { statements: vec![book], ..Sinks::default() }, is_over);
}

/// What of a build keeps our digests from being compared with the server's.
fn no_digests(layout: &Layout) -> Option<String> {
    let wanted = [
        Field::QueryText,
        Field::QueryLength,
        Field::Database,
        Field::DatabaseLength,
        Field::Command,
        Field::ErrorNumber,
        Field::Diagnostics,
        Field::DiagnosticsStatus,
    ];
    let lacking = wanted.into_iter().find(|field| layout.offset(*field).is_none())?;
    Some(format!("{} of this build is not known (waggle doctor)", lacking.name()))
}
