//! The settings of a server in use, and which scenarios it can have as it is.

use std::collections::BTreeMap;

use waggle_mysql::Connection;
use waggle_mysql::connection::{Row, text};

use crate::error::LabError;
use crate::measured_server;
use crate::server_option::{Difference, ServerOption};
use crate::suite::Scenario;

/// Why a scenario is not run.
const RESTART: &str = "needs a restart";
const VARIABLES: &str = "sets variables, which no journal takes back";
/// Sessions that are left to others.
const LEFT: u32 = 5;
/// Prepared statements of a session: 2, and 9 for each table (`oltp_read_write`).
const STATEMENTS: u32 = 2;
const STATEMENTS_A_TABLE: u32 = 9;

/// Variables by their names.
type Variables = BTreeMap<String, String>;

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    variables: Variables,
    connected: u32,
    prepared: u32,
}

impl Survey {
    /// Asks a server.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn of(connection: &mut Connection) -> Result<Survey, LabError> {
        let pair = |row: &Row| (text(row, 0).to_lowercase(), text(row, 1));
        let variables = connection.rows("SHOW GLOBAL VARIABLES")?.iter().map(pair).collect();
        let mut status = |name: &str| -> Result<u32, LabError> {
            Ok(measured_server::status(connection, name)?.min(u64::from(u32::MAX)) as u32)
        };
        let (connected, prepared) = (status("Threads_connected")?, status("Prepared_stmt_count")?);
        Ok(Survey { variables, connected, prepared })
    }

    /// Sessions that are there.
    pub fn sessions(&self) -> u32 {
        self.connected
    }

    /// How many sessions there is room for, each with prepared statements for this number of tables.
    pub fn sessions_max(&self, tables: u32) -> u32 {
        let statements = self.limit("max_prepared_stmt_count").saturating_sub(self.prepared);
        let sessions = self.connections_left().saturating_sub(LEFT);
        sessions.min(statements / (STATEMENTS + STATEMENTS_A_TABLE * tables))
    }

    /// Sessions that may still log in.
    pub fn connections_left(&self) -> u32 {
        self.limit("max_connections").saturating_sub(self.connected)
    }

    fn limit(&self, name: &str) -> u32 {
        self.number(name).map_or(u32::MAX, |it| it.min(u64::from(u32::MAX)) as u32)
    }

    /// Where it has its data, as it calls that place.
    pub fn data_directory(&self) -> Option<&str> {
        self.variables.get("datadir").map(String::as_str)
    }

    /// A variable that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.variables.get(name)?.parse().ok()
    }

    /// The options of a suite that this server has otherwise, each in words.
    pub fn otherwise(&self, options: &[String]) -> Vec<String> {
        let variable = |name: &str| self.variables.get(name).cloned();
        let words = |option: &String| {
            let Difference { variable, found } =
                ServerOption::of(option).against(variable)?.err()?;
            Some(format!("{variable} is {found} ({option} in the suite)"))
        };
        options.iter().filter_map(words).collect()
    }

    /// Why a scenario cannot be measured without a restart, or without leaving something behind; `None`
    /// where it can.
    pub fn why_not(&self, scenario: &Scenario) -> Option<&'static str> {
        let variable = |name: &str| self.variables.get(name).cloned();
        let is_so = |option: &String| ServerOption::of(option).against(variable) == Some(Ok(()));
        if !scenario.start.iter().all(is_so) {
            return Some(RESTART);
        }
        (!scenario.variables.is_empty()).then_some(VARIABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    fn survey(variables: &[(&str, &str)]) -> Survey {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Survey { variables: variables.iter().map(pair).collect(), connected: 3, prepared: 100 }
    }

    #[test]
    fn what_needs_a_restart_depends_on_how_the_server_was_started() {
        let suite = Suite::find("rds").unwrap();
        let left_out = |value: &str| -> Vec<String> {
            let there = survey(&[("performance_schema", value)]);
            let cannot = suite.scenarios.iter().filter(|one| there.why_not(one).is_some());
            cannot.map(|one| one.name.clone()).collect()
        };
        assert_eq!(left_out("ON"), ["pfsoff"]);
        assert_eq!(left_out("OFF").len(), 5);
        let mut scenario = suite.scenarios[1].clone();
        scenario.variables.insert("sync_binlog".to_owned(), "0".to_owned());
        let there = survey(&[("performance_schema", "ON")]);
        assert_eq!(there.why_not(&scenario), Some(VARIABLES));
    }

    #[test]
    fn what_the_server_has_otherwise_than_the_suite_is_said() {
        let there = survey(&[("innodb_flush_log_at_trx_commit", "2"), ("back_log", "300")]);
        let options =
            ["--innodb-flush-log-at-trx-commit=1", "--back-log=300", "--no-such-option=1"];
        let said = there.otherwise(&options.map(str::to_owned));
        let expected =
            "innodb_flush_log_at_trx_commit is 2 (--innodb-flush-log-at-trx-commit=1 in the suite)";
        assert_eq!(said, [expected]);
    }

    #[test]
    fn there_is_room_for_as_many_sessions_as_both_limits_allow() {
        let there = [("max_connections", "151"), ("max_prepared_stmt_count", "16382")];
        assert_eq!(survey(&there).sessions_max(10), 143);
        let there = [("max_connections", "5000"), ("max_prepared_stmt_count", "16382")];
        assert_eq!(survey(&there).sessions_max(10), 176);
    }
}
