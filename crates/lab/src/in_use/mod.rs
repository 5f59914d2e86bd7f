//! A server in use. Every change of it is in a journal before, and is taken back. The load works in a schema of its own,
//! which is dropped.

mod confined;
mod schema;
mod survey;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use waggle_instrumentation::apply::ROWS_MAX;
use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::statements::batches;
use waggle_instrumentation::undo::Restored;
use waggle_instrumentation::{Change, State, Table};
use waggle_mysql::{Connection, ConnectionError, Options};

use crate::error::LabError;
use crate::load::Reach;
use crate::measured_server;
use crate::suite::{Scenario, Suite};

pub(crate) use confined::Confined;
pub(crate) use schema::SCHEMA;
pub(crate) use survey::Survey;

/// A server in use, while a run may change it.
pub(crate) struct HeldServer {
    pub(crate) options: Options,
    /// How a load of ours reaches it, where there is one.
    pub(crate) reach: Option<Reach>,
    /// Its process, where it is on this host.
    pub(crate) pid: Option<u32>,
    /// Where there is room for files of ours.
    pub(crate) directory: PathBuf,
    /// What was set before the run.
    pub(crate) first: State,
    held: RefCell<Held>,
}

/// The changes to take back, and the connection for that: the journal names it, and its session holds the lock on the
/// schema.
struct Held {
    hold: Hold,
    connection: Connection,
    has_schema: bool,
}

/// What each scenario of a suite would change on a server as it is now, a line each: rows of setup tables and counters of
/// InnoDB, and statements for that, more of them where the server is slow. Nothing is changed.
///
/// # Errors
/// The account may not read what is set; then with the `GRANT` to run.
pub(crate) fn preview(connection: &mut Connection, suite: &Suite) -> Result<Vec<String>, LabError> {
    let state = State::read(connection)?;
    if let Some(why) = state.why_absent(Table::Instruments) {
        return Err(LabError::Cannot(why.to_owned()));
    }
    let version = connection.server_identity().server_version();
    let preview = |scenario: &Scenario| -> Result<String, LabError> {
        let changes = measured_server::plan(scenario, &state, version)?;
        let statements = batches(&changes, ROWS_MAX).count();
        let counters = changes.iter().filter(|change| change.table == Table::Metrics).count();
        let rows = changes.len() - counters;
        let counters = match counters {
            0 => String::new(),
            _ => format!(" and {counters} InnoDB counters"),
        };
        Ok(format!(
            "  {:<28} changes {rows} rows of performance_schema.setup_*{counters}, with at least {statements} statements",
            scenario.name
        ))
    };
    suite.scenarios.iter().map(preview).collect()
}

/// Checks that an account may do what a run of a suite does, by statements that change nothing.
///
/// # Errors
/// It may not; then with the `GRANT` to run.
pub(crate) fn check_rights(connection: &mut Connection, suite: &Suite) -> Result<(), LabError> {
    for (statement, what, right) in [
        (
            "UPDATE performance_schema.setup_instruments SET ENABLED = ENABLED WHERE NAME = ''",
            "set Performance Schema",
            "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*",
        ),
        ("SHOW ENGINE PERFORMANCE_SCHEMA STATUS", "see what a server is doing", "PROCESS ON *.*"),
    ] {
        let tried = connection.rows(statement);
        tried.map_err(|error| denied(connection, what, right, error))?;
    }
    let state = State::read(connection)?;
    let version = connection.server_identity().server_version();
    for scenario in &suite.scenarios {
        let changes = measured_server::plan(scenario, &state, version)?;
        if changes.iter().any(|change| change.table == Table::Metrics) {
            return may_set_counters(connection);
        }
    }
    Ok(())
}

/// Tried with a name that no counter of InnoDB has: an account that may set them gets another error.
fn may_set_counters(connection: &mut Connection) -> Result<(), LabError> {
    let right = Table::Metrics.right_to_change(connection.server_identity());
    match connection.rows("SET GLOBAL innodb_monitor_enable = 'waggle_has_none'") {
        Err(error) if error.is_access_denied() => {
            Err(denied(connection, "set counters of InnoDB", right, error))
        }
        _ => Ok(()),
    }
}

/// An error, as a lack of rights where it is one.
fn denied(connection: &Connection, what: &str, right: &str, error: ConnectionError) -> LabError {
    if !error.is_access_denied() {
        return error.into();
    }
    let server = connection.server_identity();
    let (account, grant) = (&server.account, server.grant(right));
    LabError::Cannot(format!("account {account} may not {what}; run {grant}"))
}

impl HeldServer {
    /// A server whose changes go to `hold`. A load of ours reaches it as `reach` says. Its process is `pid`, if it is on this
    /// host. Files of ours go to `directory`.
    ///
    /// # Errors
    /// What is set cannot be read.
    pub(crate) fn new(
        mut connection: Connection,
        hold: Hold,
        options: Options,
        reach: Option<Reach>,
        pid: Option<u32>,
        directory: &Path,
    ) -> Result<HeldServer, LabError> {
        let first = State::read(&mut connection)?;
        let held = RefCell::new(Held { hold, connection, has_schema: false });
        Ok(HeldServer { options, reach, pid, directory: directory.to_owned(), first, held })
    }

    /// Makes the schema of the load for the run in directory `run`. Drops the schema of a run that was killed, and gives
    /// the directory of that run.
    ///
    /// # Errors
    /// Another run uses it, somebody else made it, or the account may not.
    pub(crate) fn make_schema(&self, run: &Path) -> Result<Option<String>, LabError> {
        let mut held = self.held.borrow_mut();
        let left = schema::claim(&mut held.connection)?;
        schema::create(&mut held.connection)?;
        held.has_schema = true;
        schema::mark(&mut held.connection, run)?;
        Ok(left)
    }

    /// Makes changes.
    ///
    /// # Errors
    /// The server refuses one, or the journal cannot be written.
    pub(crate) fn make(&self, changes: &[Change]) -> Result<(), LabError> {
        let mut held = self.held.borrow_mut();
        let Held { hold, connection, .. } = &mut *held;
        Ok(hold.add(connection, changes, &mut |_| {})?)
    }

    /// Takes every change back, and drops the schema of the load.
    ///
    /// # Errors
    /// One of the two failed; the other was done. If both failed, it is the error of the changes.
    pub(crate) fn end(self) -> Result<Restored, LabError> {
        let Held { hold, mut connection, has_schema } = self.held.into_inner();
        let restored = hold.end(&mut connection, &mut |_| {});
        let dropped = if has_schema { schema::drop_it(&mut connection) } else { Ok(()) };
        let restored = restored?;
        dropped?;
        Ok(restored)
    }
}
