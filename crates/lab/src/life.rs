//! One start of a private server, and what is set on it.

use std::path::Path;

use waggle_instrumentation::activity::{self, Events};
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::metrics::{self, Counter};
use waggle_instrumentation::profile::Profile;
use waggle_instrumentation::statements::batches;
use waggle_instrumentation::{Change, Plan, State, Wanted, sessions};
use waggle_model::{Reading, ServerVersion};
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, Options};
use waggle_private_server::PrivateServer;

use crate::error::LabError;
use crate::meter::Meter;
use crate::suite::Scenario;

/// Rows in one statement at most. Nobody waits for a private server.
const ROWS_MAX: usize = 10_000;

/// A private server that runs.
pub(crate) struct Life {
    /// Its number in the run.
    pub(crate) number: u32,
    /// Whether its throughput was steady once.
    pub(crate) is_warm: bool,
    pub(crate) server: PrivateServer,
    pub(crate) meter: Meter,
    connection: Connection,
    version: ServerVersion,
}

/// As whom we and the sessions of a load log in: on a private server `root` has no password.
pub(crate) const USER: &str = "root";

/// How to reach a private server.
pub(crate) fn options(socket: &Path) -> Options {
    let (user, socket) = (Some(USER.to_owned()), Some(socket.to_owned()));
    Options { user, socket, ..Options::default() }
}

/// What a private server says of its version.
///
/// # Errors
/// It cannot be reached.
pub fn version_of(server: &PrivateServer) -> Result<String, LabError> {
    Ok(Connection::open(&options(&server.socket()), None)?.server_identity().version.clone())
}

impl Life {
    pub(crate) fn of(server: PrivateServer, number: u32) -> Result<Life, LabError> {
        let mut connection = Connection::open(&options(&server.socket()), None)?;
        // Dates and zeros as profiles write them.
        connection.rows("SET SESSION sql_mode = ''")?;
        let identity = connection.server_identity();
        let version = ServerVersion::parse(identity.flavour, &identity.version);
        let meter = Meter::of(server.pid())?;
        Ok(Life { number, is_warm: false, server, meter, connection, version })
    }

    /// Sets what a scenario sets while the server runs, and reads it back. What does not read as it was
    /// set is returned.
    pub(crate) fn set(&mut self, scenario: &Scenario) -> Result<Option<String>, LabError> {
        for (name, value) in &scenario.variables {
            self.connection.rows(&format!("SET GLOBAL {name} = {value}"))?;
            let rows =
                self.connection.rows(&format!("SELECT @@GLOBAL.{name} = {value} AS {MARK}"))?;
            if rows.first().map(|row| text(row, 0)).as_deref() != Some("1") {
                return Ok(Some(format!("{name} does not read as {value}")));
            }
        }
        let Some(name) = &scenario.profile else { return Ok(None) };
        let profile = Profile::find(name).map_err(|error| LabError::Scenario {
            scenario: scenario.name.clone(),
            reason: error.to_string(),
        })?;
        let changes = self.changes(&profile, &scenario.name)?;
        for sql in batches(&changes, ROWS_MAX).filter_map(|batch| batch.sql()) {
            self.connection.rows(&sql)?;
        }
        let left = self.changes(&profile, &scenario.name)?;
        Ok(left.first().map(|first| {
            format!(
                "{} rows do not read as they were set, such as {}",
                left.len(),
                first.key.join(" ")
            )
        }))
    }

    /// What a profile would change.
    fn changes(&mut self, profile: &Profile, scenario: &str) -> Result<Vec<Change>, LabError> {
        let state = State::read(&mut self.connection)?;
        let sessions = sessions::read(&mut self.connection)?;
        let filter = Filter::default();
        let wanted =
            Wanted { profile, filter: &filter, sessions: &sessions, version: self.version };
        Ok(Plan::new(&state, &wanted).map_err(LabError::plan(scenario))?.changes)
    }

    /// Statements that the server counted so far, without those of this connection.
    pub(crate) fn statements(&mut self) -> Result<u64, LabError> {
        let rows = self.connection.rows("SHOW GLOBAL STATUS LIKE 'Questions'")?;
        let counted: u64 = rows.first().and_then(|row| text(row, 1).parse().ok()).unwrap_or(0);
        Ok(counted.saturating_sub(self.connection.statements()))
    }

    /// Events by instrument so far; `None` where Performance Schema is off.
    pub(crate) fn events(&mut self) -> Result<Option<Events>, LabError> {
        match activity::read(&mut self.connection)? {
            Reading::Value(events) => Ok(Some(events)),
            Reading::Absent(_) => Ok(None),
        }
    }

    /// Counters of InnoDB by their names; those that the server lacks, or that may not be read, are left
    /// out.
    pub(crate) fn counters(&mut self, names: &[String]) -> Result<Vec<Counter>, LabError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let Reading::Value(mut counters) = metrics::read(&mut self.connection)? else {
            return Ok(Vec::new());
        };
        counters.retain(|counter| names.contains(&counter.name));
        Ok(counters)
    }

    /// The memory that Performance Schema says it uses, bytes: 0 where it is off; `None` where the
    /// server does not tell.
    pub(crate) fn performance_schema_bytes(&mut self) -> Result<Option<u64>, LabError> {
        // Then it makes no buffers, and not every server has rows, or the engine at all.
        if !self.connection.server_identity().performance_schema {
            return Ok(Some(0));
        }
        let rows = self.connection.rows("SHOW ENGINE PERFORMANCE_SCHEMA STATUS");
        let Reading::Value(rows) = absent_or(&self.connection, "the engine status", rows)? else {
            return Ok(None);
        };
        let is_total =
            |row: &&waggle_mysql::connection::Row| text(row, 1) == "performance_schema.memory";
        Ok(rows.iter().find(is_total).and_then(|row| text(row, 2).parse().ok()))
    }
}
