//! Whether a server was started as it was asked to be.

use waggle_mysql::connection::{Row, text};
use waggle_mysql::{Connection, ConnectionError};

/// What a server lowers where it may open too few files (MySQL 9 manual, section 7.1.8, `open_files_limit`).
const LOWERED: [&str; 4] =
    ["max_connections", "open_files_limit", "table_open_cache", "table_definition_cache"];

/// The first option that does not read as it was given, as a sentence. A server lowers some by itself,
/// such as `max_connections` where it may open too few files. What an option says last counts; those
/// that begin with `--loose-` need not be known to the server, and some belong to no variable.
///
/// # Errors
/// The connection is broken.
pub(crate) fn first_difference(
    connection: &mut Connection,
    options: &[&str],
) -> Result<Option<String>, ConnectionError> {
    Ok(difference(&connection.rows("SHOW GLOBAL VARIABLES")?, options))
}

fn difference(rows: &[Row], options: &[&str]) -> Option<String> {
    // Sizes of what is not there: 0 with 8.0.12.
    let is_off = value(rows, "performance_schema").as_deref() == Some("OFF");
    let is_there = |name: &str| !is_off || !name.starts_with("performance_schema_");
    options.iter().enumerate().find_map(|(at, option)| {
        let (name, wanted) = parts(option).filter(|(name, _)| is_there(name))?;
        let is_last = !options[at + 1..]
            .iter()
            .any(|later| parts(later).is_some_and(|(later, _)| later == name));
        let found = value(rows, &name).filter(|found| is_last && !is_same(wanted, found))?;
        let remedy = match LOWERED.contains(&name.as_str()) {
            true => "where it may open too few files it lowers such settings: raise that limit (ulimit -Hn)",
            false => "give it in the suite as the server has it",
        };
        Some(format!("the server was started with {option} and says that {name} is {found}; {remedy}"))
    })
}

/// The variable of an option, and what it is to be.
fn parts(option: &str) -> Option<(String, &str)> {
    let (name, value) = option.strip_prefix("--")?.split_once('=')?;
    let is_asked_for = !name.starts_with("loose-") && !name.starts_with("loose_");
    is_asked_for.then(|| (name.replace('-', "_"), value))
}

fn value(variables: &[Row], name: &str) -> Option<String> {
    variables.iter().find(|row| text(row, 0) == name).map(|row| text(row, 1))
}

/// Whether a variable reads as its option was written: `ON` may be `1`, `1K` is `1024`.
fn is_same(wanted: &str, found: &str) -> bool {
    let of = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" => Some(1),
        "OFF" | "FALSE" => Some(0),
        text => number(text),
    };
    wanted.eq_ignore_ascii_case(found) || of(wanted).is_some_and(|wanted| of(found) == Some(wanted))
}

/// A number with a suffix as the servers read it (MySQL 9 manual, section 6.2.2.5).
fn number(text: &str) -> Option<u64> {
    const SUFFIXES: [(char, u32); 6] =
        [('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50), ('E', 60)];
    let suffix =
        SUFFIXES.iter().find_map(|(suffix, bits)| Some((text.strip_suffix(*suffix)?, bits)));
    let (digits, bits) = suffix.unwrap_or((text, &0));
    digits.parse::<u64>().ok()?.checked_shl(*bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_reads_as_it_was_written_or_as_the_server_writes_it() {
        for (wanted, found) in
            [("ON", "ON"), ("off", "OFF"), ("1", "ON"), ("128M", "134217728"), ("1g", "1073741824")]
        {
            assert!(is_same(wanted, found), "{wanted} {found}");
        }
        for (wanted, found) in [("ON", "OFF"), ("1100", "214"), ("O_DIRECT", "fsync"), ("1M", "1")]
        {
            assert!(!is_same(wanted, found), "{wanted} {found}");
        }
    }

    #[test]
    fn sizes_of_what_is_switched_off_may_read_as_they_will() {
        let options = ["--performance-schema-digests-size=10000", "--max-connections=7"];
        let rows = |is_on: &str, size: &str| -> Vec<Row> {
            [
                ("performance_schema", is_on),
                ("performance_schema_digests_size", size),
                ("max_connections", "7"),
            ]
            .map(|(name, value)| vec![Some(name.into()), Some(value.into())])
            .to_vec()
        };
        assert_eq!(difference(&rows("OFF", "0"), &options), None);
        assert_eq!(difference(&rows("ON", "10000"), &options), None);
        let why = difference(&rows("ON", "0"), &options).unwrap();
        assert!(why.contains("performance_schema_digests_size is 0"), "{why}");
    }

    #[test]
    fn the_variable_of_an_option_is_known_unless_the_server_need_not_know_it() {
        assert_eq!(parts("--max-connections=7"), Some(("max_connections".to_owned(), "7")));
        assert_eq!(parts("--loose-x=7"), None);
        assert_eq!(parts("--skip-networking"), None);
    }
}
