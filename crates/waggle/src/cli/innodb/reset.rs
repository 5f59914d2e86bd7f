//! `waggle innodb reset`

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

use waggle_instrumentation::Table;
use waggle_instrumentation::metrics::Counter;
use waggle_instrumentation::metrics::reset::{Reader, readers, reset};
use waggle_instrumentation::metrics::selection::choose;
use waggle_instrumentation::state::Key;
use waggle_model::Reading;
use waggle_model::visible::on_a_line;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::pfs::rights::Rights;
use super::super::pfs::{connect, journals};
use super::super::{Failure, Outcome};
use super::counters;
use crate::streams::{stderr, tell};

/// Readers that are named.
const READERS_PRINTED: usize = 5;
/// Accounts of a reader that are named.
const ACCOUNTS_PRINTED: usize = 5;
/// Characters of a statement that are printed.
const STATEMENT_CHARS: usize = 100;

/// Give counters a new baseline, for everybody. It cannot be undone, and asks first.
///
/// COUNT_RESET, MAX_COUNT_RESET, MIN_COUNT_RESET and AVG_COUNT_RESET begin anew; COUNT stays. waggle
/// itself takes differences of COUNT and needs no reset. What COUNT_RESET held stays in the journal:
/// `waggle pfs history --json`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle innodb reset module_lock --yes")]
pub(super) struct Args {
    /// Counters, modules, subsystems, patterns, or `all`.
    #[arg(required = true, value_name = "WHAT")]
    words: Vec<String>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let mut connection = connect(args.account)?;
    let all = counters(&mut connection)?;
    let keys: Vec<Key> = all.iter().map(key).collect();
    let chosen = choose(&keys, &args.words).map_err(|error| Failure::Usage(error.into()))?;
    let chosen: Vec<Counter> =
        all.into_iter().filter(|counter| chosen.contains(&key(counter))).collect();
    tell_losses(&mut connection, &chosen)?;
    if !args.yes && !is_confirmed()? {
        tell!("nothing was reset");
        return Ok(Outcome::No);
    }
    let command = format!("innodb reset {}", args.words.join(" "));
    let done = reset(&journals(), &mut connection, &command, &chosen);
    done.map_err(|error| {
        let rights = Rights::to_change([Table::Metrics], &connection);
        Failure::Cannot(rights.explain(error))
    })?;
    tell!("reset");
    Ok(Outcome::Done)
}

fn key(counter: &Counter) -> Key {
    vec![counter.subsystem.clone(), counter.name.clone()]
}

fn tell_losses(connection: &mut Connection, chosen: &[Counter]) -> Result<(), Failure> {
    tell!(
        "COUNT_RESET and what belongs to it begin anew for {} counters. Whoever reads those columns \
         loses the baseline; COUNT stays.",
        chosen.len()
    );
    let with_baseline = chosen.iter().filter(|counter| counter.count_reset != counter.count);
    match with_baseline.count() {
        0 => tell!("nobody has reset one of them before"),
        some => tell!("{some} of them have been reset before: somebody uses their baseline"),
    }
    match readers(connection)? {
        Reading::Absent(why) => tell!("who reads those columns is not known: {why}"),
        Reading::Value(readers) if readers.is_empty() => {
            tell!("no statement of others that reads those columns is in the digest table");
        }
        Reading::Value(readers) => {
            tell!("statements that read those columns:");
            for reader in readers.iter().take(READERS_PRINTED) {
                tell!("  {}", in_words(reader));
            }
        }
    }
    Ok(())
}

fn in_words(Reader { statement, times, last, accounts }: &Reader) -> String {
    let text: String = on_a_line(statement).chars().take(STATEMENT_CHARS).collect();
    let times = if *times == 1 { "once,".to_owned() } else { format!("{times} times, last") };
    format!("{times} at {last}, {}: {text}", by_whom(accounts))
}

fn by_whom(accounts: &BTreeSet<String>) -> String {
    let named: Vec<_> =
        accounts.iter().take(ACCOUNTS_PRINTED).map(|text| on_a_line(text)).collect();
    match accounts.len() - named.len() {
        0 if named.is_empty() => "by whom is not known".to_owned(),
        0 => format!("by {}", named.join(", ")),
        more => format!("by {} and {more} more", named.join(", ")),
    }
}

fn is_confirmed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(anyhow::anyhow!(
            "nobody can be asked, since the input is no terminal; nothing was reset: add --yes to do \
             it all the same"
        )));
    }
    write!(stderr(), "reset them? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_named_with_some_of_its_accounts_and_without_control_characters() {
        let of = |accounts: &[&str]| {
            let accounts = accounts.iter().map(|account| (*account).to_owned()).collect();
            let (statement, last) = ("SELECT\u{1b} *".to_owned(), "12:00".to_owned());
            in_words(&Reader { statement, times: 3, last, accounts })
        };
        let two = "3 times, last at 12:00, by ann@db1, b<U+001B>en@db2: SELECT<U+001B> *";
        assert_eq!(of(&["ann@db1", "b\u{1b}en@db2"]), two);
        let many = of(&["a", "b", "c", "d", "e", "f", "g"]);
        assert!(many.contains("by a, b, c, d, e and 2 more:"), "{many}");
        assert!(of(&[]).contains("by whom is not known:"));
    }
}
