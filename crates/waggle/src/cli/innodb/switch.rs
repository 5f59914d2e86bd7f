//! `waggle innodb enable` and `waggle innodb disable`

use std::collections::BTreeMap;
use std::io::{self, Write};

use waggle_instrumentation::metrics::Counter;
use waggle_instrumentation::{Plan, State};
use waggle_model::ServerVersion;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::pfs::hold::{HoldArgs, Report, Request, hold};
use super::super::{Failure, Outcome};
use super::{counters, failed};

/// Turn counters on until this command ends, and set them back then.
///
/// Those that are on already are left as they are. At the end it prints what each that is on has
/// counted meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples: waggle innodb enable module_lock index --for 5m\n          \
                        waggle innodb enable 'icp_%' --keep")]
pub(super) struct EnableArgs {
    #[command(flatten)]
    args: SwitchArgs,
}

/// Turn counters off until this command ends, and set them back then.
///
/// What happens meanwhile is missing in their COUNT for everybody who reads it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle innodb disable all --for 5m")]
pub(super) struct DisableArgs {
    #[command(flatten)]
    args: SwitchArgs,
}

#[derive(Debug, clap::Args)]
struct SwitchArgs {
    /// Counters, modules (module_lock), subsystems (lock), patterns in which % stands for any
    /// characters, or `all`.
    #[arg(required = true, value_name = "WHAT")]
    words: Vec<String>,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn enable(args: EnableArgs) -> Result<Outcome, Failure> {
    switch(&args.args, true)
}

pub(super) fn disable(args: DisableArgs) -> Result<Outcome, Failure> {
    switch(&args.args, false)
}

fn switch(args: &SwitchArgs, on: bool) -> Result<Outcome, Failure> {
    let verb = if on { "enable" } else { "disable" };
    let request = Request {
        command: format!("innodb {verb} {}", args.words.join(" ")),
        plan: |connection: &mut Connection| plan(connection, &args.words, on),
        report: counted,
    };
    hold(&args.account, &args.hold, request)
}

fn plan(connection: &mut Connection, words: &[String], on: bool) -> Result<Plan, Failure> {
    let state = State::read(connection).map_err(failed)?;
    let identity = connection.server_identity();
    let version = ServerVersion::parse(identity.flavour, &identity.version);
    Ok(Plan::of_metrics(&state, words, on, version)?)
}

/// What each counter that is on at the end has counted meanwhile.
fn counted(connection: &mut Connection) -> Result<Report, Failure> {
    let before = counters(connection)?;
    Ok(Box::new(move |connection, json| {
        let after = counters(connection)?;
        let on = after.iter().filter(|counter| counter.enabled);
        let moved = on.map(|Counter { name, count, .. }| {
            let same = before.iter().find(|counter| counter.name == *name);
            (name.as_str(), same.map_or(0, |before| count.wrapping_sub(before.count)))
        });
        let moved: BTreeMap<&str, i64> = moved.filter(|(_, change)| *change != 0).collect();
        let mut out = io::stdout().lock();
        if json {
            serde_json::to_writer(&mut out, &moved).map_err(io::Error::from)?;
            writeln!(out)?;
            return Ok(true);
        }
        for (name, change) in moved {
            writeln!(out, "{name:<44} {change:>16}")?;
        }
        Ok(true)
    }))
}
