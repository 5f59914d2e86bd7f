//! `waggle pfs persist`

use std::collections::BTreeSet;
use std::io::Write;

use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::metrics::selection::words_for;
use waggle_instrumentation::state::{Key, Settings};
use waggle_instrumentation::{Change, State, Table};
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome};
use super::connect;
use super::plan::{find, plan_from, state};
use crate::streams::stdout;

/// Print the lines of my.cnf that set a profile at the start of the server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs persist io >> /etc/mysql/conf.d/waggle.cnf")]
pub(super) struct Args {
    /// A name from `waggle pfs profiles`, or the path of a TOML file.
    profile: String,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let profile = find(&args.profile)?;
    let mut connection = connect(args.account)?;
    let start = at_start(&mut connection)?;
    let plan = plan_from(&start, &mut connection, &profile, &Filter::default())?;
    let mut out = stdout();
    writeln!(out, "[mysqld]\nperformance_schema = ON")?;
    let mut chosen = BTreeSet::new();
    for Change { table, key, after, .. } in &plan.changes {
        let Some(after) = after else { continue };
        match table {
            Table::Instruments => writeln!(out, "{}", instrument(&key[0], after))?,
            Table::Consumers => {
                let name = key[0].replace('_', "-");
                let value = if is_on(after, 0) { "ON" } else { "OFF" };
                writeln!(out, "performance-schema-consumer-{name} = {value}")?;
            }
            Table::Metrics if is_on(after, 0) => drop(chosen.insert(key.clone())),
            _ => {}
        }
    }
    let counters: Vec<Key> = start.rows(Table::Metrics).map(|(key, _)| key.clone()).collect();
    if !chosen.is_empty() {
        writeln!(out, "innodb_monitor_enable = '{}'", words_for(&counters, &chosen).join(","))?;
    }
    if profile.metrics.iter().any(|rule| !rule.enabled) {
        writeln!(out, "# the counters of InnoDB that a start turns on cannot be turned off there")?;
    }
    Ok(Outcome::Done)
}

fn instrument(name: &str, after: &Settings) -> String {
    let has_times = after.get(1).is_some_and(Option::is_some);
    let value = match (is_on(after, 0), is_on(after, 1) || !has_times) {
        (false, _) => "OFF",
        (true, true) => "ON",
        (true, false) => "COUNTED",
    };
    format!("performance-schema-instrument = '{name}={value}'")
}

fn is_on(settings: &Settings, at: usize) -> bool {
    settings.get(at).and_then(Option::as_deref) == Some("YES")
}

/// What a start without options gives, whatever is set now. Which counters of InnoDB it turns on is
/// not known: all are taken for off, so that each that is wanted is named.
fn at_start(connection: &mut Connection) -> Result<State, Failure> {
    let now = state(connection)?;
    let default = plan_from(&now, connection, &find("default")?, &Filter::default())?;
    let off = |(key, before): (&Key, &Settings)| Change {
        table: Table::Metrics,
        key: key.clone(),
        before: Some(before.clone()),
        after: Some(vec![Some("NO".to_owned())]),
    };
    let stopped: Vec<Change> = now.rows(Table::Metrics).map(off).collect();
    Ok(now.with(&default.changes).with(&stopped))
}
