//! What profiles make of real servers, and the way back.

use waggle_instrumentation::apply::{Made, Pace, write};
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::profile::{BUILTIN, Profile};
use waggle_instrumentation::state::{Key, Settings};
use waggle_instrumentation::undo::undo;
use waggle_instrumentation::{Plan, State, Table, Wanted, sessions};
use waggle_model::ServerVersion;
use waggle_mysql::Connection;
use waggle_testkit::{Version, on_each_server};

use crate::start;

pub(crate) fn plan(connection: &mut Connection, profile: &str) -> Plan {
    let state = State::read(connection).unwrap();
    let identity = connection.server_identity();
    let version = ServerVersion::parse(identity.flavour, &identity.version);
    let profile = Profile::find(profile).unwrap();
    let sessions = sessions::read(connection).unwrap();
    let filter = &Filter::default();
    Plan::new(&state, &Wanted { profile: &profile, filter, sessions: &sessions, version }).unwrap()
}

#[test]
fn a_server_without_options_has_what_the_default_profile_says() {
    for version in Version::ALL {
        let (_server, mut connection) = start(version);
        assert_eq!(plan(&mut connection, "default").changes, [], "{version}");
    }
}

/// Every row; of threads, which come and go, those that another look has, too.
fn in_both<'a>(state: &'a State, other: &State) -> Vec<(Table, &'a Key, &'a Settings)> {
    let rows = |table| state.rows(table).map(move |(key, settings)| (table, key, settings));
    let is_compared = |(table, key, _): &(Table, &Key, &Settings)| {
        *table != Table::Threads || other.row(*table, key).is_some()
    };
    Table::ALL.into_iter().flat_map(rows).filter(is_compared).collect()
}

fn every_profile_is_applied_read_back_and_undone(version: Version) {
    let (_server, mut connection) = start(version);
    let before = State::read(&mut connection).unwrap();
    for (name, _) in BUILTIN {
        let plan = plan(&mut connection, name);
        let mut refused = Vec::new();
        let mut tell = |made: &Made| refused.extend(made.refused.clone());
        write(&mut connection, &plan.changes, &mut Pace::default(), &mut tell).unwrap();
        assert_eq!(refused, [], "{version} {name}");
        assert_eq!(self::plan(&mut connection, name).changes, [], "{version} {name}");
        let undone =
            undo(&mut connection, &plan.changes, Some(plan.last_thread), &mut |_| Ok(())).unwrap();
        assert_eq!(undone.restored, plan.changes.len(), "{version} {name}");
        assert!(undone.is_whole(), "{version} {name}: {undone:?}");
        let after = State::read(&mut connection).unwrap();
        assert_eq!(in_both(&after, &before), in_both(&before, &after), "{version} {name}");
    }
}

on_each_server!(every_profile_is_applied_read_back_and_undone);
