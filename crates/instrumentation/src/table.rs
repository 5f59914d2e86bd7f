//! The tables by which the server's instrumentation is set up.

use serde::{Deserialize, Serialize};

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
}

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
    pub const ALL: [Table; 7] = [
        Table::Actors,
        Table::Objects,
        Table::SetupThreads,
        Table::Timers,
        Table::Instruments,
        Table::Consumers,
        Table::Threads,
    ];

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
        };
        Shape { name, key, settings, grows }
    }

    /// Its name in the schema `performance_schema`.
    pub fn name(self) -> &'static str {
        self.shape().name
    }
}
