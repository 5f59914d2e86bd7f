//! Gives counters a new baseline. This cannot be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use waggle_model::Reading;
use waggle_mysql::connection::{MARK, Row, absent_or, optional_text, text};
use waggle_mysql::{Connection, ConnectionError};

use super::Counter;
use crate::hold::{HoldError, header};
use crate::journal::{Alone, Journal, Undoer, Undone};
use crate::statements::{quoted, switch_of};

/// A statement that somebody reads columns with that a reset gives other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its digest text.
    pub statement: String,
    /// How often it ran since the server began to count statements.
    pub times: u64,
    /// When last, by the server's clock.
    pub last: String,
    /// The accounts that sent it, as `user@host`: existing sessions with this statement among their
    /// last ones. Empty if there are none.
    pub accounts: BTreeSet<String>,
}

/// Who reads what a reset gives other values, as far as Performance Schema has seen it; waggle itself is
/// left out. Absent where it is off or may not be read.
///
/// # Errors
/// The connection is broken.
pub fn readers(connection: &mut Connection) -> Result<Reading<Vec<Reader>>, ConnectionError> {
    if !connection.server_identity().performance_schema {
        return Ok(Reading::Absent("Performance Schema is off".to_owned()));
    }
    // A row for each session that is known to have sent a statement; those of a statement follow one
    // another.
    let rows = connection.rows(&format!(
        "SELECT d.DIGEST_TEXT AS {MARK}, d.COUNT_STAR, d.LAST_SEEN, \
         s.PROCESSLIST_USER, s.PROCESSLIST_HOST \
         FROM performance_schema.events_statements_summary_by_digest d LEFT JOIN (\
         SELECT e.DIGEST, t.PROCESSLIST_USER, t.PROCESSLIST_HOST FROM (\
         SELECT THREAD_ID, DIGEST FROM performance_schema.events_statements_current UNION \
         SELECT THREAD_ID, DIGEST FROM performance_schema.events_statements_history) e \
         JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID) s ON s.DIGEST = d.DIGEST \
         WHERE LOWER(d.DIGEST_TEXT) LIKE '%innodb_metrics%' \
         AND LOWER(d.DIGEST_TEXT) NOT LIKE '%{MARK}%' \
         ORDER BY d.LAST_SEEN DESC, d.DIGEST, d.SCHEMA_NAME"
    ));
    Ok(match absent_or(connection, "the tables of statements", rows)? {
        Reading::Value(rows) => Reading::Value(readers_in(&rows)),
        Reading::Absent(why) => Reading::Absent(why),
    })
}

fn readers_in(rows: &[Row]) -> Vec<Reader> {
    let of_statements = rows.chunk_by(|one, other| one.get(..3) == other.get(..3));
    let reader = |rows: &[Row]| {
        let row = rows.first()?;
        let statement = text(row, 0);
        let account = |row: &Row| Some(format!("{}@{}", optional_text(row, 3)?, text(row, 4)));
        reads_baseline(&statement).then(|| Reader {
            statement,
            times: text(row, 1).parse().unwrap_or(0),
            last: text(row, 2),
            accounts: rows.iter().filter_map(account).collect(),
        })
    };
    of_statements.filter_map(reader).collect()
}

/// Whether a statement reads a column that a reset gives another value, by its digest text, in which
/// every word stands apart.
fn reads_baseline(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let is_of_reset = |word: &&str| word.trim_matches('`').to_ascii_uppercase().ends_with("_RESET");
    // What follows a product is a factor, and what follows the star of `COUNT(*)` is a bracket.
    let is_all = |pair: &[&str]| pair[0] == "*" && matches!(pair[1], "," | "FROM");
    words.iter().any(is_of_reset) || words.windows(2).any(is_all)
}

/// Resets counters: `COUNT_RESET` and its companions restart, `COUNT` stays. The journal first gets
/// what each `COUNT_RESET` held; if the server refuses the first reset, the journal is closed.
///
/// # Errors
/// The journal cannot be written, the server refuses, or the connection is broken.
pub fn reset(
    directory: &Path,
    connection: &mut Connection,
    command: &str,
    counters: &[Counter],
) -> Result<(), HoldError> {
    let mut journal = Journal::begin(&Alone::within(directory)?, header(connection, command)?)?;
    let held = counters.iter().map(|counter| (counter.name.clone(), counter.count_reset));
    journal.reset(held.collect::<BTreeMap<_, _>>())?;
    let mut names: Vec<&str> =
        counters.iter().map(|counter| switch_of(&counter.subsystem, &counter.name)).collect();
    names.dedup();
    for (done, name) in names.into_iter().enumerate() {
        let sent = connection.rows(&format!("SET GLOBAL innodb_monitor_reset = {}", quoted(name)));
        if let Err(error) = sent {
            if done == 0 {
                journal.close(Undone::whole(Undoer::Command))?;
            }
            return Err(error.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_read_by_its_columns_or_by_a_star_and_not_by_who_counts() {
        for statement in [
            "SELECT NAME , `COUNT_RESET` FROM `information_schema` . `INNODB_METRICS`",
            "SELECT `m` . `max_count_reset` / ? FROM `information_schema` . `innodb_metrics` `m`",
            "SELECT * FROM `information_schema` . `INNODB_METRICS` WHERE NAME = ?",
            "SELECT NOW ( ) , `m` . * FROM `INNODB_METRICS` AS `m`",
            "SELECT `m` . * , ? FROM `INNODB_METRICS` AS `m`",
        ] {
            assert!(reads_baseline(statement), "{statement}");
        }
        for statement in [
            "SELECT NAME , COUNT FROM `information_schema` . `INNODB_METRICS`",
            "SELECT COUNT ( * ) FROM `information_schema` . `INNODB_METRICS`",
            "SELECT `COUNT` * ? FROM `information_schema` . `INNODB_METRICS`",
        ] {
            assert!(!reads_baseline(statement), "{statement}");
        }
    }

    #[test]
    fn a_statement_is_named_once_with_all_who_are_known_to_have_sent_it() {
        let row = |columns: [Option<&str>; 5]| -> Row {
            columns.map(|column| column.map(|text| text.as_bytes().to_vec())).to_vec()
        };
        let (all, count) = ("SELECT * FROM `INNODB_METRICS`", "SELECT COUNT FROM `INNODB_METRICS`");
        let readers = readers_in(&[
            row([Some(all), Some("3"), Some("12:00"), Some("ann"), Some("db1")]),
            row([Some(all), Some("3"), Some("12:00"), Some("ann"), Some("db1")]),
            row([Some(all), Some("3"), Some("12:00"), Some("ben"), Some("db2")]),
            row([Some(count), Some("2"), Some("11:00"), Some("ann"), Some("db1")]),
            row([Some(all), Some("1"), Some("10:00"), None, None]),
        ]);
        let seen: Vec<_> = readers.iter().map(|reader| (reader.times, &reader.accounts)).collect();
        let both = BTreeSet::from(["ann@db1".to_owned(), "ben@db2".to_owned()]);
        assert_eq!(seen, [(3, &both), (1, &BTreeSet::new())]);
    }
}
