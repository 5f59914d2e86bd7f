//! What the states of sessions tell: flushes, and every other state of waiting.

use waggle_model::WaitsFor;

use super::memory::Watching;
use super::metadata::MDL_OFF;
use super::*;

const MYSQL: [Version; 3] = [Version::Mysql57, Version::Mysql80, Version::Mysql9];
const MARIADB: [Version; 2] = [Version::Mariadb1011, Version::Mariadb114];
const LONG: &str = "SELECT SLEEP(120) FROM shop.t LIMIT 1";
const LATER: &str = "SELECT n FROM shop.t";

fn kill(scene: &Scene, how: &str, session: &Client) {
    scene.session_after(&[&format!("{how} {}", session.connection_id())]);
}

/// A flush waits for a long statement and is killed. Later statements wait on. (No flush of MariaDB
/// waits for a SELECT.)
fn behind_a_flush(
    scene: &Scene,
    between: impl Fn() -> Option<Client>,
) -> (Client, Client, Option<Client>) {
    let long = scene.waiting(&[LONG]);
    asleep(scene, 1);
    let other = between();
    asleep(scene, 1 + usize::from(other.is_some()));
    let flush = scene.waiting(&["FLUSH TABLES WITH READ LOCK"]);
    let look =
        scene.look_until("the flush", |look| (look["other_lock_waits"] == 1).then(|| look.clone()));
    // It can wait for any table.
    assert_eq!(look["blockers"], json!([]), "{look:#}");
    let candidates = look["undetermined"][0]["candidates"].as_array().unwrap();
    assert!(candidates.contains(&long.connection_id().into()), "{look:#}");
    kill(scene, "KILL QUERY", &flush);
    scene.look_until("the flush is over", |look| (look["other_lock_waits"] == 0).then_some(()));
    let later = scene.waiting(&[LATER]);
    (long, later, other)
}

/// Waits until this many statements sleep.
fn asleep(scene: &Scene, statements: usize) {
    scene.look_until("the long statements", |_| {
        let sql = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'";
        (scene.session().run(sql).unwrap()[0].rows.len() == statements).then_some(())
    });
}

/// The user of the old table has locked it before the instrument of metadata locks was on. Another
/// session has a lock on it, runs, and does not use it.
fn flush(version: Version) {
    let scene = Scene::with(version, &[MDL_OFF]);
    let decoy = ["BEGIN", LATER, "SELECT SLEEP(120)"];
    let on =
        "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME LIKE '%/mdl'";
    let (long, later, decoy) = behind_a_flush(&scene, || {
        scene.session_after(&[on]);
        Some(scene.waiting(&decoy))
    });
    let (a, b) = (long.connection_id(), later.connection_id());
    let look = scene.look_until_drawn(&format!("{a}({b})"));
    let blocker = &look["blockers"][0];
    assert_eq!(blocker["remedy"], format!("KILL {a}"), "{version}: {look:#}");
    assert_eq!(look["undetermined"], json!([]), "{version}: {look:#}");
    let waiter = &blocker["waiters"][0];
    assert_eq!(
        (&waiter["by_elimination"], &waiter["also_blocked_by"]),
        (&false.into(), &json!([]))
    );
    let lock = &waiter["waits_for"];
    assert_eq!((&lock["kind"], &lock["object"]), (&"flush".into(), &"shop.t".into()), "{look:#}");
    assert_eq!(scene.look(&[]).1, Some(1), "{version}");
    assert_documented(&look);
    [long, decoy.unwrap()].iter().for_each(|session| kill(&scene, "KILL", session));
    scene.look_until("nobody waits", |look| (look["somebody_waits"] == false).then_some(()));
}

/// Without the list of metadata locks.
fn flush_unseen(version: Version) {
    let scene = Scene::of(version);
    let (long, later, _) = behind_a_flush(&scene, || None);
    let look = scene.look_until_soon("a waiter behind a flush", |look| {
        let waiter = &look["undetermined"][0]["waiter"]["connection_id"];
        (*waiter == later.connection_id()).then(|| look.clone())
    });
    let candidates = &look["undetermined"][0]["candidates"];
    assert_eq!(*candidates, json!([long.connection_id()]), "{version}: {look:#}");
    assert_eq!(scene.look(&[]).1, Some(1), "{version}");
    let text = scene.text(&[]);
    assert!(text.contains("for the end of a flush") && text.contains("LOCK TABLES"), "{text}");
    kill(&scene, "KILL", &long);
}

/// The server names nobody, and it is no lock; that somebody waits is told all the same.
fn unnamed(version: Version) {
    let scene = Scene::of(version);
    let waiter = scene.waiting(&["SELECT MASTER_GTID_WAIT('0-1-100', 60)"]);
    let look = scene.look_until_soon("a waiter for nobody", |look| {
        let waiting = &look["undetermined"][0]["waiter"];
        (waiting["connection_id"] == waiter.connection_id()).then(|| look.clone())
    });
    let waits_for = &look["undetermined"][0]["waiter"]["waits_for"];
    assert_eq!(waits_for["kind"], "none", "{look:#}");
    let state = waits_for["state"].as_str().unwrap();
    assert!(state.starts_with("Waiting in MASTER_GTID_WAIT()"), "{look:#}");
    let why = look["undetermined"][0]["why"].as_str().unwrap();
    assert!(why.contains("applier"), "{version}: {why}");
    assert_eq!((&look["somebody_waits"], &look["waits_without_lock"]), (&true.into(), &1.into()));
    assert_eq!(scene.look(&[]).1, Some(4), "{version}");
    let text = scene.text(&[]);
    assert!(text.contains("1 session waits, not for a lock"), "{version}: {text}");
}

/// InnoDB lets one statement in, and has no state for who waits for that. The thread tells it; SQL tells that it may be so.
fn admitted(version: Version) {
    let scene = Scene::of(version);
    // What the server has to read once, it reads now.
    scene.look(&[]);
    let six = "SELECT 0 UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5";
    scene.session_after(&[
        "CREATE TABLE shop.many (n INT) ENGINE = InnoDB",
        &format!("INSERT INTO shop.many SELECT a.n FROM shop.t a, shop.t b, ({six}) c"),
        "SET GLOBAL innodb_concurrency_tickets = 4294967295",
        "SET GLOBAL innodb_thread_concurrency = 1",
    ]);
    // 96 rows to the power of 8.
    let joined: Vec<String> = (0..8).map(|at| format!("shop.many AS m{at}")).collect();
    let endless = format!("SELECT SUM(m0.n * m7.n) FROM {}", joined.join(", "));
    let inside = scene.waiting(&[&endless]);
    let id = inside.connection_id();
    let state = format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}");
    scene.look_until("it is inside", |_| {
        let state = scene.session().run(&state).unwrap()[0].text(0, 0).unwrap_or_default();
        ["Sending data", "executing"].contains(&&*state).then_some(())
    });
    let mut outside = scene.waiting(&["SELECT n FROM shop.t WHERE id = 1"]);
    scene.look_until("it may wait", |look| {
        let why = look["not_known"].to_string();
        (look["somebody_waits"].is_null() && why.contains("innodb_thread_concurrency = 1"))
            .then_some(())
    });
    assert_eq!(scene.look(&[]).1, Some(4), "{version}");
    let pid = scene.server.pid().to_string();
    let by_memory = Watching::with(&scene, &["--pid", &pid]);
    let look = by_memory.until("who waits", |look| look["waits_without_lock"] == 1);
    let waiting = &look["undetermined"][0];
    let waiter = &waiting["waiter"];
    assert_eq!(waiter["connection_id"], outside.connection_id(), "{version}: {look:#}");
    assert_eq!(waiter["waits_for"]["kind"], "none", "{version}: {look:#}");
    assert!(waiting["why"].as_str().unwrap().contains("InnoDB to let it in"), "{look:#}");
    drop(by_memory);
    kill(&scene, "KILL", &inside);
    assert_eq!(outside.read_reply().unwrap()[0].rows.len(), 1, "{version}");
    scene.look_until("nobody waits", |look| (look["somebody_waits"] == false).then_some(()));
}

fn known(version: Version) {
    let scene = Scene::with(version, &["--performance-schema=ON"]);
    let stages = "SELECT NAME FROM performance_schema.setup_instruments WHERE NAME LIKE 'stage/%'";
    let stages = scene.session().run(stages).unwrap().remove(0);
    assert!(stages.rows.len() > 50, "{version}: {stages:?}");
    for row in 0..stages.rows.len() {
        let name = stages.text(row, 0).unwrap();
        let state = name.splitn(3, '/').nth(2).unwrap();
        assert_ne!(WaitsFor::of(state), Some(WaitsFor::Unknown), "{version}: {state}");
    }
}

#[test]
fn who_waits_for_a_table_behind_a_killed_flush_is_shown_below_its_user() {
    on_each(&MYSQL, flush);
}

#[test]
fn without_a_list_of_locks_a_flush_waits_for_one_of_the_long_statements() {
    on_each(&[Version::Mysql57], flush_unseen);
}

#[test]
fn a_wait_for_somebody_whom_the_server_does_not_name_is_shown() {
    on_each(&MARIADB, unnamed);
}

#[test]
fn who_is_not_let_in_by_innodb_is_shown() {
    on_each(&MYSQL, admitted);
}

#[test]
fn every_state_of_waiting_of_the_servers_is_known() {
    on_each(&Version::ALL, known);
}
