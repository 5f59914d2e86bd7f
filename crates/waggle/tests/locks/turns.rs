//! Locks that several sessions hold: at the same time, or in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::memory::Watching;
use super::metadata::instrumented;
use super::*;

const READ: &str = "SELECT n FROM shop.t WHERE id = 4";
/// For how long each has the lock.
const HELD: Duration = Duration::from_millis(200);

/// Writers of a row each, until `stop`: transactions that follow each other.
fn take_turns<'a>(scope: &'a thread::Scope<'a, '_>, scene: &'a Scene, stop: &'a AtomicBool) {
    for id in 1..=4 {
        scope.spawn(move || {
            let mut session = scene.session();
            while !stop.load(Ordering::Relaxed) {
                session.run("BEGIN").unwrap();
                session.run(format!("UPDATE shop.t SET n = n + 1 WHERE id = {id}")).unwrap();
                thread::sleep(HELD);
                session.run("COMMIT").unwrap();
            }
        });
        thread::sleep(HELD / 4);
    }
}

/// Ends the writers also where the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `test`, while a request that lets writers go first waits for them.
fn while_they_take_turns(scene: &Scene, test: impl FnOnce(u32)) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ending = Ending(&stop);
        take_turns(scope, scene, &stop);
        let waiter = scene.waiting(&["LOCK TABLES shop.t READ"]);
        test(waiter.connection_id());
    });
}

/// Whether a look says that nobody is to be killed, as they take turns.
fn says_so(version: Version, look: &Value, waiter: u32) -> bool {
    let blocker = &look["blockers"][0];
    let note = blocker["remedy_note"].as_str().unwrap_or_default();
    // MariaDB does not count those that go first.
    let how = match version.is_mariadb() {
        true => "fewer of them at a time",
        false => "SET GLOBAL max_write_lock_count",
    };
    blocker["remedy"].is_null()
        && blocker["waiters"][0]["connection_id"] == waiter
        && note.contains("they take turns")
        && note.contains(how)
}

fn in_turn_by_sql(version: Version) {
    let scene = instrumented(version);
    while_they_take_turns(&scene, |waiter| {
        scene.look_until("turns", |look| says_so(version, look, waiter).then_some(()));
    });
}

fn in_turn_by_memory(version: Version) {
    let scene = Scene::with(version, &["--performance-schema=OFF"]);
    let pid = scene.server.pid().to_string();
    let watching = Watching::with(&scene, &["--pid", &pid]);
    while_they_take_turns(&scene, |waiter| {
        watching.until("turns", |look| says_so(version, look, waiter));
    });
}

/// Two have the lock at the same time; then one of them.
fn together(version: Version) {
    let scene = Scene::with(version, &["--performance-schema=OFF"]);
    let pid = scene.server.pid().to_string();
    let watching = Watching::with(&scene, &["--pid", &pid]);
    let one = scene.session_after(&["BEGIN", READ]);
    let mut other = scene.session_after(&["BEGIN", READ]);
    let alter = scene.waiting(&["ALTER TABLE shop.t ADD COLUMN later INT"]);
    let [a, b, c] = [&one, &other, &alter].map(Client::connection_id);
    let look = watching.until("two holders", |look| {
        look["blockers"][0]["waiters"][0]["also_blocked_by"] == json!([b])
    });
    let blocker = &look["blockers"][0];
    assert_eq!((&blocker["connection_id"], &blocker["remedy"]), (&a.into(), &Value::Null));
    let note = blocker["remedy_note"].as_str().unwrap();
    assert!(note.contains(&format!("all of {a}, {b}: a KILL of one")), "{version}: {note}");
    assert_documented(&look);
    other.run("COMMIT").unwrap();
    watching.until("one holder", |look| {
        drawn(&look["blockers"]) == format!("{a}({c})")
            && look["blockers"][0]["remedy"] == format!("KILL {a}")
            && look["blockers"][0]["remedy_may_not_be_enough"].is_null()
    });
}

/// By SQL, locks of before the instrument was on are not seen.
fn perhaps_not_alone(version: Version) {
    let scene = instrumented(version);
    let holder = scene.session_after(&["BEGIN", READ]);
    let alter = scene.waiting(&["ALTER TABLE shop.t ADD COLUMN later INT"]);
    let (a, b) = (holder.connection_id(), alter.connection_id());
    let look = scene.look_until_drawn(&format!("{a}({b})"));
    let blocker = &look["blockers"][0];
    assert_eq!(blocker["remedy"], format!("KILL {a}"), "{version}: {look:#}");
    let why = &blocker["remedy_may_not_be_enough"];
    match version.is_mariadb() || version == Version::Mysql57 {
        true => assert!(why.as_str().unwrap().contains("before the instrument"), "{look:#}"),
        false => assert!(why.is_null(), "{version}: {look:#}"),
    }
    assert_documented(&look);
}

/// A session that was killed holds its locks until it is rolled back.
fn killed(version: Version) {
    let scene = Scene::with(version, &["--performance-schema=OFF"]);
    let pid = scene.server.pid().to_string();
    let watching = Watching::with(&scene, &["--pid", &pid]);
    let holder = scene.with_many_changes();
    let waiter = scene.waiting(&[WRITE]);
    let (a, b) = (holder.connection_id(), waiter.connection_id());
    let tree = format!("{a}({b})");
    let look = watching.until(&tree, |look| drawn(&look["blockers"]) == tree);
    assert_eq!(look["blockers"][0]["session"]["killed"], false, "{version}: {look:#}");
    scene.session_after(&[&format!("KILL {a}")]);
    watching.until("the end of who was killed", |look| {
        let blocker = &look["blockers"][0];
        // It may be over before anybody has looked.
        look["somebody_waits"] == false
            || blocker["session"]["killed"] == true && blocker["remedy"].is_null()
    });
}

#[test]
fn nobody_is_to_be_killed_where_sessions_take_turns() {
    // Of the others SQL does not tell whether it shows all who hold a lock.
    on_each(&[Version::Mysql80, Version::Mysql9], in_turn_by_sql);
    on_each(&Version::ALL, in_turn_by_memory);
}

#[test]
fn who_holds_a_lock_with_others_is_not_to_be_killed_and_all_are_named() {
    on_each(&Version::ALL, together);
}

#[test]
fn where_somebody_may_be_missing_the_remedy_says_so() {
    on_each(&Version::ALL, perhaps_not_alone);
}

#[test]
fn without_an_account_who_was_killed_is_not_to_be_killed_again() {
    on_each(&Version::ALL, killed);
}
