//! Whether the servers of a run start as a suite wants them and take what its scenarios set: tried on empty ones, so that
//! what only a server knows to be wrong is told before data is made.

use waggle_mysql::Connection;
use waggle_mysql::connection::MARK;

use crate::error::LabError;
use crate::foreign::Survey;
use crate::life::{Life, Origin, check_counters};
use crate::suite::{Mistake, Scenario, Suite, SuiteError};
use crate::window::Cell;

/// A variable has no value of a session (`ER_INCORRECT_GLOBAL_LOCAL_VAR`).
const ONLY_GLOBAL: u16 = 1238;

/// Starts a server in each way in which scenarios want one, and sets each of them on it.
///
/// # Errors
/// One does not start or has too few connections for the sessions of a cell, a counter or a variable is not there, or
/// what was set does not read so.
pub fn try_scenarios(suite: &Suite, cells: &[Cell], origin: Origin<'_>) -> Result<(), LabError> {
    for start in suite.starts() {
        let mut scenarios = suite.scenarios.iter().filter(|one| one.start == start).peekable();
        let Some(first) = scenarios.peek() else { continue };
        let mut life = origin.start(first, 0).map_err(|error| refused(first, error))?;
        check_counters(&mut life.connection, &suite.counters)?;
        check_connections(&mut life.connection, suite, cells)?;
        for scenario in scenarios {
            check_variables(&mut life.connection, suite, scenario)?;
            take(&mut life, scenario).map_err(|error| refused(scenario, error))?;
        }
    }
    Ok(())
}

/// Sets a scenario and reads it back.
fn take(life: &mut Life<'_>, scenario: &Scenario) -> Result<(), LabError> {
    life.set(scenario)?;
    match life.misread(scenario)? {
        Some(reason) => Err(LabError::Scenario {
            scenario: scenario.name.clone(),
            reason: format!(
                "{reason}; mend the scenario, or end what changes the settings of private servers"
            ),
        }),
        None => Ok(()),
    }
}

/// It is the scenario that has to be mended.
fn refused(scenario: &Scenario, error: LabError) -> LabError {
    match error {
        LabError::Server(_) | LabError::Connection(_) => {
            LabError::Scenario { scenario: scenario.name.clone(), reason: error.to_string() }
        }
        other => other,
    }
}

/// Whether a server has room for the sessions of every cell.
fn check_connections(
    connection: &mut Connection,
    suite: &Suite,
    cells: &[Cell],
) -> Result<(), LabError> {
    let most = cells.iter().map(|cell| cell.threads).max().unwrap_or(0);
    let room = Survey::of(connection)?.connections_left();
    if most <= room {
        return Ok(());
    }
    let mistake = Mistake {
        key: "threads".to_owned(),
        reason: format!("{most} sessions, and max_connections leaves room for {room}"),
        remedy: "give --max-connections under options, or choose fewer with --only".to_owned(),
    };
    Err(SuiteError::Wrong { name: suite.name.clone(), mistake }.into())
}

/// Whether what a scenario sets takes effect for sessions that are there already, where it shares a server with others.
fn check_variables(
    connection: &mut Connection,
    suite: &Suite,
    scenario: &Scenario,
) -> Result<(), LabError> {
    if !suite.shares_server(scenario) {
        return Ok(());
    }
    let refused = |reason| LabError::Scenario { scenario: scenario.name.clone(), reason };
    for name in scenario.variables.keys() {
        match connection.rows(&format!("SELECT @@SESSION.{name} AS {MARK}")) {
            Err(error) if error.number() == Some(ONLY_GLOBAL) => {}
            Err(error) => return Err(refused(format!("variables, {name}: {error}"))),
            Ok(_) => {
                return Err(refused(format!(
                    "a session has its own {name} from its login on, and scenarios that share a server have the same \
                     sessions: give it under start, or write servers = \"one_after_another\""
                )));
            }
        }
    }
    Ok(())
}
