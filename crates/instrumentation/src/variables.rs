//! The global variables that may be switched back and forth while the server works.
//!
//! Each takes effect at once, also for sessions that are there, and loses nothing when it is set back: none that decides what is
//! on disk after a crash is among them. What a log has written stays.

use waggle_mysql::{Connection, ConnectionError};

use crate::change::Change;
use crate::state::State;
use crate::table::Table;

/// What a variable can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// `ON` or `OFF`.
    Switch,
    /// A whole number up to this one.
    UpTo(u64),
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it can hold.
    pub values: Values,
    /// What it does.
    pub does: &'static str,
    /// The instrument of Performance Schema that counts only while it is `ON`.
    pub counted_by: Option<&'static str>,
}

const fn switch(name: &'static str, does: &'static str) -> Variable {
    Variable { name, values: Values::Switch, does, counted_by: None }
}

const fn number(name: &'static str, most: u64, does: &'static str) -> Variable {
    Variable { name, values: Values::UpTo(most), does, counted_by: None }
}

/// All of them, by name. Not every server has each.
pub const VARIABLES: [Variable; 9] = [
    switch("binlog_order_commits", "transactions commit in the order of the binary log (MySQL)"),
    Variable {
        counted_by: Some("wait/io/file/sql/query_log"),
        ..switch(
            "general_log",
            "writes every statement to the general log, with its literals; the log keeps what was written",
        )
    },
    switch(
        "innodb_log_writer_threads",
        "threads of their own write the redo log (MySQL 8.0.22 and later)",
    ),
    switch("innodb_print_all_deadlocks", "writes every deadlock to the error log"),
    number("innodb_spin_wait_delay", 1000, "how long a thread pauses between two looks at a latch"),
    number("innodb_sync_spin_loops", 4000, "how often a thread looks at a latch before it sleeps"),
    number(
        "innodb_thread_concurrency",
        1000,
        "how many threads may be inside InnoDB; 0: any number",
    ),
    Variable {
        counted_by: Some("wait/io/file/sql/slow_log"),
        ..switch(
            "slow_query_log",
            "writes statements above long_query_time to the slow log, with their literals; the log keeps what was written",
        )
    },
    switch("userstat", "counts by user, client, table and index (MariaDB)"),
];

/// Why a variable cannot be switched.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// It is not among [`VARIABLES`].
    #[error(
        "{0} is not among the variables that may be switched: each of those takes effect at once for all sessions, and loses \
         nothing when it is set back; the list: waggle prove variable"
    )]
    NotListed(String),
    /// It cannot hold this value.
    #[error("{name} cannot be {value}; write {may}")]
    Value {
        /// The variable.
        name: &'static str,
        /// The value.
        value: String,
        /// What it can hold.
        may: String,
    },
    /// Both values are the same.
    #[error("{0}: both values are the same, so that there is nothing to compare")]
    Same(&'static str),
    /// This server has no such variable.
    #[error("this server has no variable {0}")]
    Missing(&'static str),
    /// They cannot be read.
    #[error("{0}")]
    Absent(String),
    /// The server.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl Variable {
    /// The variable of this name.
    pub fn of_name(name: &str) -> Option<&'static Variable> {
        VARIABLES.iter().find(|variable| variable.name == name)
    }

    /// A value as the server shows it; `None` where the variable cannot hold it.
    pub fn value(&self, text: &str) -> Option<String> {
        match self.values {
            Values::Switch => match text.to_ascii_uppercase().as_str() {
                "ON" | "1" | "TRUE" => Some("ON".to_owned()),
                "OFF" | "0" | "FALSE" => Some("OFF".to_owned()),
                _ => None,
            },
            Values::UpTo(most) => {
                let number = number_of(text).filter(|number| *number <= most)?;
                Some(number.to_string())
            }
        }
    }

    /// Whether a server can hold this value, which need not be one that waggle would set.
    pub(crate) fn can_be(&self, text: &str) -> bool {
        match self.values {
            Values::Switch => self.value(text).is_some(),
            Values::UpTo(_) => number_of(text).is_some(),
        }
    }

    /// What it can hold, in words.
    pub fn may(&self) -> String {
        match self.values {
            Values::Switch => "ON or OFF".to_owned(),
            Values::UpTo(most) => format!("a number from 0 to {most}"),
        }
    }
}

/// A number of digits alone.
fn number_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What leads a variable from where it is to the first value, if it is not there, and from the first to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// To the first.
    pub first: Option<Change>,
    /// From the first to the second.
    pub second: Change,
}

/// The changes that switch a variable between two values.
///
/// # Errors
/// It may not be switched, cannot hold them, or is not there; or the connection is broken.
pub fn switched(
    connection: &mut Connection,
    name: &str,
    values: [&str; 2],
) -> Result<Switched, VariableError> {
    let name = name.to_ascii_lowercase();
    let variable = Variable::of_name(&name).ok_or(VariableError::NotListed(name))?;
    let checked = |value: &str| {
        variable.value(value).ok_or_else(|| VariableError::Value {
            name: variable.name,
            value: value.to_owned(),
            may: variable.may(),
        })
    };
    let [first, second] = [checked(values[0])?, checked(values[1])?];
    if first == second {
        return Err(VariableError::Same(variable.name));
    }
    let state = State::read_of(connection, [Table::Variables])?;
    if let Some(why) = state.why_absent(Table::Variables) {
        return Err(VariableError::Absent(why.to_owned()));
    }
    let key = vec![variable.name.to_owned()];
    let now = state.row(Table::Variables, &key).ok_or(VariableError::Missing(variable.name))?;
    let change = |before: &[Option<String>], after: String| Change {
        table: Table::Variables,
        key: key.clone(),
        before: Some(before.to_vec()),
        after: Some(vec![Some(after)]),
    };
    let holds_first = vec![Some(first.clone())];
    Ok(Switched {
        first: (*now != holds_first).then(|| change(now, first)),
        second: change(&holds_first, second),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_as_the_server_shows_it() {
        let of = |name| Variable::of_name(name).unwrap();
        assert_eq!(of("general_log").value("on"), Some("ON".to_owned()));
        assert_eq!(of("general_log").value("0"), Some("OFF".to_owned()));
        assert_eq!(of("general_log").value("yes"), None);
        assert_eq!(of("innodb_sync_spin_loops").value("030"), Some("30".to_owned()));
        for wrong in ["-1", "+1", "4001", "1e3", "", "1; DROP TABLE t"] {
            assert_eq!(of("innodb_sync_spin_loops").value(wrong), None, "{wrong}");
        }
        assert!(of("innodb_sync_spin_loops").can_be("9999") && !of("general_log").can_be("2"));
        assert_eq!(Variable::of_name("sync_binlog"), None);
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(VARIABLES.is_sorted_by_key(|variable| variable.name));
    }
}
