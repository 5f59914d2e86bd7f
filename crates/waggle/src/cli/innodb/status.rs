//! `waggle innodb status`

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use waggle_instrumentation::metrics::Counter;

use super::super::account::AccountArgs;
use super::super::pfs::connect;
use super::super::{Failure, Outcome};
use super::counters;

/// Show which counters there are and which are on, by module.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle innodb status -v --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// Every counter, with what it counts.
    #[arg(short, long)]
    verbose: bool,
    /// One JSON object, with every counter.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Serialize)]
struct StatusJson<'a> {
    version: &'a str,
    total: usize,
    enabled: usize,
    subsystems: BTreeMap<&'a str, SubsystemJson<'a>>,
}

#[derive(Default, Serialize)]
struct SubsystemJson<'a> {
    module: Option<&'static str>,
    total: usize,
    enabled: usize,
    counters: Vec<&'a Counter>,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let mut connection = connect(args.account)?;
    let counters = counters(&mut connection)?;
    let status = status(&connection.server_identity().version, &counters);
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &status).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&mut out, &status, args.verbose)?;
    }
    Ok(Outcome::Done)
}

fn status<'a>(version: &'a str, counters: &'a [Counter]) -> StatusJson<'a> {
    let mut subsystems: BTreeMap<&str, SubsystemJson<'_>> = BTreeMap::new();
    for counter in counters {
        let row = subsystems.entry(&counter.subsystem).or_default();
        row.total += 1;
        row.enabled += usize::from(counter.enabled);
        row.counters.push(counter);
    }
    for row in subsystems.values_mut() {
        // One counter of the subsystem `server` belongs to another module.
        row.module = row.counters.last().and_then(|counter| counter.module);
    }
    let enabled = counters.iter().filter(|counter| counter.enabled).count();
    StatusJson { version, total: counters.len(), enabled, subsystems }
}

fn print(out: &mut impl Write, status: &StatusJson<'_>, verbose: bool) -> io::Result<()> {
    let StatusJson { version, total, enabled, subsystems } = status;
    writeln!(out, "{version}: {enabled} of {total} counters of InnoDB are on\n")?;
    writeln!(out, "{:<22} {:<22} {:>8} {:>8}", "module", "subsystem", "counters", "enabled")?;
    for (subsystem, row) in subsystems {
        let module = row.module.unwrap_or("-");
        writeln!(out, "{module:<22} {subsystem:<22} {:>8} {:>8}", row.total, row.enabled)?;
        for counter in row.counters.iter().filter(|_| verbose) {
            let Counter { name, enabled, kind, count, comment, .. } = counter;
            let on = if *enabled { "on" } else { "off" };
            writeln!(out, "  {name:<44} {on:<3} {kind:<14} {count:>20}  {comment}")?;
        }
    }
    Ok(())
}
