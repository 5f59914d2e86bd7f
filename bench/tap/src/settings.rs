//! What a run is told.

use std::path::PathBuf;
use std::time::Duration;

use waggle_testkit::Version;

use crate::arms::Arm;
use crate::load::Load;
use crate::meter::Placement;

/// Measure what the tap costs a server, side by side with nothing and with a pair of breakpoints.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: cargo xtask bench tap --pairs 40 --name trial")]
pub(crate) struct Settings {
    /// The server: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    pub(crate) server: Version,
    /// Pairs of windows of every arm, shared out evenly among the loads, two to a block.
    #[arg(long, value_name = "N", default_value_t = 640)]
    pub(crate) pairs: usize,
    /// A small form for tests: it shows that everything works, not what it costs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The arms, separated by commas: aa, send, fentry, syscall, uprobe, pair.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) arms: Option<Vec<Arm>>,
    /// Length of a window in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 75)]
    pub(crate) window_ms: u64,
    /// Time after each switch that no window counts, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    pub(crate) settle_ms: u64,
    /// Threads of sysbench.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: u32,
    /// Where the server and the load may run.
    #[arg(long, value_enum, default_value = "free")]
    pub(crate) placement: Placement,
    /// Number from which the order of the windows and the resampling follow; from the clock
    /// without it.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Last part of the name of the directory of results.
    #[arg(long, value_name = "NAME", default_value = "tap")]
    pub(crate) name: String,
    /// This process has a session of its own.
    #[arg(long, hide = true)]
    pub(crate) own_session: bool,
    /// Where directories of results are made.
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub(crate) output: PathBuf,
}

impl Settings {
    /// The length of a window.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// The time after a switch that no window counts.
    pub(crate) fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    /// The loads, one after the other.
    pub(crate) fn loads(&self) -> Vec<Load> {
        if self.quick { vec![Load::ALL[0], Load::ALL[3]] } else { Load::ALL.to_vec() }
    }

    /// Blocks of every arm under one load: each has two pairs.
    pub(crate) fn blocks_per_load(&self) -> usize {
        self.pairs.div_ceil(2 * self.loads().len())
    }

    /// Windows with the kernel's statistics on, of every arm under every load.
    pub(crate) fn statistics_windows(&self) -> usize {
        if self.quick { 1 } else { 12 }
    }

    /// Pairs of batches of sends by a process that is not watched.
    pub(crate) fn foreign_pairs(&self) -> usize {
        if self.quick { 2 } else { 60 }
    }

    /// How long the real `waggle watch` is looked at.
    pub(crate) fn agent_time(&self) -> Duration {
        Duration::from_secs(if self.quick { 1 } else { 20 })
    }

    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.quick {
            return self;
        }
        Settings { pairs: 8, window_ms: 50, settle_ms: 20, ..self }
    }
}
