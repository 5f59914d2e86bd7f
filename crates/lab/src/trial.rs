//! Tries on empty servers whether they start as a suite wants them and take what its scenarios set: what only a server
//! knows to be wrong is told before data is made.

use std::sync::atomic::{AtomicBool, Ordering};

use waggle_mysql::Connection;
use waggle_mysql::connection::MARK;
use waggle_private_server::PrivateServerError;

use crate::error::LabError;
use crate::in_use::Survey;
use crate::measured_server::{MeasuredServer, Origin, check_counters};
use crate::suite::{Mistake, Scenario, Suite, SuiteError};
use crate::window::Cell;

/// A variable has no value of a session (`ER_INCORRECT_GLOBAL_LOCAL_VAR`).
const ONLY_GLOBAL: u16 = 1238;

/// Starts a server in each way that scenarios want, and sets each scenario on it.
///
/// # Errors
/// One does not start or has too few connections, a counter or a variable is not there, or what was set does not read so;
/// or somebody stopped it.
pub(crate) fn try_scenarios(
    suite: &Suite,
    cells: &[Cell],
    origin: Origin<'_>,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    for scenarios in on_one_server(suite) {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Stopped);
        }
        let first = scenarios[0];
        let mut server = origin.start(first, 0).map_err(|error| did_not_start(first, error))?;
        check_counters(&mut server.connection, &suite.counters)?;
        for scenario in scenarios {
            check_variables(&mut server.connection, suite, scenario)?;
            take(&mut server, scenario)?;
            check_connections(&mut server.connection, suite, cells)?;
        }
    }
    Ok(())
}

/// The scenarios that can be set on a server one after another: each takes back what the one before has set.
fn on_one_server(suite: &Suite) -> Vec<Vec<&Scenario>> {
    let mut all: Vec<Vec<&Scenario>> = Vec::new();
    for scenario in &suite.scenarios {
        let is_like = |other: &Scenario| {
            other.start == scenario.start && other.variables.keys().eq(scenario.variables.keys())
        };
        match all.iter_mut().find(|some| is_like(some[0])) {
            Some(some) => some.push(scenario),
            None => all.push(vec![scenario]),
        }
    }
    all
}

/// Why the server of a scenario did not start. Others of the same program did: the reason is in the suite.
fn did_not_start(scenario: &Scenario, error: LabError) -> LabError {
    match error {
        LabError::Server(PrivateServerError::DidNotStart { reason, log }) => LabError::Scenario {
            scenario: scenario.name.clone(),
            reason: format!(
                "its server did not start: {reason}; mend its start, or options of the suite\n{log}"
            ),
        },
        other => other,
    }
}

/// Sets a scenario and reads it back.
fn take(server: &mut MeasuredServer<'_>, scenario: &Scenario) -> Result<(), LabError> {
    let refused = |reason: String| LabError::Scenario { scenario: scenario.name.clone(), reason };
    server.set(scenario).map_err(|error| match error {
        LabError::Connection(error) => refused(format!("{error}; mend its variables")),
        other => other,
    })?;
    match server.misread(scenario)? {
        Some(reason) => Err(refused(format!(
            "{reason}; mend the scenario, or end what changes the settings of private servers"
        ))),
        None => Ok(()),
    }
}

/// Checks that a server has room for the sessions of every cell, and for those that make the tables, one for each.
fn check_connections(
    connection: &mut Connection,
    suite: &Suite,
    cells: &[Cell],
) -> Result<(), LabError> {
    let most = cells.iter().map(|cell| cell.threads).chain([suite.data.tables]).max().unwrap_or(0);
    let room = Survey::of(connection)?.connections_left();
    if most <= room {
        return Ok(());
    }
    let mistake = Mistake {
        key: "options".to_owned(),
        reason: format!(
            "max_connections leaves room for {room} sessions, and there will be {most}"
        ),
        remedy: "give --max-connections there, or choose fewer threads with --only".to_owned(),
    };
    Err(SuiteError::Wrong { name: suite.name.clone(), mistake }.into())
}

/// Checks that what a scenario sets on a shared server takes effect for the sessions that are there already.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_share_a_server_where_each_takes_back_what_the_one_before_has_set() {
        let groups = |suite: &Suite| -> Vec<Vec<String>> {
            let names = |some: Vec<&Scenario>| some.iter().map(|one| one.name.clone()).collect();
            on_one_server(suite).into_iter().map(names).collect()
        };
        let mut suite = Suite::find("line").unwrap();
        assert_eq!(groups(&suite).len(), 1);
        suite.scenarios[3].variables.insert("max_connections".to_owned(), "50".to_owned());
        let name = suite.scenarios[3].name.clone();
        assert_eq!(groups(&suite)[1], [name]);
        let rds = groups(&Suite::find("rds").unwrap());
        assert_eq!(rds.iter().map(Vec::len).collect::<Vec<_>>(), [1, 5]);
    }
}
