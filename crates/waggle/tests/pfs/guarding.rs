//! The server becomes slower, or does not. The long forms are `cargo xtask soak guarding`.

use std::io::{BufReader, Read};
use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::json;
use waggle_testkit::Version;

use super::holding::{assert_as_before, without_threads};
use super::holding_everything::{until_said, until_set};
use super::{Holding, Scene, assert_ended, rights, size, stderr};

/// What a statement does is in a table, so that it can become more.
const STATEMENT: &str = "SELECT BENCHMARK((SELECT n FROM test.work), SHA2('x', 256)), \
                         SLEEP((SELECT s FROM test.work))";
/// What a statement does: rounds of work, and for how long it sleeps, s. In a soak it works for about a
/// millisecond: beside that, what else there is to a statement is little, so that a tenth more work is a tenth
/// more time. Else it sleeps for most of its time, so that guards of several tests run side by side.
fn statement() -> (u32, f64) {
    size::choose((5_000, 0.002), (10_000, 0.0))
}

/// A session that sends statements until it is dropped, one after the other: a processor that now and
/// then has nothing to do is at times the slower for it.
struct Load {
    stop: Arc<AtomicBool>,
    session: Option<JoinHandle<()>>,
}

impl Load {
    fn start(scene: &Scene) -> Self {
        Self::sleeping(scene, statement().1)
    }

    /// With statements that sleep for another time, s.
    fn sleeping(scene: &Scene, seconds: f64) -> Self {
        let mut root = scene.server.root().unwrap();
        root.run("CREATE TABLE test.work (n INT, s FLOAT)").unwrap();
        root.run(format!("INSERT INTO test.work VALUES ({}, {seconds})", statement().0)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut client, stopped) = (scene.server.root().unwrap(), Arc::clone(&stop));
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

/// What is changed costs nothing: the server becomes slower by its statements.
const CHANGE: [&str; 5] = ["set", "consumer", "events_transactions_history_long", "on", "--guard"];

/// What is said before the server is measured.
const MEASURED: &str = "the server is measured as it is\n";

/// A command that holds under guard.
struct Guarded {
    holding: Holding,
    stderr: BufReader<ChildStderr>,
}

impl Guarded {
    /// Begins to hold, and waits until all is set. Before that the server is measured, which takes two
    /// minutes and on a busy host more: there is no end to the patience but that of the command.
    fn begin(scene: &Scene, guard: &str) -> Self {
        let command = scene.command(&[&CHANGE[..], &[guard, "--for", "600s"]].concat());
        let (holding, stderr) = until_set(command);
        Self { holding, stderr }
    }

    /// Waits until it ends by itself. Gives its exit code, and what it said since all was set.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.holding.wait().status.code(), said)
    }
}

fn alarm_in(said: &str) -> Option<&str> {
    said.lines().find(|line| line.starts_with("undone at once"))
}

#[test]
fn what_makes_the_server_slower_is_undone_at_once() {
    let (guard, slower) = size::choose(("30%", 3.0), ("3%", 1.1));
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    let _load = Load::start(&scene);
    let guarded = Guarded::begin(&scene, guard);
    let more = f64::from(statement().0) * slower;
    scene.server.root().unwrap().run(format!("UPDATE test.work SET n = {more:.0}")).unwrap();
    let begin = Instant::now();
    let (code, said) = guarded.end();
    assert_eq!(code, Some(1), "{said}");
    let alarm = alarm_in(&said).unwrap_or_else(|| panic!("no alarm: {said}"));
    size::keep(&json!({
        "test": "guarding", "guard": guard, "slower": slower, "alarm": alarm,
        "seconds_until_undone": begin.elapsed().as_secs(),
    }));
    assert_as_before(&scene, &before, "after the alarm");
}

#[test]
fn what_somebody_else_changes_while_the_server_is_measured_is_what_comes_back() {
    let change = |name: &str| {
        format!(
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME = '{name}'"
        )
    };
    // One that the plan names, and one that is neither as it was nor as the plan has it.
    let (planned, other) = ("stage/sql/Opening tables", "stage/sql/closing tables");
    let scene = Scene::of(Version::Mysql9);
    let _load = Load::start(&scene);
    let command = scene.command(&["apply", "stages", "--guard", "100%", "--for", "1s"]);
    let (holding, mut stderr, mut said) = until_said(command, MEASURED);
    let mut root = scene.server.root().unwrap();
    root.run(change(planned)).unwrap();
    root.run(change(other)).unwrap();
    let before = without_threads(&scene.read());
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(holding.wait().status.code(), Some(0), "{said}");
    assert_as_before(&scene, &before, &said);
}

#[test]
fn who_stops_it_while_the_server_is_measured_changes_nothing() {
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    let _load = Load::start(&scene);
    let mut command = scene.command(&["apply", "stages", "--guard", "100%", "--keep"]);
    // With --keep there is nothing to guard.
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    let command = scene.command(&["apply", "stages", "--guard", "100%"]);
    let (holding, mut stderr, mut said) = until_said(command, MEASURED);
    let ended = holding.end();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(scene.contents(), [], "{said}");
    assert_as_before(&scene, &before, &said);
}

#[test]
fn what_costs_nothing_stays() {
    // The guard makes ten looks of two seconds before it can give an alarm. What else a shared host does
    // meanwhile must not be the cause of one: it does not double the processor time of a statement, but
    // easily its time, by waits for a processor. So the statement sleeps for most of it. In a soak it
    // does not, since nothing else runs.
    let (guard, time, sleep) = size::choose(("100%", "30s", 0.01), ("3%", "1800s", 0.0));
    let scene = Scene::of(Version::Mysql9);
    let _load = Load::sleeping(&scene, sleep);
    let guarded = scene.run(&[&CHANGE[..], &[guard, "--for", time]].concat());
    size::keep(&json!({
        "test": "guarding", "guard": guard, "slower": 1.0, "held": time,
        "alarm": alarm_in(&stderr(&guarded)),
    }));
    assert_eq!(guarded.status.code(), Some(0), "{}", stderr(&guarded));
}

/// Holds under guard, does to the load what makes the guard give an alarm, and gives the alarm.
fn alarm_after(change: impl FnOnce(&Scene, &mut Option<Load>)) -> String {
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    let mut load = Some(Load::start(&scene));
    let guarded = Guarded::begin(&scene, "50%");
    change(&scene, &mut load);
    let (code, said) = guarded.end();
    drop(load);
    assert_eq!(code, Some(1), "{said}");
    assert_as_before(&scene, &before, "after the alarm");
    alarm_in(&said).unwrap_or_else(|| panic!("no alarm: {said}")).to_owned()
}

#[test]
fn what_makes_statements_wait_is_undone_at_once() {
    // Three times as long, since a look counts as no more, and still twice as many statements as are needed to tell.
    let slower = format!("UPDATE test.work SET s = {}", statement().1 + 0.006);
    let alarm = alarm_after(|scene, _| drop(scene.server.root().unwrap().run(slower).unwrap()));
    assert!(alarm.contains(", the time per statement is"), "{alarm}");
}

#[test]
fn what_ends_statements_is_undone_at_once() {
    let alarm = alarm_after(|_, load| *load = None);
    assert!(alarm.contains("the server runs fewer than 50 statements a second"), "{alarm}");
}

#[test]
fn who_may_change_settings_may_guard_them() {
    let scene = Scene::of(Version::Mariadb114);
    let _load = Load::start(&scene);
    let file = scene.few(&[rights::WRITE]);
    let words = ["apply", "stages", "--guard", "100%", "--for", "5s"];
    assert_ended(&scene.command_as(&file, &words).output().unwrap(), 0, &[], "");
}

#[test]
fn a_server_at_rest_cannot_be_guarded() {
    let scene = Scene::of(Version::Mysql9);
    scene.assert_run(&["apply", "io", "--for", "1s", "--guard", "3%"], 4, &["too few"]);
    assert_eq!(scene.contents(), [], "nothing was changed");
    scene.assert_run(&["apply", "io", "--guard", "none"], 2, &[]);
}
