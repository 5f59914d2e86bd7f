//! While a profile is held.

use std::collections::BTreeSet;

use waggle_instrumentation::class::class_of;
use waggle_instrumentation::{State, Table};
use waggle_testkit::{Client, Version};

use super::{Scene, stderr};

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
    let [mut holder, mut waiter] = [(); 2].map(|()| scene.server.root().unwrap());
    holder.run("CREATE TABLE test.locked (a INT) ENGINE=InnoDB").unwrap();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT * FROM test.locked").unwrap();
    waiter.run("SET SESSION lock_wait_timeout = 1").unwrap();
    waiter.run("DROP TABLE test.locked").unwrap_err();
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
    scene.assert_run(&["apply", "stages", "--for", "1s"], 4, &["`apply io`"]);

    scene.assert_run(&["rollback"], 0, &[]);
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
    let left_alone = "left alone, changed by somebody else: setup_instruments \
                      wait/io/socket/sql/client_connection: holds YES NO, not NO NO";
    scene.assert_run(&["rollback"], 1, &[left_alone]);
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
    let stays = "stays on this server; undo it first: waggle pfs rollback";
    scene.assert_run(&["apply", "stages", "--for", "1s"], 4, &[stays]);
    scene.assert_run(&["rollback"], 0, &[]);
    assert_as_before(&scene, &without_threads(&before), "after the rollback");
}
