//! Looks at the locks of a server with a pause, as `waggle locks --watch` makes them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use waggle_mysql::connection::text;
use waggle_mysql::locks::Poller;
use waggle_mysql::{Connection, Options};

const OWN_THREAD: &str = "SELECT THREAD_OS_ID FROM performance_schema.threads \
                          WHERE PROCESSLIST_ID = CONNECTION_ID()";

/// A thread that looks while it is told to.
pub(crate) struct Polling {
    /// Without room: who sends waits until no look is under way.
    orders: SyncSender<Option<Duration>>,
    done: Arc<Done>,
    /// Where the kernel counts the time of the server's thread that answers.
    schedstat: String,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Default)]
struct Done {
    looks: AtomicU64,
    statements: AtomicU64,
}

/// What looks have taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) looks: u64,
    pub(crate) statements: u64,
    /// Processor time of the thread that answered them, ns.
    pub(crate) server_ns: u64,
}

impl Taken {
    /// Adds what was taken between two moments.
    pub(crate) fn add(&mut self, before: Taken, after: Taken) {
        self.looks += after.looks - before.looks;
        self.statements += after.statements - before.statements;
        self.server_ns += after.server_ns - before.server_ns;
    }
}

impl Polling {
    /// Connects to the server with this process id, which has Performance Schema on, and does not look yet.
    pub(crate) fn start(pid: u32, options: &Options) -> Result<Polling> {
        let mut connection = Connection::open(options)?;
        let rows = connection.rows(OWN_THREAD)?;
        let answering = rows.first().map(|row| text(row, 0)).context("no thread answers")?;
        let (orders, told) = sync_channel(0);
        let done = Arc::new(Done::default());
        let counted = done.clone();
        let thread = std::thread::spawn(move || look(connection, &told, &counted));
        Ok(Polling {
            orders,
            done,
            schedstat: format!("/proc/{pid}/task/{answering}/schedstat"),
            thread: Some(thread),
        })
    }

    /// Looks with this pause from now on, for the first time after half of it; or not at all.
    pub(crate) fn look_every(&mut self, pause: Option<Duration>) -> Result<()> {
        self.orders.send(pause).map_err(|_| self.failure())
    }

    /// Why the thread has ended.
    fn failure(&mut self) -> Error {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => error.context("a look failed"),
            _ => anyhow!("the thread that looks has ended"),
        }
    }

    /// Statements of all looks so far.
    pub(crate) fn statements(&self) -> u64 {
        self.done.statements.load(Ordering::Relaxed)
    }

    /// What the looks have taken so far.
    pub(crate) fn taken(&self) -> Result<Taken> {
        // Its first number is the time on a processor (Documentation/scheduler/sched-stats.rst).
        let path = &self.schedstat;
        let line = fs::read_to_string(path).with_context(|| path.clone())?;
        let server_ns = line.split_whitespace().next().and_then(|word| word.parse().ok());
        Ok(Taken {
            looks: self.done.looks.load(Ordering::Relaxed),
            statements: self.statements(),
            server_ns: server_ns.with_context(|| format!("{path} holds {line:?}"))?,
        })
    }
}

fn look(
    mut connection: Connection,
    orders: &Receiver<Option<Duration>>,
    done: &Done,
) -> Result<()> {
    let mut poller = Poller::new(&mut connection)?;
    let mut due: Option<(Instant, Duration)> = None;
    loop {
        let order = match due {
            Some((at, _)) => orders.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(RecvTimeoutError::from),
        };
        match (order, due) {
            (Ok(pause), _) => due = pause.map(|pause| (Instant::now() + pause / 2, pause)),
            (Err(RecvTimeoutError::Timeout), Some((_, pause))) => {
                let begin = Instant::now();
                let locks = poller.poll(&mut connection)?;
                done.looks.fetch_add(1, Ordering::Relaxed);
                done.statements.fetch_add(locks.statements, Ordering::Relaxed);
                due = Some((begin + pause, pause));
            }
            (Err(_), _) => return Ok(()),
        }
    }
}
