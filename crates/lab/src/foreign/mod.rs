//! A server that somebody else started. What is changed on it is in a journal before, and is taken back;
//! the load works in a schema of its own, which is dropped.

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
use crate::life;
use crate::load::Reach;
use crate::suite::Suite;

pub use confined::Confined;
pub use schema::SCHEMA;
pub use survey::Survey;

/// A server that somebody else started, while a run uses it.
pub struct Foreign {
    options: Options,
    reach: Option<Reach>,
    /// Its process, where it is on this host.
    pid: Option<u32>,
    directory: PathBuf,
    first: State,
    held: RefCell<Held>,
}

/// What is to be taken back, and the connection that does so: the journal names it, and the lock on the
/// schema is that of its session.
struct Held {
    hold: Hold,
    connection: Connection,
    has_schema: bool,
}

/// What a scenario would change on a server as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The scenario.
    pub scenario: String,
    /// Rows of setup tables and counters of InnoDB.
    pub rows: usize,
    /// Statements that change them, at least: fewer rows a statement where the server is slow.
    pub statements: usize,
}

/// What each scenario of a suite would change on a server as it is now. Nothing is changed.
///
/// # Errors
/// The account may not read what is set; then with the `GRANT` to run.
pub fn preview(connection: &mut Connection, suite: &Suite) -> Result<Vec<Preview>, LabError> {
    let state = State::read(connection)?;
    if let Some(why) = state.why_absent(Table::Instruments) {
        return Err(LabError::Foreign(why.to_owned()));
    }
    let version = connection.server_identity().server_version();
    let previews = suite.scenarios.iter().map(|scenario| -> Result<Preview, LabError> {
        let changes = life::plan(scenario, &state, version)?;
        let statements = batches(&changes, ROWS_MAX).count();
        Ok(Preview { scenario: scenario.name.clone(), rows: changes.len(), statements })
    });
    previews.collect()
}

/// Whether an account may do what a run of a suite does. It is tried by statements that change nothing.
///
/// # Errors
/// It may not; then with the `GRANT` to run.
pub fn check_rights(connection: &mut Connection, suite: &Suite) -> Result<(), LabError> {
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
        let changes = life::plan(scenario, &state, version)?;
        if changes.iter().any(|change| change.table == Table::Metrics) {
            return may_set_counters(connection);
        }
    }
    Ok(())
}

/// Tried with a name that no counter of InnoDB has: who may set them is told that it is wrong.
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
    LabError::Foreign(format!("account {account} may not {what}; run {grant}"))
}

impl Foreign {
    /// Takes over changes that are about to be made, on a server that is reached by these options, by a load of ours as
    /// `reach` says, and whose process is `pid`, where it is on this host. Files of ours go to `directory`.
    ///
    /// # Errors
    /// What is set cannot be read.
    pub fn new(
        mut connection: Connection,
        hold: Hold,
        options: Options,
        reach: Option<Reach>,
        pid: Option<u32>,
        directory: &Path,
    ) -> Result<Foreign, LabError> {
        let first = State::read(&mut connection)?;
        let held = RefCell::new(Held { hold, connection, has_schema: false });
        Ok(Foreign { options, reach, pid, directory: directory.to_owned(), first, held })
    }

    /// Makes the schema of the load, for a run that is kept in `run`. Gives the run whose schema was
    /// there, since it was killed, and is removed.
    ///
    /// # Errors
    /// Another run uses it, somebody else made it, or the account may not.
    pub fn make_schema(&self, run: &Path) -> Result<Option<String>, LabError> {
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
    /// One of the two failed; the other is done. Where both did, it is that of the changes.
    pub fn end(self) -> Result<Restored, LabError> {
        let Held { hold, mut connection, has_schema } = self.held.into_inner();
        let restored = hold.end(&mut connection);
        let dropped = if has_schema { schema::drop_it(&mut connection) } else { Ok(()) };
        let restored = restored?;
        dropped?;
        Ok(restored)
    }

    /// How a load of ours reaches it, where there is one.
    pub fn reach(&self) -> Option<&Reach> {
        self.reach.as_ref()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was set before the run.
    pub(crate) fn first(&self) -> &State {
        &self.first
    }
}
