//! Metadata locks, alone and together with row locks.

use super::*;

const ALTER: &str = "ALTER TABLE shop.t ADD COLUMN later INT";
const MDL_ON: &str = "--performance-schema-instrument=wait/lock/metadata/sql/mdl=ON";
pub(super) const MDL_OFF: &str = "--performance-schema-instrument=wait/lock/metadata/sql/mdl=OFF";
const STATEMENTS_ON: &str = "--performance-schema-consumer-events-statements-current=ON";

/// With the instrument on from the start.
pub(super) fn instrumented(version: Version) -> Scene {
    Scene::with(version, &["--performance-schema=ON", MDL_ON, STATEMENTS_ON])
}

/// A user lock has a name and no schema.
fn user_lock(version: Version) {
    let scene = instrumented(version);
    let holder = scene.session_after(&["SELECT GET_LOCK('nightly job', 0)"]);
    let waiter = scene.waiting(&["SELECT GET_LOCK('nightly job', 60)"]);
    let (a, b) = (holder.connection_id(), waiter.connection_id());
    let look = scene.look_until_drawn(&format!("{a}({b})"));
    let lock = &look["blockers"][0]["waiters"][0]["waits_for"];
    assert!(lock["object"].as_str().unwrap().ends_with("nightly job"), "{look:#}");
    assert_eq!(lock["state"], "User lock", "{look:#}");
}

/// `FLUSH TABLES WITH READ LOCK`: a global read lock, of MariaDB a backup lock.
fn read_lock(version: Version) {
    let scene = instrumented(version);
    let holder = scene.session_after(&["FLUSH TABLES WITH READ LOCK"]);
    let writer = scene.waiting(&["UPDATE shop.t SET n = n + 1 WHERE id = 1"]);
    let (a, b) = (holder.connection_id(), writer.connection_id());
    scene.look_until_drawn(&format!("{a}({b})"));
}

#[test]
fn the_holder_of_a_user_lock_or_a_global_read_lock_is_named() {
    on_each(&Version::ALL, user_lock);
    on_each(&Version::ALL, read_lock);
}

fn chain(version: Version) {
    let scene = instrumented(version);
    let root = scene.session_after(&["BEGIN", "SELECT n FROM shop.t WHERE id = 4"]);
    let alter = scene.waiting(&[ALTER]);
    let (a, b) = (root.connection_id(), alter.connection_id());
    scene.look_until_drawn(&format!("{a}({b})"));
    let reader = scene.waiting(&["SELECT n FROM shop.t"]);
    let c = reader.connection_id();
    let look = scene.look_until_drawn(&format!("{a}({b}({c}))"));
    assert_eq!((&look["row_lock_waits"], &look["other_lock_waits"]), (&0.into(), &2.into()));
    let lock = &look["blockers"][0]["waiters"][0]["waits_for"];
    assert_eq!((&lock["kind"], &lock["object"]), (&"metadata".into(), &"shop.t".into()));
    assert_eq!(lock["mode"], "EXCLUSIVE");
    let statement = &look["blockers"][0]["session"]["statement"];
    assert_eq!(statement["text"], "SELECT n FROM shop.t WHERE id = ?", "{look:#}");
    assert_eq!(statement["is_running"], false);

    drop((root, alter, reader));
    scene.look_until("nobody waits", |look| (look["somebody_waits"] == false).then_some(()));
}

fn both(version: Version) {
    let scene = instrumented(version);
    let take = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
    let root = scene.session_after(&["BEGIN", take]);
    let writer = scene.waiting(&["BEGIN", take]);
    scene.look_until("the writer", |look| (look["row_lock_waits"] == 1).then_some(()));
    let alter = scene.waiting(&[ALTER]);
    let (a, b, c) = (root.connection_id(), writer.connection_id(), alter.connection_id());
    let look = scene.look_until_soon("writer and ALTER below the root", |look| {
        let below: Vec<Value> = look["blockers"][0]["waiters"].as_array()?.clone();
        let mut ids: Vec<u64> =
            below.iter().filter_map(|one| one["connection_id"].as_u64()).collect();
        ids.sort_unstable();
        (look["blockers"][0]["connection_id"] == a && ids == [u64::from(b), u64::from(c)])
            .then(|| look.clone())
    });
    let below = look["blockers"][0]["waiters"].as_array().unwrap();
    let alter = below.iter().find(|one| one["connection_id"] == c).unwrap();
    assert_eq!(alter["also_blocked_by"], serde_json::json!([b]), "{look:#}");
}

/// The instrument is off in MySQL 5.7, and Performance Schema in MariaDB: who waits is seen, who
/// blocks is not, and why is said.
fn blind(version: Version) {
    let scene = Scene::of(version);
    let _root = scene.session_after(&["BEGIN", "SELECT n FROM shop.t"]);
    let alter = scene.waiting(&[ALTER]);
    let id = alter.connection_id();
    let look = scene.look_until("the ALTER", |look| {
        (look["undetermined"][0]["waiter"]["connection_id"] == id).then(|| look.clone())
    });
    let why = look["undetermined"][0]["why"].as_str().unwrap();
    let remedy = match version.is_mariadb() {
        true => "performance_schema=ON",
        false => "waggle pfs apply locks",
    };
    assert!(why.contains(remedy), "{version}: {why}");
    if version == Version::Mysql57 {
        scene.session_after(&["UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' \
                               WHERE NAME = 'wait/lock/metadata/sql/mdl'"]);
        let reader = scene.waiting(&["SELECT n FROM shop.t"]);
        let (id, reader) = (id, reader.connection_id());
        let look = scene.look_until("both waiters", |look| {
            (look["other_lock_waits"] == 2).then(|| look.clone())
        });
        let unknown = look["undetermined"].as_array().unwrap();
        let reasons: Vec<_> = unknown.iter().map(|one| one["why"].as_str().unwrap()).collect();
        let ids: Vec<_> = unknown.iter().map(|one| &one["waiter"]["connection_id"]).collect();
        assert!(ids.contains(&&id.into()) && ids.contains(&&reader.into()), "{look:#}");
        assert!(reasons.iter().all(|why| why.contains("before the instrument")), "{reasons:?}");
    }
}

/// A transaction has the table since before the instrument was on. An ALTER waits for it, and a reader behind that:
/// nobody waits in a circle, and nobody but the ALTER is in the way of the reader.
fn from_before(version: Version) {
    let scene = Scene::with(version, &["--performance-schema=ON", MDL_OFF, STATEMENTS_ON]);
    let _root = scene.session_after(&["BEGIN", "SELECT n FROM shop.t"]);
    scene.session_after(&["UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' \
                           WHERE NAME = 'wait/lock/metadata/sql/mdl'"]);
    let alter = scene.waiting(&[ALTER]);
    let alter_id = alter.connection_id();
    scene.look_until("the ALTER", |look| {
        (look["undetermined"][0]["waiter"]["connection_id"] == alter_id).then_some(())
    });
    let reader = scene.waiting(&["SELECT n FROM shop.t"]);
    let look = scene.look_until("the reader behind the ALTER", |look| {
        let below = &look["undetermined"][0]["waiter"]["waiters"][0];
        (below["connection_id"] == reader.connection_id()).then(|| look.clone())
    });
    let unknown = &look["undetermined"][0];
    assert_eq!(unknown["waiter"]["connection_id"], alter_id, "{look:#}");
    let why = unknown["why"].as_str().unwrap();
    assert!(why.contains("before the instrument"), "{version}: {why}");
    assert_eq!(look["blockers"], serde_json::json!([]), "{version}: {look:#}");
    assert!(!scene.text(&[]).contains("circle"), "{version}: {}", scene.text(&[]));
}

#[test]
fn who_has_a_lock_since_before_the_instrument_was_on_is_unknown_and_nobody_else_is_blamed() {
    on_each(&Version::ALL, from_before);
}

#[test]
fn a_reader_stands_behind_an_alter_that_waits_for_an_idle_transaction() {
    on_each(&Version::ALL, chain);
}

#[test]
fn row_locks_and_metadata_locks_stand_in_one_tree() {
    on_each(&Version::ALL, both);
}

#[test]
fn an_instrument_that_is_off_leaves_the_blocker_unknown_with_the_remedy() {
    on_each(&[Version::Mysql57, Version::Mariadb1011, Version::Mariadb114], blind);
}
