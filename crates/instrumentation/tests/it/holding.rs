//! What is held, beside what somebody else does.

use std::sync::atomic::AtomicBool;

use tempfile::TempDir;
use waggle_instrumentation::hold::{Hold, HoldError, guard, undo_abandoned};
use waggle_instrumentation::undo::undo;
use waggle_instrumentation::{Change, State, Table, journal};
use waggle_mysql::{Connection, Options, Secret};
use waggle_testkit::Version;

use crate::profiles::plan;
use crate::{connect, start};

fn set(connection: &mut Connection, change: &Change, enabled: &str, timed: &str) {
    let sql = format!(
        "UPDATE performance_schema.setup_instruments SET ENABLED = '{enabled}', TIMED = '{timed}' \
         WHERE NAME = '{}'",
        change.key[0]
    );
    connection.rows(&sql).unwrap();
}

fn holds(connection: &mut Connection, change: &Change) -> Vec<Option<String>> {
    let state = State::read(connection).unwrap();
    state.row(change.table, &change.key).unwrap().clone()
}

#[test]
fn what_somebody_sets_between_the_plan_and_the_change_stays() {
    let row = |settings: [&str; 2]| settings.map(|setting| Some(setting.to_owned())).to_vec();
    for version in Version::ALL {
        let (_server, mut connection) = start(version);
        let directory = TempDir::new().unwrap();
        let plan = plan(&mut connection, "stages");
        let off = row(["NO", "NO"]);
        let is_turned_on = |change: &&Change| {
            change.table == Table::Instruments && change.before.as_ref() == Some(&off)
        };
        let [other, same, ours] = plan.changes.iter().filter(is_turned_on).collect::<Vec<_>>()[..3]
        else {
            panic!("{version}: too few")
        };
        let mut hold = Hold::begin(directory.path(), &mut connection, "test").unwrap();
        set(&mut connection, other, "YES", "NO");
        set(&mut connection, same, "YES", "YES");
        hold.make(&mut connection, &plan, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let now = [other, same, ours].map(|change| holds(&mut connection, change));
        assert_eq!(
            now,
            [row(["YES", "NO"]), row(["YES", "YES"]), row(["YES", "YES"])],
            "{version}"
        );
        let restored = hold.end(&mut connection, &mut |_| {}).unwrap();
        let now = [other, same, ours].map(|change| holds(&mut connection, change));
        assert_eq!(now, [row(["YES", "NO"]), row(["YES", "YES"]), off.clone()], "{version}");
        let left: Vec<_> = restored.left_alone.iter().map(|change| &change.key).collect();
        assert_eq!(left, [&other.key], "{version}");
    }
}

#[test]
fn what_is_stopped_makes_no_further_change() {
    let (_server, mut connection) = start(Version::Mysql9);
    let directory = TempDir::new().unwrap();
    let before = State::read(&mut connection).unwrap();
    let plan = plan(&mut connection, "everything");
    let stop = AtomicBool::new(false);
    let mut classes = 0;
    let mut tell = |_: &_| {
        classes += 1;
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let mut hold = Hold::begin(directory.path(), &mut connection, "test").unwrap();
    assert!(!hold.make(&mut connection, &plan, &stop, &mut tell).unwrap(), "it was stopped");
    assert_eq!(classes, 1);
    let made = hold.changes().len();
    assert!(made > 0 && made < plan.changes.len(), "{made} of {}", plan.changes.len());
    assert_eq!(hold.end(&mut connection, &mut |_| {}).unwrap().restored, made);
    let after = State::read(&mut connection).unwrap();
    let instruments = |state: &State| {
        state.rows(Table::Instruments).map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    assert_eq!(instruments(&after), instruments(&before));
}

#[test]
fn a_table_that_cannot_be_read_is_not_taken_for_undone() {
    for version in Version::ALL {
        let (server, mut connection) = start(version);
        let plan = plan(&mut connection, "stages");
        connection.rows("CREATE USER poor@localhost IDENTIFIED BY 'poor'").unwrap();
        let options = Options {
            user: Some("poor".to_owned()),
            password: Some(Secret::new(b"poor".to_vec())),
            socket: Some(server.socket()),
            ..Options::default()
        };
        let mut poor = Connection::open(&options).unwrap();
        let refused = undo(&mut poor, &plan.changes, None, &mut |_| Ok(()));
        let Err(HoldError::NotKnown { table, why }) = refused else {
            panic!("{version}: {refused:?}")
        };
        assert_eq!(table, plan.changes[0].table.name(), "{version}");
        assert!(why.contains("GRANT SELECT ON performance_schema.*"), "{version}: {why}");

        let directory = TempDir::new().unwrap();
        let mut hold = Hold::begin(directory.path(), &mut connection, "test").unwrap();
        hold.make(&mut connection, &plan, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let is_open = || {
            let all = journal::all(directory.path()).unwrap();
            all.into_iter().all(|contents| contents.unwrap().is_open())
        };
        assert!(
            hold.end(&mut poor, &mut |_| {}).is_err() && is_open(),
            "{version}: it is there still"
        );
        drop(connection);
        let undone = undo_abandoned(directory.path(), &mut connect(&server), false, &mut |_| {});
        let restored = undone.unwrap().pop().unwrap().restored.unwrap();
        assert!(restored.is_whole() && !is_open(), "{version}: {restored:?}");
    }
}

/// The server counts its own memory whatever is written there, and does not say so.
const ALWAYS_ON: &str = "memory/performance_schema/accounts";

#[test]
fn what_the_server_does_not_take_back_is_told() {
    let (_server, mut connection) = start(Version::Mysql9);
    let key = vec![ALWAYS_ON.to_owned()];
    let state = State::read(&mut connection).unwrap();
    let after = state.row(Table::Instruments, &key).cloned();
    let mut before = after.clone();
    before.as_mut().unwrap()[0] = Some("NO".to_owned());
    let change = Change { table: Table::Instruments, key, before, after };
    let restored =
        undo(&mut connection, std::slice::from_ref(&change), None, &mut |_| Ok(())).unwrap();
    assert_eq!((restored.restored, restored.left_alone.len()), (0, 0));
    let told: Vec<_> = restored.not_restored.iter().map(|row| (&row.key, &row.before)).collect();
    assert_eq!(told, [(&change.key, &change.after)]);
    assert!(!restored.is_whole());
}

#[test]
fn a_guardian_asks_the_server_nothing_where_all_is_undone() {
    let (server, mut connection) = start(Version::Mysql57);
    let directory = TempDir::new().unwrap();
    let mut guardian = connect(&server);
    let hold = Hold::begin(directory.path(), &mut connection, "test").unwrap();
    let journal = hold.path().to_owned();
    hold.end(&mut connection, &mut |_| {}).unwrap();
    let session = guardian.server_identity().connection_id;
    connection.rows(&format!("KILL {session}")).unwrap();
    let ended = guard(&journal, &mut guardian, &mut |_| {}).unwrap();
    assert!(ended.is_none(), "{ended:?}");
}
