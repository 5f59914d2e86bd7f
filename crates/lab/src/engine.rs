//! Makes the windows of a schedule.
//!
//! Servers that a block compares are there side by side, each on a copy of the same data; only one of them
//! is at work while it is measured. So windows of different servers are neighbours in time as those of one
//! server are. Where a suite wants a restart for every arm, the servers come one after another.
//!
//! A server has one load for all its arms in a cell of a block, which is warm before the first of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use waggle_private_server::Launcher;

use crate::budget::Reckoning;
use crate::error::LabError;
use crate::kept::Kept;
use crate::lengths::Lengths;
use crate::life::{Life, Lost, Origin};
use crate::load::{Driver, Request, Sysbench, Work};
use crate::schedule::{Schedule, Slot};
use crate::suite::{Scale, Suite, Workload};
use crate::window::Cell;

/// So many windows in a row may fail before the run ends, where they are of two cells or blocks at least:
/// one cell may have more sessions than a host can do.
const FAILING_MAX: usize = 5;

/// What a run works with.
pub struct Engine<'a> {
    /// What is compared.
    pub suite: &'a Suite,
    /// In which order.
    pub schedule: Schedule<'a>,
    /// How long things take.
    pub lengths: Lengths,
    /// How much data there is.
    pub scale: Scale,
    /// From which everything random follows.
    pub seed: u64,
    /// The servers.
    pub origin: Origin<'a>,
    /// How loads are started.
    pub load_launcher: &'a Launcher,
    /// What makes the load; `None`: others do.
    pub sysbench: Option<&'a Sysbench>,
    /// When no block is begun any more, if one was made before; `None`: never.
    pub until: Option<Instant>,
    /// Set to stop as soon as can be: the windows of the cell that is being measured are not kept.
    pub stop: &'a AtomicBool,
    /// Told before servers are made warm, and before each turn of a window.
    pub tell: &'a mut dyn FnMut(&Progress<'_>),
}

/// How far a run is.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Windows that were made.
    pub done: usize,
    /// Windows in all.
    pub of: usize,
    /// Time that the rest will take, by the rough reckoning, and by how far that was from what was made.
    pub remaining: Duration,
    /// Which block, from 1, and how many there are.
    pub block: [u32; 2],
    /// The cell.
    pub cell: &'a Cell,
    /// The arm; `None` while servers and loads are made warm.
    pub arm: Option<&'a str>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every window was made.
    Whole,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// The baseline cannot use as much of the processors as any load asks for: there is nothing to be made.
    OutOfReach,
    /// The time was over when so many blocks were whole; it can be resumed.
    OutOfTime {
        /// How many.
        blocks: u32,
    },
}

/// What is there while a block is run.
#[derive(Default)]
pub(crate) struct Running<'a> {
    /// The loads of the servers, in one cell. They end before their servers.
    pub(crate) loads: BTreeMap<usize, StartedLoad>,
    cell: Option<usize>,
    lives: BTreeMap<usize, Life<'a>>,
    /// The arm that has the servers for itself, where it does.
    alone: Option<usize>,
}

/// The load of a server.
pub(crate) struct StartedLoad {
    pub(crate) work: Work,
    /// Whether it was warmed up.
    pub(crate) is_warm: bool,
    /// Whether its throughput was steady then.
    pub(crate) is_steady: bool,
    /// What Performance Schema had no room for before its sessions logged in.
    pub(crate) lost_first: Lost,
}

impl Running<'_> {
    /// Which start of a server it is, where it is there.
    pub(crate) fn life(&self, server: usize) -> Option<u32> {
        self.lives.get(&server).map(|life| life.number)
    }

    /// Ends a server with its load.
    pub(crate) fn end(&mut self, server: usize) {
        self.loads.remove(&server);
        self.lives.remove(&server);
    }
}

impl<'a> Engine<'a> {
    /// Makes every window that is not there yet.
    ///
    /// # Errors
    /// A server or a load cannot be started, or windows keep failing. What was measured is kept.
    pub fn run(&mut self, kept: &mut Kept) -> Result<Ended, LabError> {
        match self.make_missing(kept) {
            Err(LabError::Stopped) => Ok(Ended::Stopped),
            ended => ended,
        }
    }

    fn make_missing(&mut self, kept: &mut Kept) -> Result<Ended, LabError> {
        let missing: Vec<Slot> =
            self.schedule.slots.iter().filter(|slot| !kept.has(slot.number)).copied().collect();
        let cells = 0..self.schedule.cells.len();
        let keeps: Vec<bool> = cells.map(|cell| self.schedule.keeps_servers(cell)).collect();
        let are_together = |one: &Slot, other: &Slot| one.cell == other.cell && keeps[one.cell];
        let capacities = self.capacities(kept)?;
        let seconds = self.reckoned();
        let left_s = missing.iter().map(|slot| seconds[slot.cell]).sum();
        let mut pace = Remaining { begin: Instant::now(), made_s: 0.0, left_s };
        let (mut failing, mut failing_groups) = (0, 0);
        for block in missing.chunk_by(|one, other| one.block == other.block) {
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            if is_over && pace.made_s > 0.0 {
                return Ok(Ended::OutOfTime { blocks: block[0].block });
            }
            let mut running = Running::default();
            for slots in block.chunk_by(are_together) {
                self.go_on()?;
                self.forget(&mut running, slots[0]);
                let windows = self.windows(&mut running, kept, slots, &capacities, &pace)?;
                kept.append(&windows)?;
                pace.made_s += windows.len() as f64 * seconds[slots[0].cell];
                let is_nothing = windows.iter().all(|window| window.measured.is_none());
                (failing, failing_groups) = match is_nothing {
                    true => (failing + windows.len(), failing_groups + 1),
                    false => (0, 0),
                };
                if failing >= FAILING_MAX && failing_groups > 1 {
                    let reason = windows.into_iter().rev().find_map(|window| window.void);
                    let reason = reason.unwrap_or_default();
                    return Err(LabError::Failing { count: failing, reason });
                }
            }
        }
        Ok(Ended::Whole)
    }

    /// What a window of each cell takes with its part of what is around it, s.
    fn reckoned(&self) -> Vec<f64> {
        let slot_s = |cell| self.reckoning().slot_s(&self.schedule, cell);
        self.schedule.cells.iter().map(slot_s).collect()
    }

    /// What the run is reckoned from.
    pub(crate) fn reckoning(&self) -> Reckoning<'_> {
        let (suite, scale, lengths) = (self.suite, self.scale, self.lengths);
        let is_foreign = matches!(self.origin, Origin::Foreign(_));
        let has_load = self.sysbench.is_some();
        Reckoning { suite, scale, lengths, is_foreign, has_load }
    }

    /// Ends what the next windows do not need.
    fn forget(&self, running: &mut Running<'a>, next: Slot) {
        let alone = (!self.schedule.keeps_servers(next.cell)).then_some(next.arm);
        if running.cell != Some(next.cell) || alone != running.alone {
            running.loads.clear();
            running.cell = Some(next.cell);
        }
        if alone != running.alone {
            running.lives.clear();
            running.alone = alone;
        }
    }

    pub(crate) fn report(&mut self, kept: &Kept, slot: Slot, is_warm: bool, pace: &Remaining) {
        let blocks = self.schedule.slots.last().map_or(0, |last| last.block + 1);
        (self.tell)(&Progress {
            done: kept.count(),
            of: self.schedule.slots.len(),
            remaining: pace.remaining(),
            block: [slot.block + 1, blocks],
            cell: &self.schedule.cells[slot.cell],
            arm: is_warm.then_some(self.schedule.arms[slot.arm].name),
        });
    }

    /// The server of a slot with its load, warm. They are started where they are not there: then it is life
    /// `number`.
    pub(crate) fn at_work<'b>(
        &self,
        running: &'b mut Running<'a>,
        slot: Slot,
        number: u32,
    ) -> Result<(&'b mut Life<'a>, &'b mut Work), LabError> {
        let (life, load) = self.started(running, slot, number)?;
        if !load.is_warm {
            self.warm_up(&mut [&mut *load], &self.schedule.cells[slot.cell])?;
        }
        Ok((life, &mut load.work))
    }

    /// The same, not yet warm where it has just been started.
    pub(crate) fn started<'b>(
        &self,
        running: &'b mut Running<'a>,
        slot: Slot,
        number: u32,
    ) -> Result<(&'b mut Life<'a>, &'b mut StartedLoad), LabError> {
        let arm = &self.schedule.arms[slot.arm];
        let life = match running.lives.entry(arm.server) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(self.origin.life(arm.scenario, number)?),
        };
        let load = match running.loads.entry(arm.server) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => {
                let cell = &self.schedule.cells[slot.cell];
                // What is set when sessions log in and prepare their statements stays with them: memory that they
                // take, and whether a prepared statement is instrumented.
                match self.schedule.has_one_arm(slot) {
                    true => life.set(arm.scenario)?,
                    false => life.set_as_before()?,
                }
                let seed = self.seed ^ (u64::from(slot.block) << 16) ^ slot.cell as u64;
                free.insert(self.load(life, self.workload(cell)?, cell.threads, seed)?)
            }
        };
        Ok((life, load))
    }

    pub(crate) fn workload(&self, cell: &Cell) -> Result<&Workload, LabError> {
        let found = self.suite.workloads.iter().find(|workload| workload.name == cell.workload);
        found.ok_or_else(|| LabError::Scenario {
            scenario: cell.workload.clone(),
            reason: "the suite has no such workload".to_owned(),
        })
    }

    /// Starts the sessions of a load, where it is ours. Every server of a block has the same seed, and so
    /// the same values.
    pub(crate) fn load(
        &self,
        life: &mut Life<'_>,
        workload: &Workload,
        threads: u32,
        seed: u64,
    ) -> Result<StartedLoad, LabError> {
        let (_, lost_first) = life.sessions_and_lost()?;
        // Where others make the load, the server was warm before us.
        let (Some(sysbench), Some(reach)) = (self.sysbench, life.reach()) else {
            let work = Work::Others;
            return Ok(StartedLoad { work, is_warm: true, is_steady: true, lost_first });
        };
        let driver = Driver::start(&Request {
            sysbench,
            launcher: self.load_launcher,
            directory: life.directory(),
            reach,
            workload,
            threads,
            tables: self.suite.data.tables,
            rows: self.suite.data.rows.of(self.scale),
            seed,
        })?;
        let work = Work::Ours(driver);
        Ok(StartedLoad { work, is_warm: false, is_steady: false, lost_first })
    }

    /// Waits.
    ///
    /// # Errors
    /// Somebody stopped it meanwhile.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), LabError> {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.go_on()?;
            sleep(left.min(Duration::from_millis(100)));
        }
        self.go_on()
    }

    pub(crate) fn go_on(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Stopped),
            false => Ok(()),
        }
    }
}

/// How long the rest takes.
pub(crate) struct Remaining {
    begin: Instant,
    /// What was made since, and what was left then, by the rough reckoning.
    made_s: f64,
    left_s: f64,
}

impl Remaining {
    fn remaining(&self) -> Duration {
        let left_s = (self.left_s - self.made_s).max(0.0);
        match self.made_s > 0.0 {
            true => self.begin.elapsed().mul_f64(left_s / self.made_s),
            false => Duration::from_secs_f64(left_s),
        }
    }
}
