//! `cargo xtask demo`: `waggle watch` on a real server.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use waggle_testkit::sysbench::{Length, Running, Sysbench};
use waggle_testkit::{PerformanceSchema, Server, Version, target_dir};

/// Traffic of a demo that has no end of its own.
const A_DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End after this many seconds; 0 runs until Ctrl-C.
    #[arg(long, default_value_t = 0)]
    seconds: u64,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let waggle = target_dir().join("debug/waggle");
    ensure!(waggle.is_file(), "{} is missing; run make build", waggle.display());
    if a_server_runs(&waggle)? {
        println!("watching the servers of this host");
        return watch(&waggle, args.seconds, None);
    }
    crate::setup::for_demo()?;
    println!("no server runs here: starting a private MariaDB 10.11 with sysbench traffic on it");
    let server = Server::builder(Version::Mariadb1011)
        .performance_schema(PerformanceSchema::Off)
        .start()
        .context("the private server")?;
    let traffic = traffic(&server, args.seconds)?;
    let watched = watch(&waggle, args.seconds, Some(server.pid()));
    drop(traffic);
    watched
}

fn a_server_runs(waggle: &Path) -> Result<bool> {
    let servers = Command::new(waggle).args(["servers", "--json"]).output()?;
    Ok(!servers.stdout.is_empty())
}

fn traffic(server: &Server, seconds: u64) -> Result<Running> {
    let mut sysbench = Sysbench::new("oltp_read_write");
    sysbench.tables = 2;
    sysbench.table_size = 5_000;
    sysbench.threads = 4;
    let lasts = if seconds == 0 { A_DAY } else { Duration::from_secs(seconds + 2) };
    sysbench.length = Length::Time(lasts);
    sysbench.prepare(server)?;
    Ok(sysbench.start(server)?)
}

fn watch(waggle: &Path, seconds: u64, pid: Option<u32>) -> Result<()> {
    let mut command = Command::new(waggle);
    command.arg("watch");
    // A log gets the table, a person the terminal view.
    if !io::stdout().is_terminal() {
        command.args(["--table", "--limit", "12"]);
    }
    if seconds > 0 {
        command.args(["--for", &format!("{seconds}s")]);
    }
    if let Some(pid) = pid {
        command.args(["--pid", &pid.to_string()]);
    }
    let ended = command.status()?;
    if !ended.success() {
        bail!("waggle watch ended with {ended}");
    }
    Ok(())
}
