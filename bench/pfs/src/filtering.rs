//! Whether it helps to ask for less of what is recorded, or to record less.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use waggle_bench_frame::{CONFIDENCE, rounds};
use waggle_calibration::{Block, Windows, rounds_max};
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, Options};
use waggle_stats::{Estimate, Random};

use crate::load::LOADS;
use crate::profiles::{OFF, statements};
use crate::server::Subject;
use crate::settings::Settings;

const THREADS: u32 = 8;
const READ_EVERY_MS: u64 = 100;
const READ_EVERY: Duration = Duration::from_millis(READ_EVERY_MS);
/// Two readings fall into each.
const WINDOWS: Windows =
    Windows { window: Duration::from_millis(200), settle: Duration::from_millis(15), fours: 1 };
/// Blocks of a way for each that a profile has: a block of a profile has six times the fours.
const BLOCKS: usize = 2;
const READ: &str = "SELECT EVENT_NAME, SUM(COUNT_STAR), SUM(SUM_TIMER_WAIT) \
                    FROM performance_schema.events_waits_summary_by_thread_by_event_name";
const SESSIONS: &str = "TYPE = 'FOREGROUND' AND PROCESSLIST_USER = 'app'";

/// Which of the eight sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    None,
    One,
    All,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::None => "none",
            Which::One => "one",
            Which::All => "all",
        }
    }
}

/// A way to see the waits of one session of eight: which of them are recorded, and which are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) recorded: Which,
    pub(crate) read: Which,
}

impl Way {
    pub(crate) const ALL: [Way; 5] = [
        Way { recorded: Which::All, read: Which::None },
        Way { recorded: Which::All, read: Which::All },
        Way { recorded: Which::All, read: Which::One },
        Way { recorded: Which::One, read: Which::None },
        Way { recorded: Which::One, read: Which::One },
    ];

    pub(crate) fn names(self) -> [&'static str; 2] {
        [self.recorded.name(), self.read.name()]
    }

    /// What is read of a session's waits.
    fn query(self, thread: &str) -> Option<String> {
        let filter = match self.read {
            Which::None => return None,
            Which::One => format!(" WHERE THREAD_ID = {thread}"),
            Which::All => String::new(),
        };
        Some(format!("{READ}{filter} GROUP BY EVENT_NAME"))
    }

    /// Which sessions are recorded.
    fn switch(self, thread: &str) -> String {
        let on = match self.recorded {
            Which::None => "'NO'".to_owned(),
            Which::One => format!("IF(THREAD_ID = {thread}, 'YES', 'NO')"),
            Which::All => "'YES'".to_owned(),
        };
        format!("UPDATE performance_schema.threads SET INSTRUMENTED = {on} WHERE {SESSIONS}")
    }
}

/// What a way costs, ns per statement.
pub(crate) struct Filtering {
    pub(crate) way: Way,
    pub(crate) added: Estimate,
}

/// Reads ten times a second while it is told to.
struct Reader {
    on: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Reader {
    /// It reads for the first time after `rest`.
    fn start(options: &Options, query: Option<String>, rest: Duration) -> Result<Reader> {
        let mut connection = Connection::open(options)?;
        let on = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let (is_on, is_over) = (on.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            sleep(rest);
            while !is_over.load(Ordering::Relaxed) {
                if let Some(query) = query.as_ref().filter(|_| is_on.load(Ordering::Relaxed)) {
                    connection.rows(query)?;
                }
                sleep(READ_EVERY);
            }
            Ok(())
        });
        Ok(Reader { on, stop, thread: Some(thread) })
    }

    fn end(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.transpose().ok().flatten().context("the reader panicked")?
    }
}

/// Measures every way under the read-write load.
pub(crate) fn measure(
    subject: &mut Subject,
    settings: &Settings,
    random: &mut Random,
) -> Result<Vec<Filtering>> {
    let running = LOADS[0].start(&subject.server, THREADS)?;
    let waits = statements(&mut subject.connection, "waits")?;
    subject.send(&OFF.map(str::to_owned))?;
    subject.send(&waits)?;
    let rows = subject
        .connection
        .rows(&format!("SELECT MIN(THREAD_ID) FROM performance_schema.threads WHERE {SESSIONS}"))?;
    let thread = rows.first().map(|row| text(row, 0)).unwrap_or_default();
    let wanted = BLOCKS * settings.blocks;
    let wants = |_, blocks: &[Block]| blocks.len() < wanted;
    let blocks = rounds(Way::ALL.len(), rounds_max(wanted), random, wants, |at, random| {
        let way = Way::ALL[at];
        subject.send(&[way.switch(&thread)])?;
        // So that no way of reading falls always on the same moments of its windows.
        let rest = Duration::from_millis(random.below(READ_EVERY_MS as usize) as u64);
        let reader = Reader::start(&subject.options, way.query(&thread), rest)?;
        let block = subject.block(WINDOWS, random, &|on| reader.on.store(on, Ordering::Relaxed));
        reader.end()?;
        block
    })?;
    subject.send(&[Way::ALL[0].switch(&thread)])?;
    drop(running);
    let each = Way::ALL.into_iter().zip(&blocks);
    each.map(|(way, blocks)| {
        let added = Block::added_ns(blocks, CONFIDENCE).context("too many windows were void")?;
        Ok(Filtering { way, added })
    })
    .collect()
}
