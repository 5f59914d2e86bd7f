//! Makes the windows of a schedule.
//!
//! Servers that a block compares are there side by side, each on a copy of the same data; only one of them
//! is at work at a time. So windows of different servers are neighbours in time as those of one server
//! are. Where a suite wants a restart for every arm, the servers come one after another.
//!
//! Each window has a sysbench of its own. One that serves several gets quicker from window to window (its
//! scripts are compiled while they run), by a tenth: that would be a gain of the arms that share a server.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use waggle_private_server::Launcher;

use crate::budget::Lengths;
use crate::capacity::Capacities;
use crate::error::LabError;
use crate::gate::{self, Asked};
use crate::kept::Kept;
use crate::life::{Life, Origin};
use crate::load::{Driver, Pace, Request, Sysbench, Work};
use crate::schedule::{Arm, Schedule, Slot};
use crate::suite::{Scenario, Suite, Workload, counters_disproof};
use crate::window::{Cell, Window};

/// So many windows in a row may fail before the run ends.
const FAILING_MAX: usize = 5;

/// What a run works with.
pub struct Engine<'a> {
    /// What is compared.
    pub suite: &'a Suite,
    /// In which order.
    pub schedule: Schedule<'a>,
    /// How long things take.
    pub lengths: Lengths,
    /// Rows of a table.
    pub rows: u32,
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
    /// Set to stop after the window that is being made.
    pub stop: &'a AtomicBool,
    /// Told before each window.
    pub tell: &'a mut dyn FnMut(&Progress<'_>),
}

/// How far a run is.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Windows that were made.
    pub done: usize,
    /// Windows in all.
    pub of: usize,
    /// Time that the rest will take; `None` before the first window.
    pub remaining: Option<Duration>,
    /// Which block, from 1, and how many there are.
    pub block: [u32; 2],
    /// The cell.
    pub cell: &'a Cell,
    /// The arm.
    pub arm: &'a str,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every window was made.
    Whole,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// The time was over when so many blocks were whole; it can be resumed.
    OutOfTime {
        /// How many.
        blocks: u32,
    },
}

/// The servers that are there while a block is run.
#[derive(Default)]
struct Running<'a> {
    lives: BTreeMap<usize, Life<'a>>,
    /// The arm that has the servers for itself, where it does.
    alone: Option<usize>,
}

impl<'a> Engine<'a> {
    /// Makes every window that is not there yet.
    ///
    /// # Errors
    /// A server or a load cannot be started, or windows keep failing. What was measured is kept.
    pub fn run(&mut self, kept: &mut Kept) -> Result<Ended, LabError> {
        let missing: Vec<Slot> =
            self.schedule.slots.iter().filter(|slot| !kept.has(slot.number)).copied().collect();
        let Some(capacities) = self.capacities(kept)? else { return Ok(Ended::Stopped) };
        let mut pace = Remaining { begin: Instant::now(), made: 0, left: missing.len() };
        let mut failing = 0;
        for block in missing.chunk_by(|one, other| one.block == other.block) {
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            if is_over && pace.made > 0 {
                return Ok(Ended::OutOfTime { blocks: block[0].block });
            }
            let mut running = Running::default();
            for slot in block {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(Ended::Stopped);
                }
                self.forget(&mut running, *slot);
                self.report(kept, *slot, &pace);
                let Some(window) = self.window(&mut running, kept, *slot, &capacities)? else {
                    return Ok(Ended::Stopped);
                };
                failing = if window.measured.is_none() { failing + 1 } else { 0 };
                let reason = window.void.clone().unwrap_or_default();
                kept.append(&window)?;
                pace.made += 1;
                if failing >= FAILING_MAX {
                    return Err(LabError::Failing { count: failing, reason });
                }
            }
        }
        Ok(Ended::Whole)
    }

    /// Ends the servers that the next windows do not need.
    fn forget(&self, running: &mut Running<'a>, next: Slot) {
        let alone = (!self.schedule.keeps_servers(next.cell)).then_some(next.arm);
        if alone != running.alone {
            running.lives.clear();
            running.alone = alone;
        }
    }

    fn report(&mut self, kept: &Kept, slot: Slot, pace: &Remaining) {
        let blocks = self.schedule.slots.last().map_or(0, |last| last.block + 1);
        (self.tell)(&Progress {
            done: kept.count(),
            of: self.schedule.slots.len(),
            remaining: pace.remaining(),
            block: [slot.block + 1, blocks],
            cell: &self.schedule.cells[slot.cell],
            arm: self.schedule.arms[slot.arm].name,
        });
    }

    /// Makes one window. `None` where somebody stopped it.
    fn window(
        &self,
        running: &mut Running<'a>,
        kept: &mut Kept,
        slot: Slot,
        capacities: &Capacities,
    ) -> Result<Option<Window>, LabError> {
        let arm = &self.schedule.arms[slot.arm];
        let known = running.lives.get(&arm.server).map(|life| life.number);
        let life = known.unwrap_or_else(|| kept.next_life());
        let mut window = Window {
            number: slot.number,
            block: slot.block,
            cell: self.schedule.cells[slot.cell].clone(),
            arm: arm.name.to_owned(),
            life,
            session: kept.session(),
            rate: None,
            stolen: Vec::new(),
            begin: Timestamp::now(),
            measured: None,
            void: None,
        };
        window.rate = capacities.rate(&window.cell)?;
        let made = self.start_life(running, arm, life);
        match made.and_then(|()| self.measure(running, slot, &mut window)) {
            Ok(true) => Ok(Some(window)),
            Ok(false) => Ok(None),
            Err(
                error @ (LabError::Suite(_)
                | LabError::Kept(_)
                | LabError::Scenario { .. }
                | LabError::Hold(_)),
            ) => Err(error),
            Err(error) => {
                // Whatever broke is started anew for the next window.
                running.lives.remove(&arm.server);
                window.void = Some(error.to_string());
                Ok(Some(window))
            }
        }
    }

    /// Starts the server of an arm where it does not run.
    fn start_life(
        &self,
        running: &mut Running<'a>,
        arm: &Arm<'_>,
        life: u32,
    ) -> Result<(), LabError> {
        if let Entry::Vacant(free) = running.lives.entry(arm.server) {
            free.insert(self.life_of(arm.scenario, life)?);
        }
        Ok(())
    }

    /// A server as a scenario wants it to be started.
    pub(crate) fn life_of(&self, scenario: &Scenario, number: u32) -> Result<Life<'a>, LabError> {
        self.origin.life(scenario, number)
    }

    /// Fills a window. `false` where somebody stopped it.
    fn measure(
        &self,
        running: &mut Running<'a>,
        slot: Slot,
        window: &mut Window,
    ) -> Result<bool, LabError> {
        let arm = &self.schedule.arms[slot.arm];
        let Some(life) = running.lives.get_mut(&arm.server) else { return Ok(false) };
        window.void = life.set(arm.scenario)?;
        let threads = window.cell.threads;
        let seed = self.seed ^ (u64::from(slot.block) << 16) ^ slot.cell as u64;
        let load = &mut self.load(life, self.workload(&window.cell)?, threads, seed)?;
        let pace = window.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second });
        if !life.is_warm {
            self.warm_up(load)?;
            life.is_warm = true;
        }
        let length = self.lengths.window_of(threads);
        // What began before a class was off counts, in sessions of others, too.
        let sessions = life.sessions()?.max(threads);
        let events = life.events()?;
        let counters = life.counters(&self.suite.counters)?;
        load.go(pace)?;
        if !self.wait(self.lengths.settle) {
            return Ok(false);
        }
        load.pause()?;
        let mut measured = loop {
            window.begin = Timestamp::now();
            let Some(measured) = self.span(life, load, pace, length)? else { return Ok(false) };
            match gate::stolen(&measured) {
                Some(share) if window.stolen.len() < gate::ANEW_MAX => window.stolen.push(share),
                _ => break measured,
            }
        };
        measured.performance_schema_bytes = life.performance_schema_bytes()?;
        let asked = Asked { seconds: length.as_secs_f64(), rate: window.rate };
        let proof = match (events, life.events()?) {
            (Some(earlier), Some(later)) => arm.scenario.disproof(&earlier, &later, sessions),
            _ => None,
        };
        let later = life.counters(&self.suite.counters)?;
        let proof = proof.or_else(|| counters_disproof(&counters, &later, threads));
        let void = window.void.take();
        window.void = void.or(proof).or_else(|| gate::judge(&measured, &asked));
        window.measured = Some(measured);
        Ok(true)
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
        life: &Life<'_>,
        workload: &Workload,
        threads: u32,
        seed: u64,
    ) -> Result<Work, LabError> {
        let Some(sysbench) = self.sysbench else { return Ok(Work::Others) };
        Ok(Work::Ours(Driver::start(&Request {
            sysbench,
            launcher: self.load_launcher,
            directory: life.directory(),
            reach: life.reach(),
            workload,
            threads,
            tables: self.suite.data.tables,
            rows: self.rows,
            seed,
        })?))
    }

    /// Waits. `false` where somebody stopped it meanwhile.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            sleep(left.min(Duration::from_millis(100)));
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// How long the rest takes.
struct Remaining {
    begin: Instant,
    made: usize,
    left: usize,
}

impl Remaining {
    fn remaining(&self) -> Option<Duration> {
        let left = self.left.saturating_sub(self.made);
        (self.made > 0).then(|| self.begin.elapsed().mul_f64(left as f64 / self.made as f64))
    }
}
