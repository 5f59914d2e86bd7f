//! The windows of a cell in a block, made in turns.
//!
//! On a shared host two neighbours in time differ by a tenth, whether they are 10 ms or 500 ms long: the noise has
//! a long memory, and longer windows do not make it less. Shorter neighbours, many of them, do. So the
//! arms take turns, each time in another order, and a window is the sum of the turns of its arm.
//! `docs/decisions/0013` has the figures.

use jiff::Timestamp;
use waggle_calibration::Awake;
use waggle_stats::Random;

use crate::capacity::Capacities;
use crate::engine::{Engine, Remaining, Running};
use crate::error::LabError;
use crate::evidence::{Counted, Evidence};
use crate::gate::{self, Asked};
use crate::kept::Kept;
use crate::life::Origin;
use crate::load::Pace;
use crate::schedule::Slot;
use crate::span::Span;
use crate::warm_up::warm_at_once;
use crate::window::{Measured, Window};

/// A window while it is made.
pub(crate) struct Making {
    slot: Slot,
    window: Window,
    sum: Option<Span>,
    performance_schema_bytes: Option<u64>,
    evidence: Evidence,
    /// Whether something broke: it gets no more turns.
    is_broken: bool,
}

impl<'a> Engine<'a> {
    /// Makes the windows of these slots of one cell in one block, in turns. Where somebody stops it nothing of them
    /// counts.
    pub(crate) fn windows(
        &mut self,
        running: &mut Running<'a>,
        kept: &mut Kept,
        slots: &[Slot],
        capacities: &Capacities,
        pace: &Remaining,
    ) -> Result<Vec<Window>, LabError> {
        let mut making = Vec::with_capacity(slots.len());
        for slot in slots {
            making.push(self.begin(*slot, kept, capacities)?);
        }
        let Some(first) = slots.first().copied() else { return Ok(Vec::new()) };
        let turns = self.reckoning().turns(&self.schedule.cells[first.cell]);
        if self.schedule.keeps_servers(first.cell) {
            self.report(kept, first, false, pace);
            self.prepare(running, kept, &mut making)?;
        }
        let _awake = self.is_kept_awake(first.cell).then(Awake::keep);
        for turn in 0..turns {
            let mut order: Vec<usize> = (0..making.len()).collect();
            // The schedule has said in which order they come first.
            if turn > 0 {
                self.chance(first, turn).shuffle(&mut order);
            }
            for at in order {
                if making[at].is_broken {
                    continue;
                }
                self.report(kept, making[at].slot, true, pace);
                if let Err(error) = self.turn(running, kept, &mut making[at], turns) {
                    self.give_up(running, &mut making, at, error)?;
                }
            }
        }
        Ok(making.into_iter().map(|one| self.end(one, turns)).collect())
    }

    /// Starts what is not there yet of the servers and their loads, and makes the loads warm: all before the first
    /// window, so that none follows the warm-up of its own server.
    fn prepare(
        &self,
        running: &mut Running<'a>,
        kept: &mut Kept,
        making: &mut [Making],
    ) -> Result<(), LabError> {
        let mut starts: Vec<usize> = (0..making.len()).collect();
        starts.sort_by_key(|at| {
            let Slot { block, arm, .. } = making[*at].slot;
            self.schedule.place_of_start(self.schedule.arms[arm].server, block)
        });
        for at in starts {
            self.go_on()?;
            let slot = making[at].slot;
            let server = self.schedule.arms[slot.arm].server;
            if making[at].is_broken {
                continue;
            }
            let number = running.life(server).unwrap_or_else(|| kept.next_life());
            making[at].window.life = number;
            if let Err(error) = self.started(running, slot, number) {
                self.give_up(running, making, at, error)?;
            }
        }
        let mut cold: Vec<_> = running.loads.values_mut().filter(|load| !load.is_warm).collect();
        let Some(first) = making.first().map(|one| one.slot) else { return Ok(()) };
        let cell = &self.schedule.cells[first.cell];
        // Who is made warm first waits longest for its first turn: that shall not be the same server each time.
        self.chance(first, 0).shuffle(&mut cold);
        for some in cold.chunks_mut(warm_at_once(cell.threads)) {
            match self.warm_up(some, cell) {
                // Each is made warm by itself then, at its first turn, and the one that cannot be says so.
                Err(error) if error.ends_a_run() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// What is left to chance before a turn of the windows that begin with `first`; turn 0 is the warm-up.
    fn chance(&self, first: Slot, turn: u32) -> Random {
        Random::seeded(self.seed ^ (u64::from(first.number) << 24) ^ u64::from(turn))
    }

    fn begin(&self, slot: Slot, kept: &Kept, capacities: &Capacities) -> Result<Making, LabError> {
        let cell = self.schedule.cells[slot.cell].clone();
        let now = Timestamp::now();
        Ok(Making {
            slot,
            window: Window {
                number: slot.number,
                block: slot.block,
                rate: capacities.rate(&cell)?,
                cell,
                arm: self.schedule.arms[slot.arm].name.to_owned(),
                life: 0,
                part: kept.part(),
                stolen: Vec::new(),
                unsteady: false,
                begin: now,
                end: now,
                measured: None,
                void: None,
            },
            sum: None,
            performance_schema_bytes: None,
            evidence: Evidence::default(),
            is_broken: false,
        })
    }

    /// Whether processors would halt in a cell whose load shall not rest. An open load shall.
    fn is_kept_awake(&self, cell: usize) -> bool {
        let cell = &self.schedule.cells[cell];
        let is_private = matches!(self.origin, Origin::Private { .. });
        is_private && !cell.load.is_open() && Awake::helps(cell.threads)
    }

    /// One turn of a window.
    fn turn(
        &self,
        running: &mut Running<'a>,
        kept: &mut Kept,
        making: &mut Making,
        turns: u32,
    ) -> Result<(), LabError> {
        let arm = &self.schedule.arms[making.slot.arm];
        let window = &mut making.window;
        window.life = running.life(arm.server).unwrap_or_else(|| kept.next_life());
        let (life, load) = self.at_work(running, making.slot, window.life)?;
        life.set(arm.scenario)?;
        let pace = window.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second });
        // Once in a window: it takes long on servers with many sessions.
        let written = making.sum.is_none().then(|| life.written()).transpose()?;
        let before = Counted::so_far(life, &self.suite.counters)?;
        let settle = self.reckoning().settle(&window.cell, turns);
        let length = self.reckoning().window(&window.cell) / turns;
        let mut tries = 0;
        let span = loop {
            let begin = Timestamp::now();
            let span = self.settled_span(life, load, pace, [settle, length])?;
            if making.sum.is_none() {
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
        making.sum = Some(match making.sum.take() {
            Some(sum) => sum.plus(span),
            None => span,
        });
        making.performance_schema_bytes = life.performance_schema_bytes()?;
        let after = Counted::so_far(life, &self.suite.counters)?;
        if let Some(reason) = life.misread(arm.scenario)? {
            window.void.get_or_insert(reason);
        }
        if let Some(before) = written
            && let Some(reason) = life.miswritten(arm.scenario, &before, transactions)?
        {
            window.void.get_or_insert(reason);
        }
        if let Some(load) = running.loads.get(&arm.server) {
            making.evidence.add(&load.lost_first, &before, &after);
            window.unsteady |= !load.is_steady;
        }
        Ok(())
    }

    /// What is known of a window after its last turn.
    fn end(&self, making: Making, turns: u32) -> Window {
        let Making { slot, mut window, sum, performance_schema_bytes, evidence, is_broken } =
            making;
        let Some(sum) = sum.filter(|_| !is_broken) else { return window };
        let measured = Measured { performance_schema_bytes, ..sum.measured() };
        let threads = window.cell.threads;
        let seconds = self.reckoning().window(&window.cell).as_secs_f64();
        let asked = Asked { seconds, turns };
        let scenario = self.schedule.arms[slot.arm].scenario;
        let proof = || evidence.disproof(scenario, threads, measured.transactions);
        window.void = window.void.or_else(proof).or_else(|| gate::judge(&measured, &asked));
        window.measured = Some(measured);
        window
    }

    /// After an error the server of a window is started anew for the next one: this one does not count,
    /// nor do others that had turns on it.
    fn give_up(
        &self,
        running: &mut Running<'a>,
        making: &mut [Making],
        at: usize,
        error: LabError,
    ) -> Result<(), LabError> {
        if error.ends_a_run() {
            return Err(error);
        }
        let server = |one: &Making| self.schedule.arms[one.slot.arm].server;
        let broken = server(&making[at]);
        running.end(broken);
        making[at].is_broken = true;
        let had_turns = |one: &&mut Making| server(one) == broken && one.sum.is_some();
        for one in making.iter_mut().filter(had_turns) {
            one.is_broken = true;
        }
        for one in making.iter_mut().filter(|one| one.is_broken) {
            one.window.void.get_or_insert_with(|| error.to_string());
        }
        Ok(())
    }
}
