//! How long a window, a turn of it and a warm-up are.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::suite::{Scale, Suite};
use crate::window::{Cell, Load};

/// With more sessions a window is longer than asked.
pub const LONGER_ABOVE_THREADS: u32 = 256;
/// The shortest turn of a window, and the least for each session: a transaction of a stock script takes about 1 ms of two
/// processors.
pub(crate) const TURN_S: f64 = 0.05;
pub(crate) const SESSION_TURN_S: f64 = 0.0025;
/// The shortest time under load before a turn, which does not count: reading and setting has filled the caches of the
/// processors.
const SETTLE_TURN: Duration = Duration::from_millis(25);

/// How long things take at a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// A window, with up to [`LONGER_ABOVE_THREADS`] sessions; see [`Lengths::window_of`].
    pub window: Duration,
    /// Time under load before each window, which does not count; see [`Lengths::settle_of`].
    pub settle: Duration,
    /// Longest warm-up of a server and its load, with up to [`LONGER_ABOVE_THREADS`] sessions; it ends when the
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

    /// In how many turns a window of a cell is measured. A turn is 50 ms, or a few transactions where many sessions make
    /// these longer.
    ///
    /// One turn: where the order of the arms is measured, where each arm has a server of its own, with an open load, whose
    /// queue would be empty at the beginning of each turn, and on a server in use, which would be changed each time.
    pub fn turns(self, suite: &Suite, cell: &Cell, is_in_use: bool) -> u32 {
        let is_at_random = suite.keeps_servers(cell) && !suite.is_as_listed(cell);
        if is_in_use || !is_at_random || cell.load.is_open() {
            return 1;
        }
        let turn = TURN_S.max(SESSION_TURN_S * f64::from(cell.threads));
        ((self.window_of(cell.threads).as_secs_f64() / turn).round() as u32).max(1)
    }

    /// Time under load before each of `turns` turns. An open load has as long as a window: its queue takes time to form.
    /// From [`LONGER_ABOVE_THREADS`] sessions on there is none: a turn takes more than half a second then, and stopping
    /// the sessions takes longer than settling.
    pub fn settle_of(self, cell: &Cell, turns: u32) -> Duration {
        match cell.load {
            Load::Closed if cell.threads >= LONGER_ABOVE_THREADS => Duration::ZERO,
            Load::Closed => (self.settle / turns).max(SETTLE_TURN),
            Load::Open { .. } => self.settle.max(self.window_of(cell.threads)),
        }
    }

    /// Length of a window. More sessions make their transactions longer, and a window has to hold whole ones of each.
    pub fn window_of(self, threads: u32) -> Duration {
        self.window.mul_f64(longer_by(threads))
    }

    /// The longest warm-up. More sessions take longer until each is warm.
    pub fn warm_up_of(self, threads: u32) -> Duration {
        self.warm_up.mul_f64(longer_by(threads))
    }
}

fn longer_by(threads: u32) -> f64 {
    (f64::from(threads) / f64::from(LONGER_ABOVE_THREADS)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_with_the_sessions_that_have_to_share_them() {
        let lengths = Lengths::of(Scale::Tiny);
        let of = |threads| lengths.window_of(threads).as_millis();
        assert_eq!([1, 256, 512, 1024].map(of), [400, 400, 800, 1600]);
    }

    #[test]
    fn a_longer_window_of_more_sessions_has_turns_that_are_longer_and_no_fewer() {
        let suite = Suite::find("rds").unwrap();
        let turns = |scale: Scale, threads: u32| {
            let is_it = |cell: &&Cell| !cell.load.is_open() && cell.threads == threads;
            let cells = suite.cells();
            Lengths::of(scale).turns(&suite, cells.iter().find(is_it).unwrap(), false)
        };
        let small = |threads| turns(Scale::Small, threads);
        assert_eq!([1, 16, 128, 256, 512, 1024].map(small), [40, 40, 6, 3, 3, 3]);
        assert_eq!([1, 32, 128, 1024].map(|threads| turns(Scale::Tiny, threads)), [8, 5, 1, 1]);
        // Four times as many sessions have four times as long.
        let lengths = Lengths::of(Scale::Small);
        let each = |threads| (lengths.window_of(threads) / small(threads)).as_secs_f64();
        assert!((each(1024) - 4.0 * each(256)).abs() < 1e-6, "{} s", each(1024));
    }

    #[test]
    fn there_are_turns_only_where_neither_order_nor_server_nor_queue_would_suffer() {
        let lengths = Lengths::of(Scale::Full);
        let [rds, line, modb] = ["rds", "line", "modb"].map(|name| Suite::find(name).unwrap());
        let of = |suite: &Suite, cell: &Cell| lengths.turns(suite, cell, false);
        assert!(line.cells().iter().all(|cell| of(&line, cell) == 1));
        for cell in modb.cells() {
            let order = cell.order.as_deref().unwrap();
            let is_at_random = order == "random" || order == "one-factor";
            let takes_turns = is_at_random && !cell.load.is_open();
            assert_eq!(of(&modb, &cell) > 1, takes_turns, "{cell:?}");
        }
        for cell in rds.cells() {
            assert_eq!(of(&rds, &cell) > 1, !cell.load.is_open(), "{cell:?}");
            assert_eq!(lengths.turns(&rds, &cell, true), 1, "{cell:?}");
        }
    }
}
