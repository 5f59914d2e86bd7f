//! In which order windows are made. The order follows from the seed alone: a run that is resumed makes
//! the windows that are missing, in the places that they had.

use waggle_stats::Random;

use crate::suite::{Scenario, Sequence, Servers, Suite};
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
    let lives = suite.lives();
    let shared = |scenario: &Scenario| lives.iter().position(|start| *start == scenario.start);
    let server = |(at, scenario): (usize, &Scenario)| match suite.servers {
        Servers::SideBySide => shared(scenario).unwrap_or(at),
        Servers::OneAfterAnother => at,
    };
    let servers: Vec<usize> = suite.scenarios.iter().enumerate().map(server).collect();
    let count = servers.iter().max().map_or(0, |last| last + 1);
    let with_server = suite.scenarios.iter().zip(servers);
    let mut arms: Vec<Arm<'_>> = with_server
        .map(|(scenario, server)| Arm { name: &scenario.name, scenario, server })
        .collect();
    let baseline = arms.iter().find(|arm| arm.name == suite.baseline).cloned();
    arms.extend(baseline.map(|baseline| {
        let server = if count == 1 { baseline.server } else { count };
        Arm { name: Window::AGAIN, server, ..baseline }
    }));
    arms
}

/// The numbers below a limit in a random order.
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    random.shuffle(&mut all);
    all
}

impl<'a> Schedule<'a> {
    /// The schedule of a seed. Each block has an order of its own, which depends on the seed and its
    /// number only, so that more blocks do not change the order of the first ones.
    pub fn new(suite: &'a Suite, cells: &[Cell], blocks: u32, seed: u64) -> Schedule<'a> {
        let arms = arms(suite);
        let mut schedule =
            Schedule { cells: cells.to_vec(), arms, slots: Vec::new(), servers: suite.servers };
        for block in 0..blocks {
            let mut random = Random::seeded(Random::seeded(seed ^ (u64::from(block) << 32)).bits());
            for (cell, arm) in schedule.order(suite, &mut random) {
                let number = schedule.slots.len() as u32;
                schedule.slots.push(Slot { number, block, cell, arm });
            }
        }
        schedule
    }

    /// Side by side, the arms of a cell are neighbours. One after another, the cells of an arm are.
    fn order(&self, suite: &Suite, random: &mut Random) -> Vec<(usize, usize)> {
        let (cells, arms) = (self.cells.len(), self.arms.len());
        let mut order = Vec::with_capacity(cells * arms);
        match self.servers {
            Servers::SideBySide => {
                for cell in shuffled(cells, random) {
                    let arms = self.arms_of(suite, &self.cells[cell], random);
                    order.extend(arms.into_iter().map(|arm| (cell, arm)));
                }
            }
            Servers::OneAfterAnother => {
                for arm in shuffled(arms, random) {
                    let cells = shuffled(cells, random).into_iter();
                    let has = |cell: &usize| suite.has(&self.cells[*cell], self.arms[arm].name);
                    order.extend(cells.filter(has).map(|cell| (cell, arm)));
                }
            }
        }
        order
    }

    /// The arms of a cell as they follow each other.
    fn arms_of(&self, suite: &Suite, cell: &Cell, random: &mut Random) -> Vec<usize> {
        let mut arms = shuffled(self.arms.len(), random);
        arms.retain(|arm| suite.has(cell, self.arms[*arm].name));
        if let Some(order) = suite.order(cell).filter(|order| order.sequence == Sequence::AsListed)
        {
            // Stable: the second arm of the baseline is before or after the first by chance.
            arms.sort_by_key(|arm| {
                let name = &self.arms[*arm].scenario.name;
                order.scenarios.iter().position(|scenario| scenario == name)
            });
        }
        arms
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn schedule(suite: &Suite, blocks: u32, seed: u64) -> Schedule<'_> {
        Schedule::new(suite, &suite.cells(), blocks, seed)
    }

    #[test]
    fn a_seed_has_one_order_and_more_blocks_do_not_change_the_first() {
        let suite = Suite::find("rds").unwrap();
        let (few, many) = (schedule(&suite, 2, 7), schedule(&suite, 3, 7));
        assert_eq!(few.slots, many.slots[..few.slots.len()]);
        assert_ne!(few.slots, schedule(&suite, 2, 8).slots);
        let numbers: Vec<u32> = many.slots.iter().map(|slot| slot.number).collect();
        assert!(numbers.iter().enumerate().all(|(at, number)| at as u32 == *number));
    }

    #[test]
    fn every_arm_is_once_in_every_cell_of_every_block() {
        for name in ["rds", "line"] {
            let suite = Suite::find(name).unwrap();
            let schedule = schedule(&suite, 2, 1);
            let all: BTreeSet<_> =
                schedule.slots.iter().map(|slot| (slot.block, slot.cell, slot.arm)).collect();
            assert_eq!(all.len(), schedule.slots.len(), "{name}");
            assert_eq!(all.len(), 2 * schedule.cells.len() * (suite.scenarios.len() + 1), "{name}");
        }
    }

    #[test]
    fn servers_are_shared_by_what_starts_alike_and_the_second_baseline_differs_as_arms_do() {
        let suite = Suite::find("rds").unwrap();
        let rds = schedule(&suite, 1, 1);
        let servers: Vec<usize> = rds.arms.iter().map(|arm| arm.server).collect();
        assert_eq!(servers, [0, 1, 1, 1, 1, 1, 2]);
        assert_eq!((rds.servers_at_once(), rds.keeps_servers()), (3, true));
        let suite = Suite::find("line").unwrap();
        let line = schedule(&suite, 1, 1);
        let servers: BTreeSet<usize> = line.arms.iter().map(|arm| arm.server).collect();
        assert_eq!(servers.len(), 10);
        assert_eq!((line.servers_at_once(), line.keeps_servers()), (1, false));
    }

    #[test]
    fn an_order_has_its_scenarios_only_and_as_listed_where_it_says_so() {
        let suite = Suite::find("modb").unwrap();
        let schedule = schedule(&suite, 3, 5);
        let cell = |slot: &Slot| &schedule.cells[slot.cell];
        let cumulative: Vec<&str> = schedule
            .slots
            .iter()
            .filter(|slot| slot.block == 1 && cell(slot).order.as_deref() == Some("cumulative"))
            .map(|slot| schedule.arms[slot.arm].name)
            .filter(|name| *name != Window::AGAIN)
            .collect();
        let order = suite.orders.iter().find(|order| order.name == "cumulative").unwrap();
        assert_eq!(cumulative, order.scenarios);
    }
}
