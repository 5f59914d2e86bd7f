//! While a profile is held.

use std::collections::BTreeSet;

use waggle_instrumentation::class::class_of;
use waggle_instrumentation::pattern::fits;
use waggle_instrumentation::{Change, State, Table, activity};
use waggle_mysql::connection::text;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Version};

use super::costing::json;
use super::{PATIENCE, Scene, stderr};

/// Statements that make events of every class that a session can make.
pub(super) fn work(client: &mut Client) {
    for sql in [
        "CREATE TABLE IF NOT EXISTS test.t (a INT PRIMARY KEY, b CHAR(200)) ENGINE=InnoDB",
        "BEGIN",
        "REPLACE INTO test.t VALUES (1, REPEAT('x', 200)), (2, 'y')",
        "COMMIT",
        "SELECT COUNT(*) FROM test.t ORDER BY b",
        "LOCK TABLES test.t WRITE",
        "UNLOCK TABLES",
        "FLUSH TABLES",
    ] {
        client.run(sql).unwrap();
    }
    client.run("SELECT nothing").unwrap_err();
}

/// A wait for a metadata lock: they count when they wait only.
pub(super) fn wait_for_lock(scene: &Scene) {
    let connect = || Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
    let (mut holder, mut waiter) = (connect(), connect());
    holder.run("CREATE TABLE test.locked (a INT) ENGINE=InnoDB").unwrap();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT * FROM test.locked").unwrap();
    waiter.run("SET SESSION lock_wait_timeout = 1").unwrap();
    waiter.run("DROP TABLE test.locked").unwrap_err();
}

/// What is off or has no times though it could. Memory and errors have none.
const OFF: &str = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'NO' \
                   OR TIMED = 'NO' AND NAME NOT LIKE 'memory/%' AND NAME <> 'error' UNION ALL \
                   SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'NO'";

fn off(scene: &Scene) -> Vec<String> {
    scene.connect().rows(OFF).unwrap().iter().map(|row| text(row, 0)).collect()
}

#[test]
fn everything_is_on_while_it_holds_and_every_class_counts() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = scene.read();
        assert!(!off(&scene).is_empty(), "{version}: everything is on before");
        let plan = json(&scene.run(&["plan", "everything", "--interval", "10ms", "--json"]));
        let planned: Vec<Change> = serde_json::from_value(plan["changes"].clone()).unwrap();
        let impossible = plan["impossible"].as_array().unwrap().iter();
        let impossible: Vec<&str> = impossible.map(|one| one[0].as_str().unwrap()).collect();
        let holding = scene.hold(&["apply", "everything"]);
        let now = scene.read();
        for change in &planned {
            assert_eq!(now.row(change.table, &change.key), change.after.as_ref(), "{version}");
        }
        let mut left = off(&scene);
        left.retain(|name| !impossible.iter().any(|pattern| fits(name, pattern)));
        assert!(left.is_empty(), "{version}: still off: {left:?}");
        counts_everywhere(&scene, version);

        let ended = holding.end();
        assert_eq!(ended.status.code(), Some(0), "{version}: {}", stderr(&ended));
        assert_as_before(&scene, &without_threads(&before), version.name());
    }
}

/// Classes whose events a session of a client makes on every server.
const BUSY: [&str; 12] = [
    "memory",
    "stage",
    "statement",
    "transaction",
    "idle",
    "wait/io/file",
    "wait/io/socket",
    "wait/io/table",
    "wait/lock/metadata",
    "wait/lock/table",
    "wait/synch/mutex",
    "wait/synch/rwlock",
];

fn counts_everywhere(scene: &Scene, version: Version) {
    let mut connection = scene.connect();
    let mut client = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
    let earlier = activity::read(&mut connection).unwrap();
    let earlier = earlier.value().unwrap();
    wait_for_lock(scene);
    let begin = std::time::Instant::now();
    loop {
        work(&mut client);
        let later = activity::read(&mut connection).unwrap();
        let counted = activity::by_class(earlier, later.value().unwrap());
        let silent = BUSY.iter().filter(|class| counted.get(**class).is_none_or(|n| *n == 0));
        let silent: Vec<_> = silent.collect();
        if silent.is_empty() {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{version}: nothing counted: {silent:?}");
    }
}

/// Table, key and settings of every row.
pub(crate) type Rows = BTreeSet<(Table, Vec<String>, Vec<Option<String>>)>;

/// Threads come and go.
pub(crate) fn without_threads(state: &State) -> Rows {
    let tables = Table::ALL.into_iter().filter(|table| *table != Table::Threads);
    let rows = tables.flat_map(|table| {
        state.rows(table).map(move |(key, settings)| (table, key.clone(), settings.clone()))
    });
    rows.collect()
}

/// That everything but the threads is as it was.
pub(crate) fn assert_as_before(scene: &Scene, before: &Rows, what: &str) {
    let now = without_threads(&scene.read());
    let differing: Vec<_> = now.symmetric_difference(before).collect();
    assert!(differing.is_empty(), "{what}: {differing:?}");
}

#[test]
fn a_second_profile_is_refused_while_one_is_held() {
    let scene = Scene::of(Version::Mysql9);
    let holding = scene.hold(&["apply", "io"]);
    let second = scene.run(&["apply", "stages", "--for", "1s"]);
    assert_eq!(second.status.code(), Some(4));
    assert!(stderr(&second).contains("`apply io`"), "{}", stderr(&second));

    let rollback = scene.run(&["rollback"]);
    assert_eq!(rollback.status.code(), Some(0), "{}", stderr(&rollback));
    drop(holding);
    assert!(scene.contents().iter().all(|contents| contents.undone.is_some()));
}

#[test]
fn a_rollback_of_what_is_held_says_what_was_left_alone() {
    let scene = Scene::of(Version::Mysql9);
    let holding = scene.hold(&["set", "wait/io/socket/%", "on"]);
    let other = "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'NO' \
                 WHERE NAME = 'wait/io/socket/sql/client_connection'";
    scene.connect().rows(other).unwrap();
    let rollback = scene.run(&["rollback"]);
    assert_eq!(rollback.status.code(), Some(1), "{}", stderr(&rollback));
    let left_alone = "left alone, changed by somebody else: setup_instruments \
                      wait/io/socket/sql/client_connection: holds YES NO, not NO NO";
    assert!(stderr(&rollback).contains(left_alone), "{}", stderr(&rollback));
    drop(holding);
}

#[test]
fn what_is_kept_stays_until_it_is_rolled_back() {
    let scene = Scene::of(Version::Mysql9);
    let before = scene.read();
    let kept = scene.run(&["set", "wait/io/socket/%", "on", "--keep"]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    // What each class counted in a second, from the one that was set on.
    let proof = String::from_utf8(kept.stdout).unwrap();
    assert!(proof.lines().any(|line| line.starts_with("wait/io/socket ")), "{proof}");
    let state = scene.read();
    let on = state.rows(Table::Instruments).filter(|(key, settings)| {
        class_of(&key[0]) == "wait/io/socket" && settings[0].as_deref() == Some("YES")
    });
    assert_eq!(on.count(), 3);
    let other = scene.run(&["apply", "stages", "--for", "1s"]);
    assert_eq!(other.status.code(), Some(4), "{}", stderr(&other));
    let stays = "stays on this server; undo it first: waggle pfs rollback";
    assert!(stderr(&other).contains(stays), "{}", stderr(&other));
    let again = scene.run(&["rollback"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_as_before(&scene, &without_threads(&before), "after the rollback");
}
