//! Profiles as statements.

use anyhow::{Context, Result};
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::profile::Profile;
use waggle_instrumentation::statements::batches;
use waggle_instrumentation::{Change, Plan, State, Wanted, sessions};
use waggle_model::ServerVersion;
use waggle_mysql::Connection;

/// Rows in one statement at most.
const ROWS_MAX: usize = 10_000;

/// Everything off; the sums stay.
pub(crate) const OFF: [&str; 2] = [
    "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO'",
    "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE ENABLED = 'YES'",
];

/// What a profile changes on a server as it is now.
pub(crate) fn changes(connection: &mut Connection, name: &str) -> Result<Vec<Change>> {
    let profile = Profile::find(name)?;
    let state = State::read(connection)?;
    let identity = connection.server_identity();
    let version = ServerVersion::parse(identity.flavour, &identity.version);
    let sessions = sessions::read(connection)?;
    let wanted =
        Wanted { profile: &profile, filter: &Filter::default(), sessions: &sessions, version };
    Ok(Plan::new(&state, &wanted).with_context(|| name.to_owned())?.changes)
}

/// The statements that bring a server on which everything is off to a profile.
pub(crate) fn statements(connection: &mut Connection, name: &str) -> Result<Vec<String>> {
    for statement in OFF {
        connection.rows(statement)?;
    }
    let changes = changes(connection, name)?;
    Ok(batches(&changes, ROWS_MAX).filter_map(|batch| batch.sql()).collect())
}
