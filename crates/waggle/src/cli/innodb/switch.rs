//! `waggle innodb enable` and `waggle innodb disable`

use std::collections::BTreeMap;
use std::io::Write;

use waggle_instrumentation::metrics::Counter;
use waggle_instrumentation::metrics::gauge::growth;
use waggle_instrumentation::{Plan, State};
use waggle_model::visible::on_a_line;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::pfs::hold::{HoldArgs, Report, Request, hold};
use super::super::pfs::plan::not_planned;
use super::super::{Failure, Outcome, write_json};
use super::counters;
use crate::streams::stdout;

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

pub(in super::super) fn plan(
    connection: &mut Connection,
    words: &[String],
    on: bool,
) -> Result<Plan, Failure> {
    let state = State::read(connection)?;
    let version = connection.server_identity().server_version();
    Plan::of_metrics(&state, words, on, version).map_err(not_planned)
}

/// What each counter that is on at the end has counted meanwhile.
fn counted(connection: &mut Connection) -> Result<Report, Failure> {
    let before = counters(connection)?;
    Ok(Box::new(move |connection, json| {
        let after = counters(connection)?;
        let moved = moved(&before, &after);
        let mut out = stdout();
        if json {
            write_json(&mut out, &moved)?;
            return Ok(true);
        }
        for (name, growth) in moved {
            let growth = growth.map_or("-".to_owned(), |growth| growth.to_string());
            writeln!(out, "{:<44} {growth:>16}", on_a_line(name))?;
        }
        Ok(true)
    }))
}

/// The growth of each counter that is on, without gauges and counters that did not move; `None` if
/// somebody reset it.
fn moved<'a>(before: &[Counter], after: &'a [Counter]) -> BTreeMap<&'a str, Option<i64>> {
    let counts = after.iter().filter(|counter| counter.enabled && !counter.is_gauge());
    let grown = counts.filter_map(|Counter { name, count, .. }| {
        let same = before.iter().find(|counter| counter.name == *name)?;
        Some((name.as_str(), growth(same.count, *count)))
    });
    grown.filter(|(_, growth)| *growth != Some(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, kind: &str, enabled: bool, count: i64) -> Counter {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        Counter { name, enabled, kind, count, ..Counter::default() }
    }

    #[test]
    fn only_what_counts_has_counted_and_what_was_set_back_is_not_known() {
        let rows = [
            ("lock_deadlocks", "counter", true, 3, 5),
            ("lock_timeouts", "counter", true, 3, 3),
            ("lock_rec_lock_waits", "counter", false, 3, 5),
            ("lock_row_lock_waits", "status_counter", true, 30, 5),
            ("lock_row_lock_time_max", "value", true, 3, 5),
            ("lock_rec_locks", "counter", true, 3, 5),
        ];
        let before = rows.map(|(name, kind, on, before, _)| counter(name, kind, on, before));
        let after = rows.map(|(name, kind, on, _, after)| counter(name, kind, on, after));
        let expected = [("lock_deadlocks", Some(2)), ("lock_row_lock_waits", None)];
        assert_eq!(moved(&before, &after), BTreeMap::from(expected));
    }
}
