//! `waggle innodb status`

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use waggle_instrumentation::metrics::Counter;
use waggle_instrumentation::metrics::selection::{SelectionError, means};
use waggle_model::visible::on_a_line;

use super::super::account::AccountArgs;
use super::super::pfs::connect;
use super::super::{Failure, Outcome, print};
use super::counters;

/// Show which counters there are and which are on, by module.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples: waggle innodb status -v --defaults-file /etc/mysql/waggle.cnf\n          \
                        waggle innodb status module_lock 'icp_%'"
)]
pub(super) struct Args {
    /// Counters, modules (module_lock), subsystems (lock), or patterns in which % stands for any characters: these
    /// alone, with what they count.
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
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
    let counters = named(counters(&mut connection)?, &args.words)?;
    let status = status(&connection.server_identity().version, &counters);
    print(args.json, &status, || in_words(&status, args.verbose || !args.words.is_empty()))?;
    Ok(Outcome::Done)
}

/// The counters that the words select; all without words.
fn named(mut counters: Vec<Counter>, words: &[String]) -> Result<Vec<Counter>, Failure> {
    let is_meant = |word: &String, one: &Counter| means(word, &one.subsystem, &one.name);
    let means_none = |word: &&String| !counters.iter().any(|one| is_meant(word, one));
    if let Some(word) = words.iter().find(means_none) {
        return Err(Failure::Usage(SelectionError::Unknown(word.clone()).into()));
    }
    counters.retain(|one| words.is_empty() || words.iter().any(|word| is_meant(word, one)));
    Ok(counters)
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

/// Writing to a string cannot fail.
fn in_words(status: &StatusJson<'_>, verbose: bool) -> String {
    let StatusJson { version, total, enabled, subsystems } = status;
    let mut out =
        format!("{}: {enabled} of {total} counters of InnoDB are on\n\n", on_a_line(version));
    let _ =
        writeln!(out, "{:<22} {:<22} {:>8} {:>8}", "module", "subsystem", "counters", "enabled");
    for (subsystem, row) in subsystems {
        let (module, subsystem) = (row.module.unwrap_or("-"), on_a_line(subsystem));
        let _ = writeln!(out, "{module:<22} {subsystem:<22} {:>8} {:>8}", row.total, row.enabled);
        for counter in row.counters.iter().filter(|_| verbose) {
            let Counter { name, enabled, kind, count, comment, .. } = counter;
            let on = if *enabled { "on" } else { "off" };
            let [name, kind, comment] = [name, kind, comment].map(|text| on_a_line(text));
            let _ = writeln!(out, "  {name:<44} {on:<3} {kind:<14} {count:>20}  {comment}");
        }
    }
    out
}
