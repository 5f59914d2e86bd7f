//! What a run is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use waggle_testkit::Version;

/// What can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The time of a look.
    Looks,
    /// What looking does to a server at work.
    Effect,
}

/// Measure what `waggle locks` costs.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench locks")]
#[command(after_help = "Example: cargo xtask bench locks --only effect --blocks 20 --name trial")]
pub(crate) struct Settings {
    /// The server at work: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    pub(crate) server: Version,
    /// Looks in each state of each server.
    #[arg(long, value_name = "N", default_value_t = 101)]
    pub(crate) looks: usize,
    /// Blocks of four windows for every pause.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) blocks: usize,
    /// Only this part.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<Part>,
    /// A small form for tests: it shows that everything works, not what anything costs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number from which the order of everything follows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Last part of the name of the directory of results.
    #[arg(long, value_name = "NAME", default_value = "locks")]
    pub(crate) name: String,
    /// Where directories of results are made.
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub(crate) output: PathBuf,
}

impl Settings {
    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.quick {
            return self;
        }
        Settings { looks: 3, blocks: 2, ..self }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    /// The servers on which looks are timed.
    pub(crate) fn servers(&self) -> Vec<Version> {
        if self.quick { vec![self.server] } else { Version::ALL.to_vec() }
    }

    /// Sessions of the load.
    pub(crate) fn sessions(&self) -> Vec<u32> {
        if self.quick { vec![2] } else { vec![8, 32] }
    }

    /// The default pause of `waggle locks --watch`, and a short one.
    pub(crate) fn pauses(&self) -> [Duration; 2] {
        let ms = if self.quick { [200, 50] } else { [2000, 100] };
        ms.map(Duration::from_millis)
    }
}
