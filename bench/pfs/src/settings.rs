//! What a run is told.

use clap::Parser;
use waggle_bench_frame::Options;
use waggle_testkit::Version;

use crate::load::{LOADS, Load};

/// What can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Predicted against measured, with the prices that it needs.
    Prices,
    /// Filtering before and after.
    Filtering,
    /// What applying does to the sessions.
    Applying,
}

/// Compare what `waggle pfs cost` predicts with what is measured.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench pfs")]
#[command(after_help = "Example: cargo xtask bench pfs --blocks 20 --name trial")]
pub(crate) struct Settings {
    /// The server: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    pub(crate) server: Version,
    /// Rounds of the calibration.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rounds: usize,
    /// Blocks of every profile under every load; every way to filter has twice as many.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) blocks: usize,
    /// How often a profile is applied while the longest statement is looked for.
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) applies: usize,
    /// Only this part.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<Part>,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Settings {
    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.options.quick {
            return self;
        }
        Settings { rounds: 2, blocks: 2, applies: 1, ..self }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(crate) fn threads(&self) -> Vec<u32> {
        if self.options.quick { vec![2] } else { vec![2, 32] }
    }

    pub(crate) fn loads(&self) -> Vec<Load> {
        if self.options.quick { LOADS[..1].to_vec() } else { LOADS.to_vec() }
    }
}
