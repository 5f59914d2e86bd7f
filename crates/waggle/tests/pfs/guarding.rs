//! The server becomes slower, or does not. The long forms are `cargo xtask soak guarding`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::json;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Version};

use super::holding::{assert_as_before, without_threads};
use super::{Scene, rights, size, stderr};

/// What a statement does is in a table, so that it can become more.
const STATEMENT: &str = "SELECT BENCHMARK((SELECT n FROM test.work), SHA2('x', 256)), \
                         SLEEP((SELECT s FROM test.work))";
/// About a millisecond: beside it, what else there is to a statement is little, so that a tenth more
/// work is a tenth more time.
const WORK: u32 = 10_000;

/// A session that sends statements until it is dropped, one after the other: a processor that now and
/// then has nothing to do is at times the slower for it.
struct Load {
    stop: Arc<AtomicBool>,
    session: Option<JoinHandle<()>>,
}

impl Load {
    fn start(scene: &Scene) -> Self {
        let mut root = connect(scene);
        root.run("CREATE TABLE test.work (n INT, s FLOAT)").unwrap();
        root.run(format!("INSERT INTO test.work VALUES ({WORK}, 0)")).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut client, stopped) = (connect(scene), Arc::clone(&stop));
        let session = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                client.run(STATEMENT).unwrap();
            }
        });
        Self { stop, session: Some(session) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(session) = self.session.take() {
            // Whether it ran as it should, the rate that the guard finds tells.
            let _ = session.join();
        }
    }
}

fn connect(scene: &Scene) -> Client {
    Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap()
}

/// What is changed costs nothing: the server becomes slower by its statements.
const CHANGE: [&str; 5] = ["set", "consumer", "events_transactions_history_long", "on", "--guard"];

#[test]
fn what_makes_the_server_slower_is_undone_at_once() {
    let (guard, slower) = size::choose(("10%", 3.0), ("3%", 1.1));
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    let _load = Load::start(&scene);
    let holding = scene.hold(&[&CHANGE[..], &[guard, "--for", "600s"]].concat());
    let more = f64::from(WORK) * slower;
    connect(&scene).run(format!("UPDATE test.work SET n = {more:.0}")).unwrap();
    let begin = Instant::now();
    let ended = holding.wait();
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let alarm = said.lines().find(|line| line.starts_with("undone at once"));
    let alarm = alarm.unwrap_or_else(|| panic!("no alarm: {said}"));
    size::keep(&json!({
        "test": "guarding", "guard": guard, "slower": slower, "alarm": alarm,
        "seconds_until_undone": begin.elapsed().as_secs(),
    }));
    assert_as_before(&scene, &before, "after the alarm");
}

#[test]
fn what_costs_nothing_stays() {
    let (guard, time) = size::choose(("50%", "10s"), ("3%", "1800s"));
    let scene = Scene::of(Version::Mysql9);
    let _load = Load::start(&scene);
    let guarded = scene.run(&[&CHANGE[..], &[guard, "--for", time]].concat());
    size::keep(&json!({
        "test": "guarding", "guard": guard, "slower": 1.0, "held": time,
        "alarm": stderr(&guarded).lines().find(|line| line.starts_with("undone at once")),
    }));
    assert_eq!(guarded.status.code(), Some(0), "{}", stderr(&guarded));
}

#[test]
fn what_makes_statements_wait_or_ends_them_is_undone_at_once() {
    for (change, said) in [
        (Some("UPDATE test.work SET s = 0.01"), "the time per statement is more than 1"),
        (None, "the server runs fewer than 50 statements a second"),
    ] {
        let scene = Scene::of(Version::Mysql9);
        let before = without_threads(&scene.read());
        let mut load = Some(Load::start(&scene));
        let holding = scene.hold(&[&CHANGE[..], &["100%", "--for", "600s"]].concat());
        match change {
            Some(change) => drop(connect(&scene).run(change).unwrap()),
            None => load = None,
        }
        let ended = holding.wait();
        drop(load);
        let words = stderr(&ended);
        assert_eq!(ended.status.code(), Some(1), "{words}");
        assert!(words.contains("undone at once"), "{words}");
        assert!(words.contains(said), "{words}");
        assert_as_before(&scene, &before, "after the alarm");
    }
}

#[test]
fn who_may_change_settings_may_guard_them() {
    let scene = Scene::of(Version::Mariadb114);
    let _load = Load::start(&scene);
    let file = rights::account(&scene, &[rights::WRITE]);
    let words = ["apply", "stages", "--guard", "100%", "--for", "5s"];
    let guarded = scene.command_as(&file, &words).output().unwrap();
    assert_eq!(guarded.status.code(), Some(0), "{}", stderr(&guarded));
}

#[test]
fn a_server_at_rest_cannot_be_guarded() {
    let scene = Scene::of(Version::Mysql9);
    let guarded = scene.run(&["apply", "io", "--for", "1s", "--guard", "3%"]);
    assert_eq!(guarded.status.code(), Some(4), "{}", stderr(&guarded));
    assert!(stderr(&guarded).contains("too few"), "{}", stderr(&guarded));
    assert_eq!(scene.contents(), [], "nothing was changed");
    let wrong = scene.run(&["apply", "io", "--guard", "none"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}
