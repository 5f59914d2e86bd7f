//! What a run is told.

use std::time::Duration;

use clap::Parser;
use waggle_bench_frame::Options;
use waggle_testkit::Version;

/// What can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The time of a look.
    Looks,
    /// What a look in memory costs waggle.
    Memory,
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
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Settings {
    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.options.quick {
            return self;
        }
        Settings { looks: 3, blocks: 2, ..self }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    /// The servers on which looks are timed.
    pub(crate) fn servers(&self) -> Vec<Version> {
        if self.options.quick { vec![self.server] } else { Version::ALL.to_vec() }
    }

    /// Sessions of the servers whose memory is looked at.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        if self.options.quick { vec![0, 10] } else { vec![0, 10, 100, 1000] }
    }

    /// Sessions of the load.
    pub(crate) fn sessions(&self) -> Vec<u32> {
        if self.options.quick { vec![2] } else { vec![8, 32] }
    }

    /// The default pause of `waggle locks --watch`, and a short one.
    pub(crate) fn pauses(&self) -> [Duration; 2] {
        let ms = if self.options.quick { [200, 50] } else { [2000, 100] };
        ms.map(Duration::from_millis)
    }
}
