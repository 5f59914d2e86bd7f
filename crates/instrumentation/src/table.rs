//! The setup tables of the server's instrumentation.

use serde::{Deserialize, Serialize};
use waggle_model::Flavour;
use waggle_mysql::ServerIdentity;
use waggle_mysql::connection::MARK;

use crate::statements::quoted;
use crate::variables::VARIABLES;

/// A table whose rows are settings. All of them are memory of the server: a restart forgets what was
/// written to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Which sessions are instrumented, when they log in.
    Actors,
    /// Which tables and stored programs are.
    Objects,
    /// Which background threads are, when they start; MySQL 8.0 and later.
    SetupThreads,
    /// Which timer a class uses; MySQL 5.7 and MariaDB.
    Timers,
    /// What is instrumented.
    Instruments,
    /// Where it is kept.
    Consumers,
    /// The threads that run now.
    Threads,
    /// The counters of InnoDB.
    Metrics,
    /// The global variables of [`crate::variables::VARIABLES`].
    Variables,
}

/// The first MariaDB whose `INNODB_METRICS` has the column `ENABLED`; before, and in MySQL, it is
/// called `STATUS`.
const ENABLED_IN_MARIADB: [u32; 3] = [10, 5, 0];
/// The subsystem of the counters of pages by their kind. They have one switch: the server refuses the
/// name of a single one (`ER_INNODB_USE_MONITOR_GROUP_NAME`).
pub(crate) const PAGE_COUNTERS: &str = "buffer_page_io";

/// What there is to know of a table.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The columns that tell its rows apart.
    pub(crate) key: &'static [&'static str],
    /// The columns that may be written.
    pub(crate) settings: &'static [&'static str],
    /// Whether rows may be added and removed.
    pub(crate) grows: bool,
}

impl Table {
    /// In the order in which changes are made.
    pub const ALL: [Table; 9] = [
        Table::Actors,
        Table::Objects,
        Table::SetupThreads,
        Table::Timers,
        Table::Instruments,
        Table::Consumers,
        Table::Threads,
        Table::Metrics,
        Table::Variables,
    ];

    /// The tables of Performance Schema and of InnoDB's counters. The others are read by who changes something in them.
    pub fn of_instrumentation() -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(|table| *table != Table::Variables)
    }

    pub(crate) fn shape(self) -> Shape {
        let (name, key, settings, grows): (_, &[_], &[_], _) = match self {
            Table::Actors => {
                ("setup_actors", &["HOST", "USER", "ROLE"], &["ENABLED", "HISTORY"], true)
            }
            Table::Objects => (
                "setup_objects",
                &["OBJECT_TYPE", "OBJECT_SCHEMA", "OBJECT_NAME"],
                &["ENABLED", "TIMED"],
                true,
            ),
            Table::SetupThreads => ("setup_threads", &["NAME"], &["ENABLED", "HISTORY"], false),
            Table::Timers => ("setup_timers", &["NAME"], &["TIMER_NAME"], false),
            Table::Instruments => ("setup_instruments", &["NAME"], &["ENABLED", "TIMED"], false),
            Table::Consumers => ("setup_consumers", &["NAME"], &["ENABLED"], false),
            Table::Threads => ("threads", &["THREAD_ID"], &["INSTRUMENTED", "HISTORY"], false),
            Table::Metrics => ("INNODB_METRICS", &["SUBSYSTEM", "NAME"], &["ENABLED"], false),
            Table::Variables => {
                ("global_variables", &["VARIABLE_NAME"], &["VARIABLE_VALUE"], false)
            }
        };
        Shape { name, key, settings, grows }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.shape().name
    }

    /// The statement that reads its keys and settings.
    pub(crate) fn select(self, server: &ServerIdentity) -> String {
        let shape = self.shape();
        match self {
            Table::Metrics => format!(
                "SELECT SUBSYSTEM AS {MARK}, NAME, {} FROM information_schema.INNODB_METRICS",
                enabled_of_metrics(server)
            ),
            Table::Variables => {
                let schema = match server.flavour {
                    Flavour::Mysql => "performance_schema",
                    Flavour::Mariadb => "information_schema",
                };
                let names = VARIABLES.map(|variable| quoted(variable.name)).join(", ");
                format!(
                    "SELECT LOWER(VARIABLE_NAME) AS {MARK}, VARIABLE_VALUE FROM {schema}.{} \
                     WHERE VARIABLE_NAME IN ({names})",
                    shape.name
                )
            }
            _ => {
                let columns = [shape.key, shape.settings].concat().join(", ");
                format!("SELECT {columns} FROM performance_schema.{}", shape.name)
            }
        }
    }

    /// The right that an account needs to read it.
    pub fn right_to_read(self) -> &'static str {
        match self {
            Table::Metrics => "PROCESS ON *.*",
            _ => "SELECT ON performance_schema.*",
        }
    }

    /// The right that an account needs to change it.
    pub fn right_to_change(self, server: &ServerIdentity) -> &'static str {
        let number = server.server_version().number;
        match self {
            Table::Metrics | Table::Variables
                if server.flavour == Flavour::Mysql && number[0] >= 8 =>
            {
                "SYSTEM_VARIABLES_ADMIN ON *.*"
            }
            Table::Metrics | Table::Variables => "SUPER ON *.*",
            _ => "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*",
        }
    }
}

/// Whether a counter of `INNODB_METRICS` is on, as an expression that gives `YES` or `NO`.
pub(crate) fn enabled_of_metrics(server: &ServerIdentity) -> &'static str {
    let number = server.server_version().number;
    if server.flavour == Flavour::Mariadb && number >= ENABLED_IN_MARIADB {
        "IF(ENABLED, 'YES', 'NO')"
    } else {
        "IF(STATUS = 'enabled', 'YES', 'NO')"
    }
}
