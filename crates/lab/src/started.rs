//! Whether a server took the options that it was started with.

use waggle_mysql::connection::{Row, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::server_option::{Difference, ServerOption};

/// What a server lowers if it may open too few files (MySQL 9 manual, section 7.1.8, `open_files_limit`).
const LOWERED: [&str; 4] =
    ["max_connections", "open_files_limit", "table_open_cache", "table_definition_cache"];

/// The first option that does not read as it was given, as a sentence. The last value of an option counts. Options without
/// a variable are not checked.
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
    let options: Vec<(&str, ServerOption<'_>)> =
        options.iter().map(|option| (*option, ServerOption::of(option))).collect();
    options.iter().enumerate().find_map(|(at, (written, option))| {
        let is_last = !options[at + 1..].iter().any(|(_, later)| later.name == option.name);
        if !is_last || !is_there(&option.name) {
            return None;
        }
        // Without a value it is a switch, or means a default that only the server knows.
        let is_switch = |found: &String| option.value.is_some() || ["ON", "OFF"].contains(&found.as_str());
        let variable = |name: &str| value(rows, name).filter(is_switch);
        let Difference { variable, found } = option.against(variable)?.err()?;
        let remedy = match LOWERED.contains(&variable.as_str()) {
            true => "where it may open too few files it lowers such settings: raise that limit (ulimit -Hn)",
            false => "give it in the suite as the server has it",
        };
        Some(format!(
            "the server was started with {written} and says that {variable} is {found}; {remedy}"
        ))
    })
}

fn value(variables: &[Row], name: &str) -> Option<String> {
    variables.iter().find(|row| text(row, 0) == name).map(|row| text(row, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_said_last_counts_and_what_belongs_to_no_variable_does_not() {
        let rows = [vec![Some("max_connections".into()), Some("7".into())]];
        assert_eq!(difference(&rows, &["--max-connections=9", "--max_connections=7"]), None);
        for option in ["--loose-no-such-option=9", "--max-connections", "--no-such-option=9"] {
            assert_eq!(difference(&rows, &[option]), None, "{option}");
        }
        let switch = [vec![Some("log_bin".into()), Some("ON".into())]];
        assert_eq!(difference(&switch, &["--log-bin"]), None);
        assert!(difference(&switch, &["--skip-log-bin"]).is_some());
        let both = ["--max-connections=9", "--loose-max-connections=7"];
        assert_eq!(difference(&rows, &both), None);
        for option in ["--max-connections=9", "--loose-max-connections=9"] {
            assert!(difference(&rows, &[option]).is_some(), "{option}");
        }
    }
}
