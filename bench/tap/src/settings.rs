//! What a run is told.

use std::time::Duration;

use waggle_bench_frame::Options;
use waggle_testkit::{Server, Version};

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
    /// The arms, separated by commas: aa, send, fentry, syscall, uprobe, waits, pair.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) arms: Option<Vec<Arm>>,
    /// Price limits of texts instead: 4, 16 and 64 KiB, on short and on long statements.
    #[arg(long, conflicts_with = "arms")]
    pub(crate) texts: bool,
    /// Price waits instead: the tap with and without them, also on a load that commits to the disk.
    #[arg(long, conflicts_with_all = ["arms", "texts"])]
    pub(crate) waits: bool,
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
    /// This process has a session of its own.
    #[arg(long, hide = true)]
    pub(crate) own_session: bool,
    #[command(flatten)]
    pub(crate) options: Options,
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

    /// Starts the server. Commits wait for the disk where waits are priced.
    pub(crate) fn start_server(&self) -> waggle_testkit::Result<Server> {
        let server = Server::builder(self.server).binlog(self.waits);
        let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
        let settings = durable.iter().filter(|_| self.waits);
        settings.fold(server, |server, setting| server.arg(*setting)).start()
    }

    /// The arms that are wanted.
    pub(crate) fn arms(&self) -> Vec<Arm> {
        let is_usual = |arm: &Arm| match (self.texts, self.waits) {
            _ if *arm == Arm::Nothing => true,
            (true, _) => arm.is_of_texts(),
            (_, true) => arm.is_of_waits(),
            _ => !arm.is_of_texts() && *arm != Arm::Waits,
        };
        self.arms.clone().unwrap_or_else(|| Arm::ALL.into_iter().filter(is_usual).collect())
    }

    /// The loads, one after the other.
    pub(crate) fn loads(&self) -> Vec<Load> {
        match (self.texts, self.options.quick) {
            _ if self.waits => Load::OF_WAITS.to_vec(),
            (true, _) => Load::OF_TEXTS.to_vec(),
            (false, true) => vec![Load::ALL[0], Load::ALL[3]],
            (false, false) => Load::ALL[..4].to_vec(),
        }
    }

    /// Blocks of every arm under one load: each has two pairs.
    pub(crate) fn blocks_per_load(&self) -> usize {
        self.pairs.div_ceil(2 * self.loads().len())
    }

    /// Windows with the kernel's statistics on, of every arm under every load.
    pub(crate) fn statistics_windows(&self) -> usize {
        if self.options.quick { 1 } else { 12 }
    }

    /// Pairs of batches of sends by a process that is not watched.
    pub(crate) fn foreign_pairs(&self) -> usize {
        if self.options.quick { 2 } else { 60 }
    }

    /// How long the real `waggle watch` is looked at.
    pub(crate) fn agent_time(&self) -> Duration {
        Duration::from_secs(if self.options.quick { 1 } else { 20 })
    }

    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.options.quick {
            return self;
        }
        Settings { pairs: 8, window_ms: 50, settle_ms: 20, ..self }
    }
}
