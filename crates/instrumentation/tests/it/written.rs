//! What consumers keep of what other sessions do.

use waggle_instrumentation::apply::{Made, Pace, write};
use waggle_instrumentation::plan::dead_consumers;
use waggle_instrumentation::written::Written;
use waggle_instrumentation::{Change, State, Table};
use waggle_mysql::Connection;
use waggle_testkit::Version;

use crate::profiles::plan;
use crate::{connect, start};

const TRANSACTIONS: u64 = 20;

/// The state where a consumer is set the other way.
fn otherwise(state: &State, consumer: &str) -> State {
    let key = vec![consumer.to_owned()];
    let before = state.row(Table::Consumers, &key).unwrap().clone();
    let is_on = before[0].as_deref() == Some("YES");
    let after = vec![Some(if is_on { "NO" } else { "YES" }.to_owned())];
    let table = Table::Consumers;
    state.with(&[Change { table, key, before: Some(before), after: Some(after) }])
}

/// Whether a consumer is on, and those above it are.
fn collects(state: &State, consumer: &str) -> bool {
    let row = state.row(Table::Consumers, &vec![consumer.to_owned()]).unwrap();
    row[0].as_deref() == Some("YES")
        && !dead_consumers(state).iter().any(|(name, _)| name == consumer)
}

/// Transactions of another session, with waits, stages and statements.
fn work(other: &mut Connection) {
    for _ in 0..TRANSACTIONS {
        for sql in ["BEGIN", "INSERT INTO written.one VALUES (1)", "COMMIT"] {
            other.rows(sql).unwrap();
        }
    }
}

#[test]
fn what_is_on_writes_what_is_off_does_not_and_the_opposite_is_disproven() {
    for version in Version::ALL {
        let (server, mut connection) = start(version);
        let mut other = connect(&server);
        other.rows("CREATE DATABASE written").unwrap();
        other.rows("CREATE TABLE written.one (a INT) ENGINE=InnoDB").unwrap();
        for profile in ["everything", "default", "all-events", "basic-history", "off"] {
            let changes = plan(&mut connection, profile).changes;
            write(&mut connection, &changes, &mut Pace::default(), &mut |_: &Made| {}).unwrap();
            // What had begun before.
            other.rows("SELECT 1").unwrap();
            let state = State::read(&mut connection).unwrap();
            let before = Written::read(&mut connection, &state).unwrap();
            work(&mut other);
            let later = Written::read(&mut connection, &state).unwrap();
            let disproof = |state: &State| {
                before.disproof(&later, state, TRANSACTIONS, |instruments| {
                    profile == "everything" || instruments == "statement" && profile != "off"
                })
            };
            assert_eq!(disproof(&state), None, "{version} {profile}");
            let of_statements = [
                "events_statements_history",
                "events_statements_history_long",
                "statements_digest",
            ];
            for consumer in of_statements.into_iter().filter(|_| profile != "off") {
                let opposite = otherwise(&state, consumer);
                let is_on = [&state, &opposite].map(|state| collects(state, consumer));
                // Nothing can be asked of digests that are on, nor of what is off since that above it is.
                if is_on == [false, false] || consumer == "statements_digest" && is_on[1] {
                    continue;
                }
                let wrong = disproof(&opposite);
                let wrong = wrong.unwrap_or_else(|| panic!("{version} {profile} {consumer}"));
                assert!(wrong.contains(consumer), "{version} {profile}: {wrong}");
            }
        }
    }
}
