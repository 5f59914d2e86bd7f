//! `waggle pfs cost`

mod calibrate;
mod explain;
mod forecast;
pub(super) mod proven;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use waggle_instrumentation::cost::calibration::{Calibration, Host};
use waggle_instrumentation::cost::proven::Proven;
use waggle_instrumentation::cost::{Cost, Question};
use waggle_model::Reading;
use waggle_mysql::Connection;
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::Builds;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, pause, print};
use super::process::{NOT_FOUND, cpu_of_server, process_of};
use super::{calibrations, connect};

pub(super) use forecast::Here;

/// Show what Performance Schema costs the server, class by class: events, times what each costs.
///
/// Without a calibration the price of an event is that of reading the timer, which is the least that
/// it can be.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs cost --explain --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// Count events for this time.
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "1s")]
    interval: Duration,
    /// Print the arithmetic of every class.
    #[arg(long)]
    explain: bool,
    /// Measure first what events cost here: on a private server of the same program, which is started
    /// for a quarter of an hour at a low priority, listens on a socket only, and is removed afterwards. The
    /// prices are kept for this version on this host.
    #[arg(long)]
    calibrate: bool,
    /// Rounds of a calibration, each with some short windows of every price: more take longer and tell more.
    #[arg(long, value_name = "N", default_value = "40", requires = "calibrate",
          value_parser = clap::value_parser!(u16).range(2..))]
    rounds: u16,
    /// The program of the private server, instead of the one that the server runs.
    #[arg(long, value_name = "PATH", requires = "calibrate")]
    mysqld: Option<PathBuf>,
    /// One JSON object.
    #[arg(long, conflicts_with = "explain")]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

/// Where prices come from.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    cost: &'a Cost,
    calibration: Option<&'a Calibration>,
    calibration_missing: Option<&'a str>,
    proven: &'a [Proven],
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let mut connection = connect(args.account.clone())?;
    let pid = process_of(&mut connection).map_err(Failure::Cannot)?;
    if args.calibrate {
        calibrate::run(&args, &mut connection, pid)?;
    }
    let prices = stored(&connection, pid)?;
    let mut server_ns = || cpu_of_server(pid);
    let question = Question {
        interval: args.interval,
        calibration: prices.value(),
        server_ns: &mut server_ns,
    };
    let cost = Cost::read(&mut connection, question)?;
    let (calibration, calibration_missing) = (prices.value(), prices.why());
    let proven = proven::of_server(pid)?;
    let json = Json { cost: &cost, calibration, calibration_missing, proven: &proven };
    print(args.json, &json, || {
        let table = table::in_words(&cost, &prices) + &measured(&proven);
        if args.explain { table + &explain::in_words(&cost, &prices) } else { table }
    })?;
    Ok(Outcome::Done)
}

/// What was measured on this server, or how to do that.
fn measured(all: &[Proven]) -> String {
    match all.is_empty() {
        true => "not measured here: waggle prove pfs PROFILE measures what a profile costs under this load\n"
            .to_owned(),
        false => proven::in_words(all),
    }
}

/// The prices that were measured for this server on this host.
fn stored(connection: &Connection, pid: Option<u32>) -> Result<Reading<Calibration>, Failure> {
    let Some(pid) = pid else {
        return Ok(Reading::absent(format!("{NOT_FOUND}; prices belong to a host")));
    };
    let version = &connection.server_identity().version;
    let build = build_of(pid);
    let (directory, host) = (calibrations(), Host::look());
    let found = Calibration::find(&directory, &host, version, build.as_deref());
    Ok(match found.map_err(|error| Failure::Config(anyhow!(error)))? {
        Some(calibration) => Reading::Value(calibration),
        None => Reading::absent(format!(
            "{version} was not calibrated on this host; run waggle pfs cost --calibrate"
        )),
    })
}

/// What tells the build of a server's program from others; `None` if it cannot be read.
fn build_of(pid: u32) -> Option<String> {
    let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == pid)?;
    Some(Builds::default().recognise(&found).ok()?.server.build.0)
}
