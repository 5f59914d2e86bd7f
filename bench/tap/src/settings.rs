//! What a run is told.

use std::time::Duration;

use waggle_bench_frame::Options;
use waggle_testkit::{Server, Version};

use crate::arm::Arm;
use crate::load::Load;

/// What can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Prices by the coin.
    Prices,
    /// What is attached and taken away in windows.
    Windows,
    /// Processes that are not watched.
    Others,
    /// The real `waggle watch`.
    Agent,
}

/// Measure what the tap costs a server, beside a pair of breakpoints.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: cargo xtask bench tap --only prices --name trial")]
pub(crate) struct Settings {
    /// The server: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    pub(crate) server: Version,
    /// Price limits of texts instead: 4, 16 and 64 KiB, on short and on long statements.
    #[arg(long)]
    pub(crate) texts: bool,
    /// Price waits instead, also on a load that commits to the disk.
    #[arg(long, conflicts_with = "texts")]
    pub(crate) waits: bool,
    /// Only this part.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<Part>,
    /// The longest trial by the coin, seconds.
    #[arg(long, value_name = "S", default_value_t = 20)]
    pub(crate) seconds: u32,
    /// How well a price is to be known, nanoseconds: its trial ends then.
    #[arg(long, value_name = "NS", default_value_t = 100)]
    pub(crate) within: u32,
    /// Blocks of three windows, of every arm that is tried in windows under every load.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) blocks: usize,
    /// Threads of sysbench.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: u32,
    /// This process has a session of its own.
    #[arg(long, hide = true)]
    pub(crate) own_session: bool,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Settings {
    /// Starts the server. Commits wait for the disk where waits are priced.
    pub(crate) fn start_server(&self) -> waggle_testkit::Result<Server> {
        let server = Server::builder(self.server).binlog(self.waits);
        let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
        let settings = durable.iter().filter(|_| self.waits);
        settings.fold(server, |server, setting| server.arg(*setting)).start()
    }

    /// Whether it is asked for. What is not watched, and the agent, meet no limit of texts.
    pub(crate) fn has(&self, part: Part) -> bool {
        let is_there = match part {
            Part::Prices => true,
            Part::Windows => !self.texts && !self.waits,
            Part::Others | Part::Agent => !self.texts,
        };
        is_there && self.only.is_none_or(|only| only == part)
    }

    /// What is priced.
    pub(crate) fn arms(&self) -> &'static [Arm] {
        match (self.texts, self.waits) {
            (true, _) => &Arm::OF_TEXTS,
            (_, true) => &[Arm::Default],
            _ => &Arm::USUAL,
        }
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

    /// What every `waggle prove` is told.
    pub(crate) fn words(&self) -> Vec<String> {
        let [most, within] = [format!("{}s", self.seconds), format!("{}ns", self.within)];
        vec!["--for".to_owned(), most, "--within".to_owned(), within]
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
        // Until each arm has some statements, however slow the disk is.
        Settings { seconds: 30, within: 20_000, blocks: 3, ..self }
    }
}
