//! Which cells and how many blocks fit into a time, and how small an effect they will be able to show.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::analysis::Foreseen;
use crate::capacity::{CAPACITY_LOOKS, LOOK_FOR};
use crate::lengths::Lengths;
use crate::load::AGE_ROWS;
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite};
use crate::warm_up::warm_at_once;
use crate::window::Cell;

/// Fewer blocks are made only on request: the smallest p of 8 pairs by their signs is 0.008; that of 6, the fewest with
/// an interval, is 0.03.
pub const BLOCKS_MIN: u32 = 8;
/// More blocks are made only on request.
const BLOCKS_MAX: u32 = 40;
/// What one session adds to the time in which sessions stop one after another: 1,000 of them need about
/// as long as a transaction takes, 0.6 s. They stop twice in a turn.
const STOP_S: f64 = 0.0008;
/// Setting an arm, reading it back and reading what was counted, for each turn.
const SET_S: f64 = 0.045;
/// Starting and ending sysbench, and each of its sessions with the statements that it prepares.
const LOAD_S: f64 = 0.5;
const SESSION_S: f64 = 0.014;
/// The warm-up of a load, and what each session adds.
const WARM_S: f64 = 1.5;
const WARM_SESSION_S: f64 = 0.01;
/// Starting a server, with the copy of its files other than tables and redo log.
const SERVER_S: f64 = 2.0;
/// Rows per second when data is made, and bytes of a row with its index.
const ROWS_PER_S: f64 = 40_000.0;
/// Transactions per second while it is aged.
const AGED_PER_S: f64 = 1000.0;
/// What a row takes on the disk, bytes; copies are made at 300 MB/s.
pub(crate) const ROW_BYTES: f64 = 260.0;
const MIB: f64 = 1_048_576.0;
const COPY_BYTES_PER_S: f64 = 300e6;
/// Bytes of the redo log per second when it is written through ([`crate::redo`]), counted once.
const REDO_BYTES_PER_S: f64 = 140e6;
/// Rows per second when every index is read through ([`crate::buffer_pool`]).
const READ_ROWS_PER_S: f64 = 2.5e6;

/// What is run, and what is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The cells that are run.
    pub cells: Vec<Cell>,
    /// The cells that do not fit.
    pub left_out: Vec<Cell>,
    /// How often each arm is measured in each cell.
    pub blocks: u32,
    /// How long it will take, roughly, s.
    pub seconds: f64,
}

impl Choice {
    /// Number of windows.
    pub fn windows(&self, suite: &Suite) -> usize {
        Schedule::new(suite, &self.cells, self.blocks, 0).slots.len()
    }
}

/// Estimates how long a run takes.
#[derive(Clone, Copy, Debug)]
pub struct TimeEstimate<'a> {
    /// What is compared.
    pub suite: &'a Suite,
    /// How much data there is.
    pub scale: Scale,
    /// How long things take.
    pub lengths: Lengths,
    /// Whether on a server in use.
    pub is_in_use: bool,
    /// Whether the load is ours, and not that of others.
    pub has_load: bool,
}

impl TimeEstimate<'_> {
    /// Chooses from the cells that were asked for. Without a budget all are run. With one, as many as have at least
    /// [`BLOCKS_MIN`] blocks, the most telling first; a cell that takes too long is skipped. Closed loads come before
    /// those at a fixed rate, and numbers of threads in the middle and at the ends before those between. The first
    /// workload has one level more than the second, and the second one more than the third.
    pub fn choose(&self, asked: &[Cell], blocks: Option<u32>, budget: Option<Duration>) -> Choice {
        let least = blocks.unwrap_or(BLOCKS_MIN);
        let Some(budget) = budget.map(|budget| budget.as_secs_f64()) else {
            let (cells, left_out) = (asked.to_vec(), Vec::new());
            return Choice { seconds: self.seconds(&cells, least), cells, left_out, blocks: least };
        };
        let mut chosen: Vec<Cell> = Vec::new();
        for cell in by_worth(self.suite, asked) {
            chosen.push(cell);
            if chosen.len() > 1 && self.seconds(&chosen, least) > budget {
                chosen.pop();
            }
        }
        let most = blocks.unwrap_or(BLOCKS_MAX);
        let fits = |blocks: &u32| self.seconds(&chosen, *blocks) <= budget;
        let blocks = (least..=most).rev().find(fits).unwrap_or(least);
        let (cells, left_out) = asked.iter().cloned().partition(|cell| chosen.contains(cell));
        Choice { seconds: self.seconds(&chosen, blocks), cells, left_out, blocks }
    }

    /// What these cells will be able to show; `None` where they have no interval.
    pub fn foreseen(&self, cells: &[Cell], blocks: u32) -> Option<Foreseen> {
        Foreseen::of(self.suite, cells, blocks, |cell| self.turns(cell))
    }

    /// How often the arms of a cell take turns.
    pub(crate) fn turns(&self, cell: &Cell) -> u32 {
        self.lengths.turns(self.suite, cell, self.is_in_use)
    }

    /// Length of a window. Sessions of others do not make it longer: most of them may be idle.
    pub(crate) fn window(&self, cell: &Cell) -> Duration {
        if self.has_load { self.lengths.window_of(cell.threads) } else { self.lengths.window }
    }

    /// Time under load before each turn of a window of a cell. The sessions of others are never stopped.
    pub(crate) fn settle(&self, cell: &Cell, turns: u32) -> Duration {
        if self.has_load { self.lengths.settle_of(cell, turns) } else { self.lengths.settle }
    }

    /// How long a run takes, s.
    fn seconds(&self, cells: &[Cell], blocks: u32) -> f64 {
        let suite = self.suite;
        let schedule = Schedule::new(suite, cells, 0, 0);
        let (beside, apart): (Vec<&Cell>, Vec<&Cell>) =
            cells.iter().partition(|cell| suite.keeps_servers(cell));
        let at_once = if beside.is_empty() { 0 } else { schedule.servers_at_once() };
        let restarts =
            schedule.arms.iter().filter(|arm| apart.iter().any(|cell| suite.has(cell, arm.name)));
        let servers = (at_once + restarts.count()) as f64;
        let windows: f64 = cells.iter().map(|cell| self.cell_s(&schedule, cell)).sum();
        let server = self.server_s();
        let block = servers * server + windows;
        let before_blocks = self.data_s() + look(cells, self.lengths, server);
        before_blocks + f64::from(blocks) * block
    }

    /// What the windows and the loads of a cell take in a block, s.
    fn cell_s(&self, schedule: &Schedule<'_>, cell: &Cell) -> f64 {
        let arms = self.arms(schedule, cell);
        let (loads, at_once) = match self.suite.keeps_servers(cell) {
            true => (schedule.servers_at_once().min(arms), warm_at_once(cell.threads)),
            false => (arms, 1),
        };
        let loads = if self.has_load { loads } else { 0 };
        arms as f64 * self.window_s(cell)
            + loads as f64 * start_s(cell.threads)
            + loads.div_ceil(at_once) as f64 * warm_s(self.lengths, cell.threads)
    }

    /// What a window of a cell takes with its part of the starts of loads, and of a server of its own, s.
    pub(crate) fn slot_s(&self, schedule: &Schedule<'_>, cell: &Cell) -> f64 {
        let server = if self.suite.keeps_servers(cell) { 0.0 } else { self.server_s() };
        self.cell_s(schedule, cell) / self.arms(schedule, cell).max(1) as f64 + server
    }

    fn arms(&self, schedule: &Schedule<'_>, cell: &Cell) -> usize {
        schedule.arms.iter().filter(|arm| self.suite.has(cell, arm.name)).count()
    }

    /// What a window takes with all that is around its turns, s.
    fn window_s(&self, cell: &Cell) -> f64 {
        let turns = self.turns(cell);
        let settle = self.settle(cell, turns);
        let stops = match (self.has_load, settle.is_zero()) {
            (false, _) => 0.0,
            (true, true) => 1.0,
            (true, false) => 2.0,
        };
        let turn = SET_S + settle.as_secs_f64() + stops * STOP_S * f64::from(cell.threads);
        self.window(cell).as_secs_f64() + f64::from(turns) * turn
    }

    /// What it takes until the tables are there, s.
    fn data_s(&self) -> f64 {
        if !self.has_load {
            return 0.0;
        }
        let is_aged = !self.is_in_use && self.suite.data.age_with.is_some();
        let aged = if is_aged { self.rows() / AGE_ROWS as f64 / AGED_PER_S } else { 0.0 };
        // Those on which scenarios are tried, and the one that they are copied from.
        let tried = if self.is_in_use { 0 } else { self.suite.starts().len() + 1 };
        (1 + tried) as f64 * SERVER_S + self.rows() / ROWS_PER_S + aged
    }

    /// What the start of a server takes, s: tables and redo log are copied, the log is written through, and the tables are
    /// read. A server in use is not started.
    fn server_s(&self) -> f64 {
        if self.is_in_use {
            return 0.0;
        }
        let redo = f64::from(self.suite.data.redo_log_mib.of(self.scale)) * MIB;
        let copied = (self.rows() * ROW_BYTES + redo) / COPY_BYTES_PER_S;
        SERVER_S + copied + redo / REDO_BYTES_PER_S + self.rows() / READ_ROWS_PER_S
    }

    /// Rows of all tables.
    fn rows(&self) -> f64 {
        f64::from(self.suite.data.tables) * f64::from(self.suite.data.rows.of(self.scale))
    }
}

/// The most telling cells first. A fixed order tells least: a drift within a block is in its effects.
fn by_worth(suite: &Suite, asked: &[Cell]) -> Vec<Cell> {
    let (mut closed, open): (Vec<&Cell>, Vec<&Cell>) =
        asked.iter().partition(|cell| !cell.load.is_open());
    let mut levels: Vec<u32> = closed.iter().map(|cell| cell.threads).collect();
    levels.sort_unstable();
    levels.dedup();
    let levels = spread(&levels);
    let mut workloads: Vec<&str> = Vec::new();
    for cell in &closed {
        if !workloads.contains(&cell.workload.as_str()) {
            workloads.push(&cell.workload);
        }
    }
    let rank = |cell: &&Cell| {
        let workload = workloads.iter().position(|workload| *workload == cell.workload);
        let level = levels.iter().position(|level| *level == cell.threads);
        workload.unwrap_or(0) + level.unwrap_or(0)
    };
    closed.sort_by_key(|cell| (suite.is_as_listed(cell), rank(cell)));
    closed.into_iter().chain(open).cloned().collect()
}

/// The middle first, then whatever is farthest from what was taken.
fn spread(levels: &[u32]) -> Vec<u32> {
    let mut left: Vec<usize> = (0..levels.len()).collect();
    let mut taken: Vec<usize> = Vec::new();
    while !left.is_empty() {
        let distance = |at: usize| taken.iter().map(|other| other.abs_diff(at)).min();
        let next = match taken.is_empty() {
            true => levels.len() / 2,
            false => {
                left.iter().copied().max_by_key(|at| (distance(*at), usize::MAX - at)).unwrap_or(0)
            }
        };
        left.retain(|at| *at != next);
        taken.push(next);
    }
    taken.into_iter().map(|at| levels[at]).collect()
}

/// How long a load takes to start and to end, s.
fn start_s(threads: u32) -> f64 {
    LOAD_S + SESSION_S * f64::from(threads)
}

/// How long it takes until a load is warm, s.
fn warm_s(lengths: Lengths, threads: u32) -> f64 {
    let longest = lengths.warm_up_of(threads).as_secs_f64();
    longest.min(WARM_S + WARM_SESSION_S * f64::from(threads))
}

/// How long it takes to measure what the baseline can do with the workloads that have loads at a fixed rate, s;
/// `server` is what one start takes.
fn look(cells: &[Cell], lengths: Lengths, server: f64) -> f64 {
    let open: Vec<&Cell> = cells.iter().filter(|cell| cell.load.is_open()).collect();
    let workloads: BTreeSet<(&str, u32)> =
        open.iter().map(|cell| (cell.workload.as_str(), cell.threads)).collect();
    let until_warm = |threads: u32| start_s(threads) + warm_s(lengths, threads);
    let warm: f64 = workloads.iter().map(|(_, threads)| until_warm(*threads)).sum();
    // As fast as it goes, and at each rate.
    let looks = CAPACITY_LOOKS as usize * (workloads.len() + open.len());
    if open.is_empty() { 0.0 } else { server + warm + looks as f64 * LOOK_FOR.as_secs_f64() }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
