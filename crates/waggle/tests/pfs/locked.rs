//! While somebody else has a global read lock. It does not stop MariaDB from changing Performance
//! Schema.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde_json::json;
use waggle_instrumentation::journal::Undoer;
use waggle_instrumentation::locked::in_the_way;
use waggle_testkit::{Client, Version, wait_for};

use super::holding::{assert_as_before, without_threads};
use super::{Holding, Scene, assert_ended, size};

/// How long the lock is held after the command was to end.
const LOCKED: Duration = Duration::from_secs(3);
/// How soon after the lock it is undone. Only a soak has the machine for itself, and asserts it.
const UNDONE_S: f64 = 2.0;

fn each(test: fn(Version)) {
    std::thread::scope(|scope| {
        let versions = Version::ALL.into_iter().filter(|version| !version.is_mariadb());
        versions.for_each(|version| drop(scope.spawn(move || test(version))));
    });
}

fn read_lock(scene: &Scene) -> Client {
    let mut holder = scene.server.root().unwrap();
    holder.run("FLUSH TABLES WITH READ LOCK").unwrap();
    holder
}

/// Lets go of the lock after a while, and waits until the last journal is undone.
fn assert_undone(scene: &Scene, mut holder: Client, by: Undoer) {
    let version = scene.server.version();
    std::thread::sleep(LOCKED);
    assert!(scene.contents().pop().unwrap().undone.is_none(), "{version} {by:?}");
    let unlocked = Timestamp::now();
    holder.run("UNLOCK TABLES").unwrap();
    let undone = wait_for("the undo", || scene.contents().pop()?.undone);
    assert_eq!(undone.by, by, "{version}");
    let seconds = (undone.at - unlocked).total(Unit::Second).unwrap();
    size::keep(&json!({
        "test": "locked", "server": version.name(), "by": format!("{by:?}"), "undone_s": seconds,
    }));
    assert!(!size::is_soak() || seconds <= UNDONE_S, "{version} {by:?}: {seconds} s");
}

#[test]
fn an_undo_behind_a_global_read_lock_names_its_holder_and_ends_with_it() {
    each(|version| {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        // This profile sees who takes locks.
        let holding = scene.hold(&["apply", "locks"]);
        let holder = read_lock(&scene);
        let who = format!("connection {} (root@localhost", holder.connection_id());
        let ended = std::thread::scope(|scope| {
            let ended = scope.spawn(|| holding.end());
            assert_undone(&scene, holder, Undoer::Command);
            ended.join().unwrap()
        });
        assert_ended(&ended, 0, &["not undone yet", &who], version);
        assert_as_before(&scene, &before, version.name());
    });
}

#[test]
fn the_guardian_undoes_as_soon_as_a_global_read_lock_is_gone() {
    each(|version| {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let holding = scene.hold(&["apply", "stages"]);
        let holder = read_lock(&scene);
        Holding::kill(holding);
        let locked = in_the_way(&mut scene.connect()).unwrap().unwrap();
        // 5.7 keeps no locks by default, but the last statements, which prove nothing.
        let holders = match version {
            Version::Mysql57 => locked.holders.unwrap_err().candidates,
            _ => locked.holders.unwrap(),
        };
        let ids: Vec<u64> = holders.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [u64::from(holder.connection_id())], "{version}");
        assert_undone(&scene, holder, Undoer::Guardian);
        assert_eq!(in_the_way(&mut scene.connect()).unwrap(), None, "{version}");
        assert_as_before(&scene, &before, version.name());
    });
}

#[test]
fn nothing_is_set_behind_a_global_read_lock() {
    each(|version| {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let holder = read_lock(&scene);
        let id = holder.connection_id();
        let who = match version {
            Version::Mysql57 => format!("it may be connection {id} (root@localhost"),
            _ => format!("KILL {id}"),
        };
        let said = ["`apply stages` failed; all is as before", "global read lock", &who];
        scene.assert_run(&["apply", "stages", "--for", "1s"], 4, &said);
        assert_as_before(&scene, &before, version.name());
    });
}
