//! What a run is told.

use clap::Parser;
use waggle_bench_frame::Options;
use waggle_testkit::Version;

/// What can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Costs of known size.
    Truth,
    /// What waggle costs.
    Prices,
}

/// Measure whether `waggle prove` finds costs of known size, and what it finds of waggle.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench prove")]
#[command(after_help = "Example: cargo xtask bench prove --only truth --trials 10 --name trial")]
pub(crate) struct Settings {
    /// The server of the known costs: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    pub(crate) server: Version,
    /// Trials of each cost and number of sessions.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) trials: usize,
    /// Length of a trial of a known cost.
    #[arg(long, value_name = "S", default_value_t = 5)]
    pub(crate) seconds: u32,
    /// Numbers of sessions at work.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4")]
    pub(crate) threads: Vec<u32>,
    /// Known costs, nanoseconds; 0 compares the same with the same.
    #[arg(long, value_name = "NS", value_delimiter = ',', default_value = "0,200,1000,2000,5000")]
    pub(crate) costs: Vec<u64>,
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
        Settings { trials: 1, seconds: 2, costs: vec![0, 5000], ..self }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    /// The servers whose price is measured.
    pub(crate) fn servers(&self) -> Vec<Version> {
        match self.options.quick {
            true => vec![self.server],
            false => Version::ALL.into_iter().chain([Version::Mariadb118]).collect(),
        }
    }

    /// The longest trial of a price, s, and how well it is to be known, ns.
    pub(crate) fn price(&self) -> (u32, u32) {
        if self.options.quick { (3, 100) } else { (60, 50) }
    }
}
