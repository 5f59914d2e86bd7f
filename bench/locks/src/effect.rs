//! What looking does to a server at work.

use std::cell::RefCell;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use waggle_bench_frame::{CONFIDENCE, rounds};
use waggle_calibration::{Block, Windows, rounds_max};
use waggle_host::Meter;
use waggle_mysql::{Options, Sources};
use waggle_stats::{Estimate, Random};
use waggle_testkit::sysbench::Sysbench;
use waggle_testkit::{Client, Server};

use crate::polling::{Polling, Taken};
use crate::settings::Settings;

/// Time after each switch that no window counts.
const SETTLE: Duration = Duration::from_millis(50);
/// Until the caches are warm and every session is at work.
const WARM_UP: Duration = Duration::from_secs(3);
const ROWS: u32 = 10_000;
/// Transactions of point selects and an update of a row.
const TRANSACTION: [&str; 5] = [
    "--range-selects=off",
    "--point-selects=4",
    "--non-index-updates=1",
    "--index-updates=0",
    "--delete-inserts=0",
];

/// What looking with one pause does under one load.
pub(crate) struct Effect {
    pub(crate) sessions: u32,
    /// `None` where nobody looked: how far windows without any difference differ.
    pub(crate) pause: Option<Duration>,
    /// Statements per second without looks.
    pub(crate) rate_without: f64,
    /// Change of them, percent.
    pub(crate) rate_percent: Estimate,
    /// Processor time of the server per statement of the load without looks, ns.
    pub(crate) without_ns: f64,
    /// What looks add to it.
    pub(crate) added_ns: Estimate,
    pub(crate) taken: Taken,
}

impl Effect {
    /// Statements of a look. `None` where nobody looked.
    pub(crate) fn statements_per_look(&self) -> Option<f64> {
        self.per_look(self.taken.statements)
    }

    /// Processor time of the server's thread that answers a look, ns. `None` where nobody looked.
    pub(crate) fn ns_per_look(&self) -> Option<f64> {
        self.per_look(self.taken.server_ns)
    }

    /// The same as a share of one processor, percent.
    pub(crate) fn processor_percent(&self) -> Option<f64> {
        Some(100.0 * self.ns_per_look()? / self.pause?.as_nanos() as f64)
    }

    fn per_look(&self, sum: u64) -> Option<f64> {
        (self.taken.looks > 0).then(|| sum as f64 / self.taken.looks as f64)
    }
}

/// A private server at work, and who looks at it.
pub(crate) struct Subject {
    pub(crate) server: Server,
    counters: Client,
    meter: Meter,
    polling: Polling,
}

impl Subject {
    pub(crate) fn start(settings: &Settings) -> Result<Subject> {
        let server = Server::builder(settings.server).arg("--performance-schema=ON").start()?;
        load(1).prepare(&server)?;
        let file = Some(server.defaults_file());
        let options = Options::read(&Sources { defaults_file: file, ..Sources::default() })?;
        let counters = server.root()?;
        let meter = Meter::of(server.pid())?;
        let polling = Polling::start(server.pid(), &options)?;
        Ok(Subject { server, counters, meter, polling })
    }

    /// Measures every pause under this many sessions, in rounds of random order.
    pub(crate) fn measure(
        &mut self,
        sessions: u32,
        settings: &Settings,
        random: &mut Random,
    ) -> Result<Vec<Effect>> {
        let running = load(sessions).start(&self.server)?;
        sleep(WARM_UP);
        let [longest, short] = settings.pauses();
        let windows = Windows { window: longest, settle: SETTLE, fours: 1 };
        let pauses = [None, Some(longest), Some(short)];
        let mut taken = [Taken::default(); 3];
        let wants = |_, blocks: &[Block]| blocks.len() < settings.blocks;
        let most = rounds_max(settings.blocks);
        let blocks = rounds(pauses.len(), most, random, wants, |at, random| {
            let before = self.polling.taken()?;
            let block = self.block(windows, pauses[at], random)?;
            taken[at].add(before, self.polling.taken()?);
            anyhow::Ok(block)
        })?;
        drop(running);
        let each = pauses.into_iter().zip(&blocks).zip(taken);
        each.map(|((pause, blocks), taken)| {
            let few = || format!("{} blocks are too few; is the host busy?", blocks.len());
            Ok(Effect {
                sessions,
                pause,
                rate_without: Block::rate_without(blocks),
                rate_percent: Block::rate_percent(blocks, CONFIDENCE).with_context(few)?,
                without_ns: Block::without_ns(blocks),
                added_ns: Block::added_ns(blocks, CONFIDENCE).with_context(few)?,
                taken,
            })
        })
        .collect()
    }

    /// A block of windows with looks and without.
    fn block(
        &mut self,
        windows: Windows,
        pause: Option<Duration>,
        random: &mut Random,
    ) -> Result<Option<Block>> {
        // Both closures use it, never at once.
        let polling = RefCell::new(&mut self.polling);
        let counters = &mut self.counters;
        let mut switch =
            |on: bool| -> Result<()> { polling.borrow_mut().look_every(pause.filter(|_| on)) };
        let mut statements = || -> Result<u64> {
            let of_looks = polling.borrow().statements();
            Ok(counters.questions()?.saturating_sub(of_looks))
        };
        let block = windows.block::<Error>(&self.meter, random, &mut switch, &mut statements)?;
        self.polling.look_every(None)?;
        Ok(block)
    }
}

fn load(sessions: u32) -> Sysbench {
    let mut sysbench = Sysbench::endless("oltp_read_write");
    (sysbench.tables, sysbench.table_size, sysbench.threads) = (1, ROWS, sessions);
    sysbench.arguments = TRANSACTION.map(str::to_owned).to_vec();
    sysbench
}
