//! The order of the windows. It follows from the seed alone: a run that is resumed measures the missing windows in the
//! places that they had.

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
    suite: &'a Suite,
    seed: u64,
}

/// The arms of a suite. Scenarios that start the server alike share one; the second arm of the baseline
/// has a server of its own where scenarios do not all share one, since it shall differ from the baseline
/// as they do. That goes by the whole suite: what a run leaves out changes nothing about the others.
///
/// On a shared server an arm may leave something for the next, and the sessions log in under none of them. So one of the
/// arms that share is there once more, alone on a server: see [`Window::ALONE`].
pub fn arms(suite: &Suite) -> Vec<Arm<'_>> {
    let starts = suite.starts();
    let shared = |scenario: &Scenario| starts.iter().position(|start| *start == scenario.start);
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
        let is_shared_by_all = suite.servers == Servers::SideBySide && !suite.starts_differ;
        let server = if is_shared_by_all { baseline.server } else { count };
        Arm { name: Window::AGAIN, server, ..baseline }
    }));
    let alone = |scenario| Arm { name: Window::ALONE, scenario, server: count + 1 };
    arms.extend(suite.also_alone().map(alone));
    arms
}

/// Numbers in a random order.
fn shuffled(numbers: impl Iterator<Item = usize>, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = numbers.collect();
    random.shuffle(&mut all);
    all
}

impl<'a> Schedule<'a> {
    /// The schedule of a seed. Each block has an order of its own, which depends on the seed and its
    /// number only, so that more blocks do not change the order of the first ones.
    pub fn new(suite: &'a Suite, cells: &[Cell], blocks: u32, seed: u64) -> Schedule<'a> {
        let arms = arms(suite);
        let mut schedule = Schedule { cells: cells.to_vec(), arms, slots: Vec::new(), suite, seed };
        for block in 0..blocks {
            let mut random = Random::seeded(Random::seeded(seed ^ (u64::from(block) << 32)).bits());
            for (cell, arm) in schedule.order(&mut random) {
                let number = schedule.slots.len() as u32;
                schedule.slots.push(Slot { number, block, cell, arm });
            }
        }
        schedule
    }

    /// Side by side, the arms of a cell are neighbours. One after another, the cells of an arm are; they
    /// come when those side by side are done.
    fn order(&self, random: &mut Random) -> Vec<(usize, usize)> {
        let (beside, apart): (Vec<usize>, Vec<usize>) =
            (0..self.cells.len()).partition(|cell| self.keeps_servers(*cell));
        let mut order = Vec::with_capacity(self.cells.len() * self.arms.len());
        for cell in shuffled(beside.into_iter(), random) {
            let arms = self.arms_of(&self.cells[cell], random);
            order.extend(arms.into_iter().map(|arm| (cell, arm)));
        }
        for arm in shuffled(0..self.arms.len(), random) {
            let cells = shuffled(apart.iter().copied(), random).into_iter();
            let has = |cell: &usize| self.suite.has(&self.cells[*cell], self.arms[arm].name);
            order.extend(cells.filter(has).map(|cell| (cell, arm)));
        }
        order
    }

    /// The arms of a cell as they follow each other.
    fn arms_of(&self, cell: &Cell, random: &mut Random) -> Vec<usize> {
        let mut arms = shuffled(0..self.arms.len(), random);
        arms.retain(|arm| self.suite.has(cell, self.arms[*arm].name));
        let order = self.suite.order(cell);
        if let Some(order) = order.filter(|order| order.sequence == Sequence::AsListed) {
            // Stable: of two arms that are set alike, chance says which comes first.
            arms.sort_by_key(|arm| {
                let name = &self.arms[*arm].scenario.name;
                order.scenarios.iter().position(|scenario| scenario == name)
            });
        }
        arms
    }

    /// Whether a stored window has the place that it would have here.
    pub fn has(&self, window: &Window) -> bool {
        self.slots.get(window.number as usize).is_some_and(|slot| {
            slot.block == window.block
                && self.cells[slot.cell] == window.cell
                && self.arms[slot.arm].name == window.arm
        })
    }

    /// The place of a server among those that a block starts, from 0.
    ///
    /// Of two servers that are set alike, the one that was started first took 0.8 % (standard error 0.1) more processor
    /// time for a statement, as long as both lived: `docs/decisions/0013`. So of as many blocks as there are servers,
    /// each is first in one, second in one, and so on.
    pub(crate) fn place_of_start(&self, server: usize, block: u32) -> usize {
        let count = self.servers_at_once();
        let (round, turn) = (block as usize / count, block as usize % count);
        // Not the sequence from which a block has the order of its windows.
        let mut random = Random::seeded(!self.seed ^ ((round as u64) << 32));
        let first = shuffled(0..count, &mut random).iter().position(|it| *it == server);
        (first.unwrap_or(0) + turn) % count
    }

    /// Servers that are there at the same time.
    pub fn servers_at_once(&self) -> usize {
        match (0..self.cells.len()).any(|cell| self.keeps_servers(cell)) {
            true => self.arms.iter().map(|arm| arm.server + 1).max().unwrap_or(0),
            false => 1,
        }
    }

    /// Whether the server of a slot has no other arm, or is started for this one.
    pub(crate) fn has_one_arm(&self, slot: Slot) -> bool {
        let server = self.arms[slot.arm].server;
        let arms = self.arms.iter().filter(|arm| arm.server == server);
        !self.keeps_servers(slot.cell) || arms.count() == 1
    }

    /// Whether the servers of a cell stay until the end of its block.
    pub fn keeps_servers(&self, cell: usize) -> bool {
        self.suite.keeps_servers(&self.cells[cell])
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
    fn who_has_a_server_alone_follows_from_the_starts_and_the_restarts() {
        let alone = |suite: &Suite| -> BTreeSet<String> {
            let schedule = schedule(suite, 1, 0);
            let slots = schedule.slots.iter().filter(|slot| schedule.has_one_arm(**slot));
            slots.map(|slot| schedule.arms[slot.arm].name.to_owned()).collect()
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut rds = Suite::find("rds").unwrap();
        let of_one: BTreeSet<String> = names(&["pfsoff", Window::AGAIN, Window::ALONE]);
        assert_eq!(alone(&rds), of_one);
        assert_eq!(alone(&suite_of_one_start()), BTreeSet::new());
        rds.servers = Servers::OneAfterAnother;
        assert!(alone(&rds).len() > rds.scenarios.len());
    }

    /// The suite `rds` with a baseline that starts the server as the other scenarios do.
    fn suite_of_one_start() -> Suite {
        let text = Suite::text("rds").unwrap();
        let off = "start = [\"--performance-schema=OFF\"]";
        let on = "start = [\"--performance-schema=ON\"]\nprofile = \"pfson_conoff_insoff\"";
        assert_eq!(text.matches(off).count(), 1);
        Suite::parse("one-start", &text.replace(off, on)).unwrap()
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
            let arms = suite.scenarios.len() + 1 + usize::from(suite.also_alone().is_some());
            assert_eq!(all.len(), 2 * schedule.cells.len() * arms, "{name}");
        }
    }

    #[test]
    fn each_server_has_each_place_among_the_starts_equally_often() {
        let suite = Suite::find("rds").unwrap();
        let schedule = schedule(&suite, 8, 7);
        let of_block = |block| [0, 1, 2, 3].map(|server| schedule.place_of_start(server, block));
        for server in 0..4 {
            for round in [0..4, 4..8] {
                let places: BTreeSet<usize> = round.map(|block| of_block(block)[server]).collect();
                assert_eq!(places.len(), 4, "{server}");
            }
        }
        for block in 0..8 {
            assert_eq!(BTreeSet::from(of_block(block)).len(), 4, "{block}");
        }
        // Another round has another order.
        assert_ne!(of_block(0), of_block(4));
    }

    #[test]
    fn servers_are_shared_by_what_starts_alike_and_the_second_baseline_differs_as_arms_do() {
        let suite = Suite::find("rds").unwrap();
        let rds = schedule(&suite, 1, 1);
        let servers: Vec<usize> = rds.arms.iter().map(|arm| arm.server).collect();
        assert_eq!(servers, [0, 1, 1, 1, 1, 1, 2, 3]);
        assert_eq!((rds.servers_at_once(), rds.keeps_servers(0)), (4, true));
        let alone = rds.arms.last().unwrap();
        assert_eq!((alone.name, alone.scenario), (Window::ALONE, &suite.scenarios[1]));
        let suite = Suite::find("line").unwrap();
        let line = schedule(&suite, 1, 1);
        let servers: BTreeSet<usize> = line.arms.iter().map(|arm| arm.server).collect();
        assert_eq!(servers.len(), 10);
        assert_eq!((line.servers_at_once(), line.keeps_servers(0)), (1, false));
    }

    #[test]
    fn where_every_server_has_one_arm_none_is_there_once_more() {
        let mut suite = Suite::find("rds").unwrap();
        suite.scenarios.truncate(2);
        let servers: Vec<usize> = arms(&suite).iter().map(|arm| arm.server).collect();
        assert_eq!((servers, suite.also_alone()), (vec![0, 1, 2], None));
        // All on one server: it rests alike for all.
        let mut suite = suite_of_one_start();
        let servers: Vec<usize> = arms(&suite).iter().map(|arm| arm.server).collect();
        assert_eq!(servers, [0; 7]);
        suite.scenarios.truncate(1);
        let servers: Vec<usize> = arms(&suite).iter().map(|arm| arm.server).collect();
        assert_eq!(servers, [0; 2]);
    }

    #[test]
    fn the_baseline_alone_is_compared_with_itself_on_another_server_as_in_the_whole_suite() {
        for name in ["rds", "modb", "line"] {
            let mut suite = Suite::find(name).unwrap();
            let baseline = suite.baseline.clone();
            suite.scenarios.retain(|scenario| scenario.name == baseline);
            let servers: Vec<(&str, usize)> =
                arms(&suite).iter().map(|arm| (arm.name, arm.server)).collect();
            assert_eq!(servers, [(baseline.as_str(), 0), (Window::AGAIN, 1)], "{name}");
        }
        let mut suite = Suite::find("rds").unwrap();
        suite.scenarios.truncate(1);
        assert_eq!(schedule(&suite, 1, 1).servers_at_once(), 2);
    }

    #[test]
    fn an_order_with_a_restart_comes_last_an_arm_after_the_other() {
        let suite = Suite::find("modb").unwrap();
        let schedule = schedule(&suite, 2, 5);
        let restarts = |slot: &Slot| !schedule.keeps_servers(slot.cell);
        for block in schedule.slots.chunk_by(|one, other| one.block == other.block) {
            let first = block.iter().position(restarts).unwrap();
            assert!(block[first..].iter().all(restarts));
            let arms: Vec<&str> =
                block[first..].iter().map(|slot| schedule.arms[slot.arm].name).collect();
            // Six scenarios and the second arm of the baseline; none shares a server.
            assert_eq!((arms.len(), arms.iter().collect::<BTreeSet<_>>().len()), (7, 7));
            assert!(!arms.contains(&Window::ALONE));
        }
        let shared = schedule.arms.last().unwrap();
        assert_eq!((shared.name, shared.scenario.name.as_str()), (Window::ALONE, "basic"));
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
            .filter(|name| ![Window::AGAIN, Window::ALONE].contains(name))
            .collect();
        let order = suite.orders.iter().find(|order| order.name == "cumulative").unwrap();
        assert_eq!(cumulative, order.scenarios);
    }
}
