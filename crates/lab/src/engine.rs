//! Makes the windows of a schedule.
//!
//! The servers that a block compares run side by side, each on a copy of the same data. Only the one that is measured
//! is under load, so windows of different servers are as near in time as windows of one server. Where a suite wants a
//! restart for every arm, the servers run one after another.
//!
//! A server has one load for all its arms in a cell of a block. The load is warm before the first window.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use waggle_private_server::Launcher;

use crate::budget::TimeEstimate;
use crate::error::LabError;
use crate::load::{Driver, Request, Sysbench, Traffic};
use crate::manifest::Manifest;
use crate::measured_server::{Lost, MeasuredServer, Origin};
use crate::run_dir::RunDir;
use crate::schedule::{Schedule, Slot};
use crate::suite::{Suite, Workload};
use crate::window::Cell;

/// A run ends after this many failed windows in a row, if they are of at least two cells or blocks: one cell may have
/// more sessions than a host can do.
const FAILING_MAX: usize = 5;

/// Makes the windows of a run.
pub(crate) struct Engine<'a> {
    /// What is compared.
    pub(crate) suite: &'a Suite,
    /// In which order.
    pub(crate) schedule: Schedule<'a>,
    /// What was asked.
    pub(crate) manifest: &'a Manifest,
    /// The servers.
    pub(crate) origin: Origin<'a>,
    /// How loads are started.
    pub(crate) load_launcher: &'a Launcher,
    /// What makes the load; `None`: others do.
    pub(crate) sysbench: Option<&'a Sysbench>,
    /// When no block is begun any more, if one was made before; `None`: never.
    pub(crate) until: Option<Instant>,
    /// Set to stop as soon as possible. The windows of the cell that is being measured are lost.
    pub(crate) stop: &'a AtomicBool,
    /// Called before a warm-up, and before each turn of a window.
    pub(crate) tell: &'a mut dyn FnMut(&Progress<'_>),
}

/// How far a run is.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Windows that were made.
    pub done: usize,
    /// Windows in all.
    pub of: usize,
    /// Time that the rest will take: the estimate, corrected by how long the windows took so far.
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
    /// Somebody stopped it before its servers were ready.
    NotBegun,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// Nothing can be measured: the baseline cannot use as much of the processors as any load asks for.
    OutOfReach,
    /// The time was over; it can be resumed.
    OutOfTime {
        /// How many blocks were whole then.
        blocks: u32,
    },
}

/// Servers and loads while a block is run.
#[derive(Default)]
pub(crate) struct Running<'a> {
    /// The loads of the servers, in one cell. They end before their servers.
    pub(crate) loads: BTreeMap<usize, StartedLoad>,
    cell: Option<usize>,
    servers: BTreeMap<usize, MeasuredServer<'a>>,
    /// The arm that has the servers for itself, where it does.
    alone: Option<usize>,
}

/// The load of a server.
pub(crate) struct StartedLoad {
    pub(crate) traffic: Traffic,
    /// Whether it was warmed up.
    pub(crate) is_warm: bool,
    /// Whether its throughput was steady then.
    pub(crate) is_steady: bool,
    /// What Performance Schema had lost before its sessions logged in.
    pub(crate) lost_first: Lost,
}

impl Running<'_> {
    /// The number of the start of a server that runs.
    pub(crate) fn start_of(&self, server: usize) -> Option<u32> {
        self.servers.get(&server).map(|server| server.number)
    }

    /// Ends a server with its load.
    pub(crate) fn end(&mut self, server: usize) {
        self.loads.remove(&server);
        self.servers.remove(&server);
    }
}

impl<'a> Engine<'a> {
    /// Makes every window that is not there yet.
    ///
    /// # Errors
    /// A server or a load cannot be started, or windows keep failing. What was measured is kept.
    pub(crate) fn run(&mut self, run_dir: &mut RunDir) -> Result<Ended, LabError> {
        match self.make_missing(run_dir) {
            Err(LabError::Stopped) => Ok(Ended::Stopped),
            ended => ended,
        }
    }

    fn make_missing(&mut self, run_dir: &mut RunDir) -> Result<Ended, LabError> {
        let missing: Vec<Slot> =
            self.schedule.slots.iter().filter(|slot| !run_dir.has(slot.number)).copied().collect();
        let cells = 0..self.schedule.cells.len();
        let keeps: Vec<bool> = cells.map(|cell| self.schedule.keeps_servers(cell)).collect();
        let are_together = |one: &Slot, other: &Slot| one.cell == other.cell && keeps[one.cell];
        let capacities = self.capacities(run_dir)?;
        let seconds = self.estimated_s();
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
                let windows = self.windows(&mut running, run_dir, slots, &capacities, &pace)?;
                run_dir.append(&windows)?;
                pace.made_s += windows.len() as f64 * seconds[slots[0].cell];
                let is_nothing = windows.iter().all(|window| window.measured.is_none());
                (failing, failing_groups) = match is_nothing {
                    true => (failing + windows.len(), failing_groups + 1),
                    false => (0, 0),
                };
                if failing >= FAILING_MAX && failing_groups > 1 {
                    let reason = windows.into_iter().rev().find_map(|window| window.void);
                    let reason = reason.unwrap_or_default();
                    return Err(LabError::Cannot(format!(
                        "{failing} windows in a row failed, the last one since {reason}; when that is mended, waggle lab \
                         resume makes the windows that are left (these stay void), and --only makes a run without such \
                         cells"
                    )));
                }
            }
        }
        Ok(Ended::Whole)
    }

    /// How long a window of each cell takes, with its part of starts and warm-ups, s.
    fn estimated_s(&self) -> Vec<f64> {
        let slot_s = |cell| self.estimate().slot_s(&self.schedule, cell);
        self.schedule.cells.iter().map(slot_s).collect()
    }

    /// Estimates how long things take.
    pub(crate) fn estimate(&self) -> TimeEstimate<'_> {
        let (suite, scale, lengths) = (self.suite, self.manifest.scale, self.manifest.lengths);
        let is_in_use = matches!(self.origin, Origin::InUse(_));
        let has_load = self.sysbench.is_some();
        TimeEstimate { suite, scale, lengths, is_in_use, has_load }
    }

    /// Ends what the next windows do not need.
    fn forget(&self, running: &mut Running<'a>, next: Slot) {
        let alone = (!self.schedule.keeps_servers(next.cell)).then_some(next.arm);
        if running.cell != Some(next.cell) || alone != running.alone {
            running.loads.clear();
            running.cell = Some(next.cell);
        }
        if alone != running.alone {
            running.servers.clear();
            running.alone = alone;
        }
    }

    pub(crate) fn report(&mut self, run_dir: &RunDir, slot: Slot, is_warm: bool, pace: &Remaining) {
        let blocks = self.schedule.slots.last().map_or(0, |last| last.block + 1);
        (self.tell)(&Progress {
            done: run_dir.count(),
            of: self.schedule.slots.len(),
            remaining: pace.remaining(),
            block: [slot.block + 1, blocks],
            cell: &self.schedule.cells[slot.cell],
            arm: is_warm.then_some(self.schedule.arms[slot.arm].name),
        });
    }

    /// The server of a slot with its load, warm. Starts them if they do not run; `number` is the number of that start.
    pub(crate) fn server_and_traffic<'b>(
        &self,
        running: &'b mut Running<'a>,
        slot: Slot,
        number: u32,
    ) -> Result<(&'b mut MeasuredServer<'a>, &'b mut Traffic), LabError> {
        let (server, load) = self.started(running, slot, number)?;
        if !load.is_warm {
            self.warm_up(&mut [&mut *load], &self.schedule.cells[slot.cell])?;
        }
        Ok((server, &mut load.traffic))
    }

    /// The same, without a warm-up.
    pub(crate) fn started<'b>(
        &self,
        running: &'b mut Running<'a>,
        slot: Slot,
        number: u32,
    ) -> Result<(&'b mut MeasuredServer<'a>, &'b mut StartedLoad), LabError> {
        let arm = &self.schedule.arms[slot.arm];
        let server = match running.servers.entry(arm.server) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(self.origin.start_warm(arm.scenario, number)?),
        };
        let load = match running.loads.entry(arm.server) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => {
                let cell = &self.schedule.cells[slot.cell];
                // A session keeps what was set when it logged in: its memory, and whether its prepared statements are
                // instrumented.
                match self.schedule.has_one_arm(slot) {
                    true => server.set(arm.scenario)?,
                    false => server.set_as_before()?,
                }
                let seed = self.manifest.seed ^ (u64::from(slot.block) << 16) ^ slot.cell as u64;
                free.insert(self.load(server, self.workload(cell)?, cell.threads, seed)?)
            }
        };
        Ok((server, load))
    }

    pub(crate) fn workload(&self, cell: &Cell) -> Result<&Workload, LabError> {
        let found = self.suite.workloads.iter().find(|workload| workload.name == cell.workload);
        found.ok_or_else(|| LabError::Scenario {
            scenario: cell.workload.clone(),
            reason: "the suite has no such workload".to_owned(),
        })
    }

    /// Starts the sessions of our load. Every server of a block has the same seed, and so reads the same rows.
    pub(crate) fn load(
        &self,
        server: &mut MeasuredServer<'_>,
        workload: &Workload,
        threads: u32,
        seed: u64,
    ) -> Result<StartedLoad, LabError> {
        let (_, lost_first) = server.sessions_and_lost()?;
        // Where others make the load, the server was warm before us.
        let (Some(sysbench), Some(reach)) = (self.sysbench, server.reach()) else {
            let traffic = Traffic(None);
            return Ok(StartedLoad { traffic, is_warm: true, is_steady: true, lost_first });
        };
        let driver = Driver::start(&Request {
            sysbench,
            launcher: self.load_launcher,
            directory: server.directory(),
            reach,
            workload,
            threads,
            tables: self.suite.data.tables,
            rows: self.suite.data.rows.of(self.manifest.scale),
            seed,
        })?;
        let traffic = Traffic(Some(driver));
        Ok(StartedLoad { traffic, is_warm: false, is_steady: false, lost_first })
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
    /// What the windows since then take, and what was left then, both as estimated.
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
