//! In which order windows are made. The order follows from the seed alone: a run that is resumed makes
//! the windows that are missing, in the places that they had.

use waggle_stats::Random;

use crate::suite::{Scenario, Servers, Suite};
use crate::window::{Cell, Window};

/// A scenario, or the second arm of the baseline, and which server of a block has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm<'a> {
    /// Its name in a [`Window`].
    pub name: &'a str,
    /// What is set.
    pub scenario: &'a Scenario,
    /// Which of the servers of a block it is measured on, from 0.
    pub server: usize,
}

/// One window to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its place in the schedule, from 0.
    pub number: u32,
    /// Which pass over all arms.
    pub block: u32,
    /// Index of the cell.
    pub cell: usize,
    /// Index of the arm.
    pub arm: usize,
}

/// Every window of a run in its order.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    /// The cells that are run.
    pub cells: Vec<Cell>,
    /// The arms.
    pub arms: Vec<Arm<'a>>,
    /// The windows.
    pub slots: Vec<Slot>,
    servers: Servers,
}

/// The arms of a suite. Scenarios that start the server alike share one; the second arm of the baseline
/// has a server of its own where scenarios do not share one, since it shall differ from the baseline
/// as they do.
pub fn arms(suite: &Suite) -> Vec<Arm<'_>> {
    let mut starts: Vec<&[String]> = Vec::new();
    let mut arms = Vec::new();
    for scenario in &suite.scenarios {
        let known = starts.iter().position(|start| *start == scenario.start);
        let server = match (suite.servers, known) {
            (Servers::SideBySide, Some(known)) => known,
            _ => {
                starts.push(&scenario.start);
                starts.len() - 1
            }
        };
        arms.push(Arm { name: &scenario.name, scenario, server });
    }
    let baseline = arms.iter().find(|arm| arm.name == suite.baseline).cloned();
    arms.extend(baseline.map(|baseline| {
        let server = if starts.len() == 1 { baseline.server } else { starts.len() };
        Arm { name: Window::AGAIN, server, ..baseline }
    }));
    arms
}

impl<'a> Schedule<'a> {
    /// The schedule of a seed. Each block has an order of its own, which depends on the seed and its
    /// number only, so that more blocks do not change the order of the first ones.
    pub fn new(suite: &'a Suite, cells: &[Cell], blocks: u32, seed: u64) -> Schedule<'a> {
        let arms = arms(suite);
        let mut schedule =
            Schedule { cells: cells.to_vec(), arms, slots: Vec::new(), servers: suite.servers };
        for block in 0..blocks {
            let mut random = Random::seeded(Random::seeded(seed ^ u64::from(block) << 32).bits());
            for (cell, arm) in schedule.order(&mut random) {
                let number = schedule.slots.len() as u32;
                schedule.slots.push(Slot { number, block, cell, arm });
            }
        }
        schedule
    }

    /// Side by side, the arms of a cell are neighbours. One after another, the cells of an arm are.
    fn order(&self, random: &mut Random) -> Vec<(usize, usize)> {
        let mut shuffled = |count: usize| {
            let mut all: Vec<usize> = (0..count).collect();
            random.shuffle(&mut all);
            all
        };
        let (cells, arms) = (self.cells.len(), self.arms.len());
        let mut order = Vec::with_capacity(cells * arms);
        match self.servers {
            Servers::SideBySide => {
                for cell in shuffled(cells) {
                    order.extend(shuffled(arms).into_iter().map(|arm| (cell, arm)));
                }
            }
            Servers::OneAfterAnother => {
                for arm in shuffled(arms) {
                    order.extend(shuffled(cells).into_iter().map(|cell| (cell, arm)));
                }
            }
        }
        order
    }

    /// Servers that are there at the same time.
    pub fn servers_at_once(&self) -> usize {
        match self.servers {
            Servers::SideBySide => self.arms.iter().map(|arm| arm.server + 1).max().unwrap_or(0),
            Servers::OneAfterAnother => 1,
        }
    }

    /// Whether the servers of a block stay until its end.
    pub fn keeps_servers(&self) -> bool {
        self.servers == Servers::SideBySide
    }
}
