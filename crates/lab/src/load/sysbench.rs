//! What sysbench is asked for, and its tables.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use waggle_mysql::Connection;
use waggle_private_server::Launcher;
use waggle_sysbench::{Running, Sysbench, Tables, anywhere};

use super::{LoadError, Reach};
use crate::suite::Workload;

/// How often it is looked whether the tables are made, or are new no longer.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is to be loaded, and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The program.
    pub sysbench: &'a Sysbench,
    /// Starts it, at the priority of private servers. It is pinned to the processors of the launcher:
    /// its threads inherit them.
    pub launcher: &'a Launcher,
    /// The server, the account and the schema.
    pub reach: &'a Reach,
    /// The script and its arguments, which win over ours.
    pub workload: &'a Workload,
    /// Sessions.
    pub threads: u32,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u32,
    /// From which the rows and the order in which they are read follow. Which session has which part of
    /// it depends on the order in which they start.
    pub seed: u64,
    /// A directory for files of ours; nothing is left there but the script.
    pub directory: &'a Path,
}

impl Request<'_> {
    /// A command that becomes sysbench with a script.
    pub(super) fn command(&self, script: &Path, threads: u32) -> Result<Command, LoadError> {
        let tables = Tables { tables: self.tables, rows: self.rows };
        let mut command = self.sysbench.command(self.launcher, script, threads, tables);
        command.args(["--time=0", "--events=0"]).args(self.reach.arguments()?);
        command.arg(format!("--rand-seed={}", seed(self.seed)));
        command.args(&self.workload.arguments);
        Ok(command)
    }

    /// The script as sysbench is to find it.
    pub(super) fn script(&self) -> Result<PathBuf, LoadError> {
        Ok(anywhere(Path::new(&self.workload.script))?)
    }

    /// Starts a command of it.
    pub(super) fn start(&self, command: Command, stdin: Stdio) -> Result<Running, LoadError> {
        Ok(Running::start(command, stdin, self.directory, &self.workload.script)?)
    }
}

/// sysbench takes a positive `int`, and the clock in place of 0.
fn seed(seed: u64) -> u64 {
    seed % (i32::MAX as u64) + 1
}

/// Makes the tables by `sysbench … prepare`, some of them at once. `false` where somebody stopped it.
///
/// # Errors
/// The script is missing or fails, or the server refuses something.
pub fn prepare(request: &Request<'_>, stop: &AtomicBool) -> Result<bool, LoadError> {
    let mut connection = Connection::open(request.reach.options())?;
    connection.rows(&format!("CREATE DATABASE IF NOT EXISTS {}", request.reach.schema()))?;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = request.tables.min(processors as u32).max(1);
    let mut command = request.command(&request.script()?, threads)?;
    command.arg("prepare");
    let mut running = request.start(command, Stdio::null())?;
    loop {
        match running.ended()?.map(|status| status.success()) {
            Some(true) => return Ok(true),
            Some(false) => return Err(running.failed("its tables cannot be made").into()),
            None if stop.load(Ordering::Relaxed) => {
                running.kill()?;
                return Ok(false);
            }
            None => sleep(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_one_for_sysbench() {
        let largest = i32::MAX as u64;
        assert_eq!([seed(0), seed(largest - 1), seed(largest)], [1, largest, 1]);
        assert!((1..=largest).contains(&seed(u64::MAX)));
    }
}
