//! The windows of a cell in a block, made in turns.
//!
//! On a shared host two neighbours in time differ by a tenth, whether they are 10 ms or 500 ms long: longer windows do
//! not reduce this noise, many short turns do. So the arms take turns, each time in another order, and a window is the
//! sum of the turns of its arm. `docs/decisions/0013` has the figures.

use jiff::Timestamp;
use waggle_calibration::Awake;
use waggle_stats::Random;

use crate::capacity::Capacities;
use crate::engine::{Engine, Remaining, Running};
use crate::error::LabError;
use crate::evidence::{Counted, Evidence};
use crate::gate::{self, Asked};
use crate::load::Pace;
use crate::measured_server::Origin;
use crate::run_dir::RunDir;
use crate::schedule::Slot;
use crate::span::Span;
use crate::warm_up::warm_at_once;
use crate::window::{Measured, Window};

/// A window that is being measured.
pub(crate) struct WindowInProgress {
    slot: Slot,
    window: Window,
    sum: Option<Span>,
    performance_schema_bytes: Option<u64>,
    evidence: Evidence,
    /// Whether something failed. It gets no more turns.
    is_broken: bool,
}

impl<'a> Engine<'a> {
    /// Measures the windows of these slots, which are of one cell in one block, in turns. If somebody stops it, none of
    /// them counts.
    pub(crate) fn windows(
        &mut self,
        running: &mut Running<'a>,
        run_dir: &mut RunDir,
        slots: &[Slot],
        capacities: &Capacities,
        pace: &Remaining,
    ) -> Result<Vec<Window>, LabError> {
        let mut all = Vec::with_capacity(slots.len());
        for slot in slots {
            all.push(self.begin(*slot, run_dir, capacities)?);
        }
        let Some(first) = slots.first().copied() else { return Ok(Vec::new()) };
        let turns = self.estimate().turns(&self.schedule.cells[first.cell]);
        if self.schedule.keeps_servers(first.cell) {
            self.report(run_dir, first, false, pace);
            self.prepare(running, run_dir, &mut all)?;
        }
        let _awake = self.is_kept_awake(first.cell).then(Awake::keep);
        for turn in 0..turns {
            let mut order: Vec<usize> = (0..all.len()).collect();
            // The schedule has said in which order they come first.
            if turn > 0 {
                self.chance(first, turn).shuffle(&mut order);
            }
            for at in order {
                if all[at].is_broken {
                    continue;
                }
                self.report(run_dir, all[at].slot, true, pace);
                if let Err(error) = self.turn(running, run_dir, &mut all[at], turns) {
                    self.give_up(running, &mut all, at, error)?;
                }
            }
        }
        Ok(all.into_iter().map(|one| self.end(one, turns)).collect())
    }

    /// Starts the servers and loads that do not run yet, and warms them up: all before the first window, so that no window
    /// follows the warm-up of its own server.
    fn prepare(
        &self,
        running: &mut Running<'a>,
        run_dir: &mut RunDir,
        all: &mut [WindowInProgress],
    ) -> Result<(), LabError> {
        let mut starts: Vec<usize> = (0..all.len()).collect();
        starts.sort_by_key(|at| {
            let Slot { block, arm, .. } = all[*at].slot;
            self.schedule.place_of_start(self.schedule.arms[arm].server, block)
        });
        for at in starts {
            self.go_on()?;
            let slot = all[at].slot;
            let server = self.schedule.arms[slot.arm].server;
            if all[at].is_broken {
                continue;
            }
            let number = running.start_of(server).unwrap_or_else(|| run_dir.next_start());
            all[at].window.server_start = number;
            if let Err(error) = self.started(running, slot, number) {
                self.give_up(running, all, at, error)?;
            }
        }
        let mut cold: Vec<_> = running.loads.values_mut().filter(|load| !load.is_warm).collect();
        let Some(first) = all.first().map(|one| one.slot) else { return Ok(()) };
        let cell = &self.schedule.cells[first.cell];
        // The first one to be warm waits longest for its first turn: not the same server each time.
        self.chance(first, 0).shuffle(&mut cold);
        for some in cold.chunks_mut(warm_at_once(cell.threads)) {
            match self.warm_up(some, cell) {
                // Each is warmed up by itself then, at its first turn, and the one that fails says why.
                Err(error) if error.ends_a_run() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Random numbers for a turn of the windows that begin with `first`; turn 0 is the warm-up.
    fn chance(&self, first: Slot, turn: u32) -> Random {
        Random::seeded(self.manifest.seed ^ (u64::from(first.number) << 24) ^ u64::from(turn))
    }

    fn begin(
        &self,
        slot: Slot,
        run_dir: &RunDir,
        capacities: &Capacities,
    ) -> Result<WindowInProgress, LabError> {
        let cell = self.schedule.cells[slot.cell].clone();
        let now = Timestamp::now();
        Ok(WindowInProgress {
            slot,
            window: Window {
                number: slot.number,
                block: slot.block,
                rate: capacities.rate(&cell)?,
                cell,
                arm: self.schedule.arms[slot.arm].name.to_owned(),
                part: run_dir.part(),
                begin: now,
                end: now,
                ..Window::default()
            },
            sum: None,
            performance_schema_bytes: None,
            evidence: Evidence::default(),
            is_broken: false,
        })
    }

    /// Whether processors have to be kept from halting in a cell. Under an open load they may halt.
    fn is_kept_awake(&self, cell: usize) -> bool {
        let cell = &self.schedule.cells[cell];
        let is_private = matches!(self.origin, Origin::Private { .. });
        is_private && !cell.load.is_open() && Awake::helps(cell.threads)
    }

    /// One turn of a window.
    fn turn(
        &self,
        running: &mut Running<'a>,
        run_dir: &mut RunDir,
        current: &mut WindowInProgress,
        turns: u32,
    ) -> Result<(), LabError> {
        let arm = &self.schedule.arms[current.slot.arm];
        let window = &mut current.window;
        window.server_start = running.start_of(arm.server).unwrap_or_else(|| run_dir.next_start());
        let (server, load) = self.server_and_traffic(running, current.slot, window.server_start)?;
        server.set(arm.scenario)?;
        let pace = window.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second });
        // Once per window: it takes long with many sessions.
        let written = current.sum.is_none().then(|| server.written()).transpose()?;
        let before = Counted::so_far(server, &self.suite.counters)?;
        let settle = self.estimate().settle(&window.cell, turns);
        let length = self.estimate().window(&window.cell) / turns;
        let mut tries = 0;
        let span = loop {
            let begin = Timestamp::now();
            let span = self.settled_span(server, load, pace, [settle, length])?;
            if current.sum.is_none() {
                window.begin = begin;
            }
            match span.stolen() {
                Some(share) if tries < gate::ANEW_MAX => window.stolen.push(share),
                _ => break span,
            }
            tries += 1;
        };
        window.end = Timestamp::now();
        let transactions = span.transactions().unwrap_or(0);
        current.sum = Some(match current.sum.take() {
            Some(sum) => sum.plus(span),
            None => span,
        });
        current.performance_schema_bytes = server.performance_schema_bytes()?;
        let after = Counted::so_far(server, &self.suite.counters)?;
        if let Some(reason) = server.misread(arm.scenario)? {
            window.void.get_or_insert(reason);
        }
        if let Some(before) = written
            && let Some(reason) = server.miswritten(arm.scenario, &before, transactions)?
        {
            window.void.get_or_insert(reason);
        }
        if let Some(load) = running.loads.get(&arm.server) {
            current.evidence.add(&load.lost_first, &before, &after);
            window.unsteady |= !load.is_steady;
        }
        Ok(())
    }

    /// A window after its last turn.
    fn end(&self, ended: WindowInProgress, turns: u32) -> Window {
        let WindowInProgress {
            slot,
            mut window,
            sum,
            performance_schema_bytes,
            evidence,
            is_broken,
        } = ended;
        let Some(sum) = sum.filter(|_| !is_broken) else { return window };
        let measured = Measured { performance_schema_bytes, ..sum.measured() };
        let threads = window.cell.threads;
        let seconds = self.estimate().window(&window.cell).as_secs_f64();
        let asked = Asked { seconds, turns };
        let scenario = self.schedule.arms[slot.arm].scenario;
        let proof = || evidence.disproof(scenario, threads, measured.transactions);
        window.void = window.void.or_else(proof).or_else(|| gate::judge(&measured, &asked));
        window.measured = Some(measured);
        window
    }

    /// Ends the server of a window after an error; it is started again for the next one. This window does not count, nor
    /// do others that had turns on this server.
    fn give_up(
        &self,
        running: &mut Running<'a>,
        all: &mut [WindowInProgress],
        at: usize,
        error: LabError,
    ) -> Result<(), LabError> {
        if error.ends_a_run() {
            return Err(error);
        }
        let server = |one: &WindowInProgress| self.schedule.arms[one.slot.arm].server;
        let broken = server(&all[at]);
        running.end(broken);
        all[at].is_broken = true;
        let had_turns = |one: &&mut WindowInProgress| server(one) == broken && one.sum.is_some();
        for one in all.iter_mut().filter(had_turns) {
            one.is_broken = true;
        }
        for one in all.iter_mut().filter(|one| one.is_broken) {
            one.window.void.get_or_insert_with(|| error.to_string());
        }
        Ok(())
    }
}
