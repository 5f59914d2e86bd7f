//! What fits into a time: which cells, and how many blocks.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capacity::{CAPACITY_LOOKS, LOOK_FOR};
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite};
use crate::window::{Cell, Load};

/// Fewer blocks cannot tell a cost: the smallest p of 8 pairs by their signs is 0.008, that of 5 is
/// 0.06.
pub const BLOCKS_MIN: u32 = 8;
/// More blocks are made only where somebody asks for them.
const BLOCKS_MAX: u32 = 40;
/// Up to so many sessions a window is as long as asked.
pub const THREADS: u32 = 256;
/// The shortest turn of a window, and what it has at least for each session: a transaction of a stock
/// script takes about 1 ms of two processors.
pub const TURN_S: f64 = 0.05;
pub(crate) const SESSION_TURN_S: f64 = 0.0025;
/// Time under load at the beginning of a turn, which does not count, is at least this: what was set and
/// read back has been through the caches of the processors.
const SETTLE_TURN: Duration = Duration::from_millis(25);
/// Standard deviation between neighbours on a shared host with two processors, %
/// (`docs/decisions/0013-arms-take-turns.md`).
pub const TURNS_DIFFER_BY_PERCENT: f64 = 10.0;
/// What one session adds to the time in which sessions stop one after another: 1,000 of them need about
/// as long as a transaction takes, 0.6 s. They stop twice in a window.
const STOP_S: f64 = 0.0008;
/// Setting an arm, reading it back and reading what was counted, for each turn.
const SET_S: f64 = 0.045;
/// Starting and ending sysbench, and each of its sessions with the statements that it prepares.
const LOAD_S: f64 = 0.5;
const SESSION_S: f64 = 0.014;
/// Until a load and its server are warm, and what each session adds.
const WARM_S: f64 = 1.5;
const WARM_SESSION_S: f64 = 0.01;
/// Starting a server.
const SERVER_S: f64 = 2.0;
/// Rows per second when data is made, and bytes of a row with its index.
const ROWS_PER_S: f64 = 40_000.0;
/// What a row takes on the disk, bytes; copies are made at 300 MB/s.
pub(crate) const ROW_BYTES: f64 = 260.0;
const COPY_BYTES_PER_S: f64 = 300e6;

/// How long things take at a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// A window, with up to [`THREADS`] sessions; see [`Lengths::window_of`].
    pub window: Duration,
    /// Time under load before each window, which does not count; see [`Lengths::settle_of`].
    pub settle: Duration,
    /// Longest warm-up of a server and its load, with up to [`THREADS`] sessions; it ends when the
    /// throughput is steady. See [`Lengths::warm_up_of`].
    pub warm_up: Duration,
}

impl Lengths {
    /// Those of a scale.
    pub fn of(scale: Scale) -> Lengths {
        let ms = Duration::from_millis;
        match scale {
            Scale::Tiny => Lengths { window: ms(400), settle: ms(300), warm_up: ms(3000) },
            Scale::Small => Lengths { window: ms(2000), settle: ms(600), warm_up: ms(10_000) },
            Scale::Full => Lengths { window: ms(10_000), settle: ms(2000), warm_up: ms(60_000) },
        }
    }

    /// How often arms take turns until each has a window: a turn is 50 ms, or as long as a few transactions
    /// where sessions are so many that these are longer.
    pub fn turns(self, threads: u32) -> u32 {
        let turn = TURN_S.max(SESSION_TURN_S * f64::from(threads));
        ((self.window.as_secs_f64() / turn).round() as u32).max(1)
    }

    /// Time under load before each turn of a window with so many.
    pub fn settle_of(self, turns: u32) -> Duration {
        (self.settle / turns).max(SETTLE_TURN)
    }

    /// A window with so many sessions. The more there are, the longer each of their transactions takes,
    /// and a window has to hold whole ones of each.
    pub fn window_of(self, threads: u32) -> Duration {
        self.window.mul_f64(longer_by(threads))
    }

    /// The longest warm-up with so many sessions, each of which has to be warm.
    pub fn warm_up_of(self, threads: u32) -> Duration {
        self.warm_up.mul_f64(longer_by(threads))
    }
}

fn longer_by(threads: u32) -> f64 {
    (f64::from(threads) / f64::from(THREADS)).max(1.0)
}

/// What is run, and what is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The cells that are run.
    pub cells: Vec<Cell>,
    /// The cells that do not fit.
    pub left_out: Vec<Cell>,
    /// How often each arm is measured in each cell.
    pub blocks: u32,
    /// How long it will take, s, by a rough reckoning.
    pub seconds: f64,
}

/// Chooses from the cells that were asked for. Without a budget all are run. With one, as many as have at
/// least [`BLOCKS_MIN`] blocks, those that say most first; one that is too dear makes room for the next.
/// Closed loads come before those at a fixed rate, numbers of threads in the middle and at the ends before
/// those between, and the first workload has one level more than the second, that one more than the third.
pub fn choose(
    suite: &Suite,
    asked: &[Cell],
    scale: Scale,
    lengths: Lengths,
    blocks: Option<u32>,
    budget: Option<Duration>,
) -> Choice {
    let least = blocks.unwrap_or(BLOCKS_MIN);
    let cost = |cells: &[Cell], blocks: u32| seconds(suite, cells, scale, lengths, blocks);
    let Some(budget) = budget.map(|budget| budget.as_secs_f64()) else {
        let (cells, left_out) = (asked.to_vec(), Vec::new());
        return Choice { seconds: cost(&cells, least), cells, left_out, blocks: least };
    };
    let mut chosen: Vec<Cell> = Vec::new();
    for cell in by_worth(asked) {
        chosen.push(cell);
        if chosen.len() > 1 && cost(&chosen, least) > budget {
            chosen.pop();
        }
    }
    let most = blocks.unwrap_or(BLOCKS_MAX);
    let fits = |blocks: &u32| cost(&chosen, *blocks) <= budget;
    let blocks = (least..=most).rev().find(fits).unwrap_or(least);
    let (cells, left_out) = asked.iter().cloned().partition(|cell| chosen.contains(cell));
    Choice { seconds: cost(&chosen, blocks), cells, left_out, blocks }
}

/// The smallest effect that the interval of a cell with few sessions leaves 0 out for in 4 of 5 cases, %,
/// where turns of two arms differ by [`TURNS_DIFFER_BY_PERCENT`]; what it was is known only after the run.
/// `None` for too few blocks.
pub fn detectable_percent(blocks: u32, lengths: Lengths) -> Option<f64> {
    let spread = TURNS_DIFFER_BY_PERCENT / f64::from(lengths.turns(1)).sqrt();
    Some(waggle_stats::detectable(blocks as usize, 0.05, 0.8)? * spread)
}

/// The cells that say most first.
fn by_worth(asked: &[Cell]) -> Vec<Cell> {
    let (mut closed, open): (Vec<&Cell>, Vec<&Cell>) =
        asked.iter().partition(|cell| cell.load == Load::Closed);
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
    closed.sort_by_key(rank);
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

/// How long a run takes, s.
fn seconds(suite: &Suite, cells: &[Cell], scale: Scale, lengths: Lengths, blocks: u32) -> f64 {
    let schedule = Schedule::new(suite, cells, 0, 0);
    let arms_of =
        |cell: &Cell| schedule.arms.iter().filter(|arm| suite.has(cell, arm.name)).count();
    let (beside, apart): (Vec<&Cell>, Vec<&Cell>) =
        cells.iter().partition(|cell| suite.keeps_servers(cell));
    let at_once = if beside.is_empty() { 0 } else { schedule.servers_at_once() };
    let restarts =
        schedule.arms.iter().filter(|arm| apart.iter().any(|cell| suite.has(cell, arm.name)));
    let servers = (at_once + restarts.count()) as f64;
    let window = |cell: &Cell| {
        let turns = lengths.turns(cell.threads);
        let stops = 2.0 * STOP_S * f64::from(cell.threads);
        let turn = SET_S + lengths.settle_of(turns).as_secs_f64() + stops;
        lengths.window_of(cell.threads).as_secs_f64() + f64::from(turns) * turn
    };
    let load = |cell: &Cell| load_s(lengths, cell.threads);
    let loads_of = |cell: &Cell| match suite.keeps_servers(cell) {
        true => schedule.servers_at_once().min(arms_of(cell)),
        false => arms_of(cell),
    };
    let of_cell =
        |cell: &Cell| arms_of(cell) as f64 * window(cell) + loads_of(cell) as f64 * load(cell);
    let windows: f64 = cells.iter().map(of_cell).sum();
    let rows = f64::from(suite.data.tables) * f64::from(suite.data.rows.of(scale));
    let server = SERVER_S + rows * ROW_BYTES / COPY_BYTES_PER_S;
    let block = servers * server + windows;
    SERVER_S + rows / ROWS_PER_S + look(cells, lengths, server) + f64::from(blocks) * block
}

/// How long it takes until a load is warm, s.
fn load_s(lengths: Lengths, threads: u32) -> f64 {
    let longest = lengths.warm_up_of(threads).as_secs_f64();
    let sessions = f64::from(threads);
    LOAD_S + SESSION_S * sessions + longest.min(WARM_S + WARM_SESSION_S * sessions)
}

/// How long it takes to see what the baseline can do with the workloads that have loads at a fixed rate, s;
/// `server` is what one start takes.
fn look(cells: &[Cell], lengths: Lengths, server: f64) -> f64 {
    let open = cells.iter().filter(|cell| cell.load != Load::Closed);
    let workloads: BTreeSet<(&str, u32)> =
        open.map(|cell| (cell.workload.as_str(), cell.threads)).collect();
    let one = |(_, threads): &(&str, u32)| {
        load_s(lengths, *threads) + (CAPACITY_LOOKS * LOOK_FOR).as_secs_f64()
    };
    let looks: f64 = workloads.iter().map(one).sum();
    if workloads.is_empty() { 0.0 } else { server + looks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends_come_first() {
        let levels = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
        assert_eq!(spread(&levels)[..3], [32, 1, 1024]);
        assert_eq!(spread(&levels).len(), levels.len());
        assert_eq!(spread(&[7]), [7]);
        assert!(spread(&[]).is_empty());
    }

    #[test]
    fn windows_grow_with_the_sessions_that_have_to_share_them() {
        let lengths = Lengths::of(Scale::Tiny);
        let of = |threads| lengths.window_of(threads).as_millis();
        assert_eq!([1, 256, 512, 1024].map(of), [400, 400, 800, 1600]);
    }

    #[test]
    fn what_the_baseline_can_do_takes_its_time_once_in_a_run() {
        let suite = Suite::find("rds").unwrap();
        let lengths = Lengths::of(Scale::Tiny);
        let (open, closed): (Vec<Cell>, Vec<Cell>) =
            suite.cells().into_iter().partition(|cell| cell.load != Load::Closed);
        let looks = look(&open, lengths, 10.0) - 10.0;
        let of_one = look(&open[..1], lengths, 10.0) - 10.0;
        // Three workloads, each at three rates.
        assert!((looks - 3.0 * of_one).abs() < 1e-9 && of_one > LOOK_FOR.as_secs_f64(), "{looks}");
        assert_eq!(look(&closed, lengths, 10.0), 0.0);
        let before_blocks = seconds(&suite, &open, Scale::Tiny, lengths, 0);
        assert!(before_blocks > looks, "{before_blocks}");
    }

    #[test]
    fn a_budget_takes_levels_before_it_takes_blocks() {
        let suite = Suite::find("rds").unwrap();
        let asked = suite.cells();
        let lengths = Lengths::of(Scale::Tiny);
        let choose = |budget: Option<u64>| {
            let budget = budget.map(Duration::from_secs);
            choose(&suite, &asked, Scale::Tiny, lengths, None, budget)
        };
        let (whole, tight) = (choose(None), choose(Some(600)));
        assert_eq!(whole.cells.len(), asked.len());
        assert!(whole.left_out.is_empty());
        assert!(tight.seconds <= 600.0 && tight.blocks >= BLOCKS_MIN, "{tight:?}");
        // Levels before workloads, and more than one workload.
        let levels =
            |workload: &str| tight.cells.iter().filter(|cell| cell.workload == workload).count();
        assert!(levels("read-only") >= 2 && levels("read-write") >= 1, "{tight:?}");
        assert_eq!(tight.cells.len() + tight.left_out.len(), asked.len());
        // Too short for anything: one cell at least.
        assert_eq!(choose(Some(1)).cells.len(), 1);
    }
}
