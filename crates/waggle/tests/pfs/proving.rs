//! `waggle prove pfs` and `waggle prove innodb-metrics`: what is switched in windows.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_instrumentation::{State, Table};
use waggle_testkit::{Server, Version, wait_for, wait_until};

use super::holding::{Rows, without_threads};
use super::{Holding, Scene, assert_ended, load, stderr};

/// A statement that leaves the processors to others: what is counted here is no matter of speed.
const PACED: &str = "SELECT SLEEP(0.0005) FROM test.proving";

/// Sessions at work.
fn at_work<T>(server: &Server, meanwhile: impl FnOnce(&AtomicU64) -> T) -> T {
    let mut root = load::session(server);
    root.run("CREATE TABLE IF NOT EXISTS test.proving (a INT PRIMARY KEY)").unwrap();
    root.run("REPLACE INTO test.proving VALUES (1)").unwrap();
    load::at_work(server, PACED, meanwhile)
}

/// A profile that turns on what no statement here does.
const NOTHING: &str = r#"
question = "Does anybody purge relay logs?"
expected_cost = "None."
base = "default"

[[instruments]]
names = ["stage/sql/Purging old relay logs"]
enabled = true
timed = true
"#;

/// A trial that is under way.
struct Trial {
    child: Holding,
    said: tempfile::NamedTempFile,
}

impl Trial {
    fn begin(scene: &Scene, words: &[&str]) -> Trial {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut command = scene.command(words);
        command.args(["--json", "--for", "600s", "--give-up", "100%"]);
        command.args(["--pid", &scene.server.pid().to_string()]);
        let child: Child =
            command.stdout(Stdio::piped()).stderr(said.reopen().unwrap()).spawn().unwrap();
        Trial { child: Holding(Some(child)), said }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.said.path()).unwrap()
    }

    /// What it prints when it was ended like this, and what it says beside it.
    fn ended(self, end: fn(Holding) -> Output) -> (Output, String) {
        let Trial { child, said } = self;
        let output = end(child);
        (output, fs::read_to_string(said.path()).unwrap())
    }

    /// Until the first block is over.
    fn wait_for_a_block(&self) {
        wait_until("a block", || self.said().contains(" blocks: "));
    }
}

fn object(output: &Output, said: &str) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {:?} {said}", output.stdout))
}

/// What a trial says that is ended after a block and a few hundred statements more.
fn tried(scene: &Scene, words: &[&str]) -> Value {
    let trial = Trial::begin(scene, words);
    let (output, said) = at_work(&scene.server, |done| {
        trial.wait_for_a_block();
        let begun = done.load(Ordering::SeqCst);
        wait_until("statements", || done.load(Ordering::SeqCst) > begun + 500);
        trial.ended(Holding::end)
    });
    let json = object(&output, &said);
    assert_eq!((output.status.code(), &json["is_stopped"]), (Some(1), &true.into()), "{said}");
    assert!(said.contains("rows are as before"), "{said}");
    assert!(json["blocks"].as_u64().unwrap() > 0, "{json}");
    for phase in ["off", "off_again", "on"] {
        assert!(json[phase]["statements"].as_u64().unwrap() > 0, "{phase}: {json}");
        assert!(json[phase]["processor_ns"]["p50"].as_f64().unwrap() > 0.0, "{phase}: {json}");
    }
    json
}

/// What is set, the variables too.
fn all_rows(scene: &Scene) -> Rows {
    without_threads(&State::read_of(&mut scene.connect(), Table::ALL).unwrap())
}

fn assert_all_as_before(scene: &Scene, before: &Rows, what: &str) {
    let now = all_rows(scene);
    let differing: Vec<_> = now.symmetric_difference(before).collect();
    assert!(differing.is_empty(), "{what}: {differing:?}");
    let is_of_variables = |(table, ..): &&(Table, _, _)| *table == Table::Variables;
    assert!(now.iter().filter(is_of_variables).count() > 2, "{what}: {now:?}");
}

fn assert_witnessed(json: &Value) {
    let witness = &json["witness"];
    assert_eq!(witness["is_switched"], true, "{json}");
    assert!(witness["wanted"].as_u64() > Some(0), "{json}");
}

#[test]
fn a_profile_is_switched_in_windows_and_undone_on_every_server() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = all_rows(&scene);
        let json = tried(&scene, &["prove", "pfs", "waits"]);
        assert_witnessed(&json);
        assert_eq!((&json["what"], &json["gave_up"]), (&"pfs waits".into(), &Value::Null));
        assert_all_as_before(&scene, &before, version.name());
        assert!(scene.contents().iter().all(|contents| contents.undone.is_some()), "{version}");
    }
}

/// What `waggle pfs cost` shows of what was found.
fn kept(scene: &Scene) -> Vec<Value> {
    let output = scene.run(&["cost", "--json", "--interval", "10ms"]);
    let cost: Value = serde_json::from_slice(&output.stdout).unwrap();
    cost["proven"].as_array().unwrap().clone()
}

#[test]
fn what_was_found_is_kept_and_shown() {
    let scene = Scene::of(Version::Mysql9);
    tried(&scene, &["prove", "pfs", "stages"]);
    assert_eq!(kept(&scene), [] as [Value; 0], "the trial was stopped before its time");
    let pid = scene.server.pid().to_string();
    let words = ["prove", "pfs", "stages", "--json", "--for", "5s", "--give-up", "100%"];
    let output = at_work(&scene.server, |_| scene.run(&[&words[..], &["--pid", &pid]].concat()));
    let (found, kept) = (object(&output, &stderr(&output)), kept(&scene));
    match output.status.code() {
        Some(0) => {
            assert_eq!((kept.len(), &kept[0]["what"]), (1, &"pfs stages".into()), "{kept:?}");
            assert_eq!(kept[0]["ns"], found["added_ns"]["value"]);
            assert_eq!(kept[0]["base_ns"], found["base_ns"]);
            let plan = scene.run(&["plan", "stages"]);
            let plan = String::from_utf8(plan.stdout).unwrap();
            assert!(plan.contains("measured here by waggle prove"), "{plan}");
        }
        // The host disturbed it too much to find anything.
        _ => assert_eq!(kept, [] as [Value; 0], "{found}"),
    }
}

#[test]
fn counters_of_innodb_are_switched_in_windows_and_undone() {
    for version in [Version::Mysql9, Version::Mariadb1011] {
        let scene = Scene::of(version);
        let before = all_rows(&scene);
        // What of all counters moves under this load differs by version.
        let json = tried(&scene, &["prove", "innodb-metrics", "all"]);
        assert_witnessed(&json);
        assert_all_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_variable_is_switched_in_windows_and_undone_on_every_server() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = all_rows(&scene);
        let json = tried(&scene, &["prove", "variable", "general_log", "OFF", "on"]);
        assert_witnessed(&json);
        assert_all_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_variable_that_held_neither_value_holds_again_what_it_held() {
    let scene = Scene::of(Version::Mysql9);
    let before = all_rows(&scene);
    let words = ["prove", "variable", "innodb_sync_spin_loops", "7", "0011"];
    assert_eq!(tried(&scene, &words)["witness"], Value::Null);
    assert_all_as_before(&scene, &before, "after its end");
    let trial = Trial::begin(&scene, &words);
    at_work(&scene.server, |_| {
        trial.wait_for_a_block();
        trial.child.kill();
    });
    assert_undone(&scene, &before);
    let output = scene.run(&["prove", "variable"]);
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(list.contains("innodb_sync_spin_loops         a number from 0 to 4000"), "{list}");
}

#[test]
fn what_is_stopped_before_its_first_block_is_undone() {
    let scene = Scene::of(Version::Mysql9);
    let before = all_rows(&scene);
    at_work(&scene.server, |_| {
        for words in
            [&["prove", "variable", "general_log", "OFF", "ON"][..], &["prove", "pfs", "waits"]]
        {
            for ms in [0, 5, 20, 50, 100, 200] {
                let trial = Trial::begin(&scene, words);
                wait_until("the plan", || trial.said().contains(" -> "));
                thread::sleep(Duration::from_millis(ms));
                let (output, said) = trial.ended(Holding::end);
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert_all_as_before(&scene, &before, &format!("after {ms} ms: {said}"));
            }
        }
    });
}

#[test]
fn what_somebody_else_sets_meanwhile_is_left_alone_and_ends_the_trial() {
    let scene = Scene::of(Version::Mysql9);
    let trial = Trial::begin(&scene, &["prove", "variable", "innodb_sync_spin_loops", "7", "11"]);
    let (output, said) = at_work(&scene.server, |_| {
        trial.wait_for_a_block();
        // What is set between waggle's look and its own change is written over, as with everybody who sets it.
        thread::scope(|scope| {
            let trial = scope.spawn(|| trial.ended(Holding::wait));
            wait_until("the end of the trial", || {
                scene.connect().rows("SET GLOBAL innodb_sync_spin_loops = 99").unwrap();
                thread::sleep(Duration::from_millis(250));
                trial.is_finished()
            });
            trial.join().unwrap()
        })
    });
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("somebody else has changed"), "{said}");
    let rows = scene.connect().rows("SELECT @@innodb_sync_spin_loops").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some(&b"99"[..]), "{said}");
    scene.connect().rows("SET GLOBAL innodb_sync_spin_loops = DEFAULT").unwrap();
}

/// That all is undone, by the guardian if need be.
fn assert_undone(scene: &Scene, before: &Rows) {
    wait_for("the undo", || {
        let is_undone = scene.contents().iter().all(|contents| contents.undone.is_some());
        is_undone.then_some(())
    });
    assert_all_as_before(scene, before, "after it was killed");
}

#[test]
fn what_is_killed_in_the_middle_is_undone_by_its_guardian() {
    let scene = Scene::of(Version::Mysql80);
    let before = all_rows(&scene);
    let trial = Trial::begin(&scene, &["prove", "pfs", "stages"]);
    at_work(&scene.server, |_| {
        trial.wait_for_a_block();
        trial.child.kill();
    });
    assert_eq!(scene.contents().len(), 1);
    assert_undone(&scene, &before);
}

#[test]
fn a_second_trial_is_refused_while_one_is_held_and_one_of_nothing_says_so() {
    let scene = Scene::of(Version::Mysql9);
    let trial = Trial::begin(&scene, &["prove", "pfs", "stages"]);
    at_work(&scene.server, |_| {
        trial.wait_for_a_block();
        let pid = scene.server.pid().to_string();
        let second = ["prove", "pfs", "waits", "--pid", &pid];
        scene.assert_run(&second, 4, &["`prove pfs stages`", "waggle pfs rollback"]);
    });
    trial.child.end();
    let set = scene.hold(&["apply", "stages"]);
    let pid = scene.server.pid().to_string();
    scene.assert_run(&["prove", "pfs", "stages", "--pid", &pid], 1, &["all of it is set already"]);
    set.end();
    // Nothing of this load has such an event.
    let profile = scene.state.path().join("nothing.toml");
    fs::write(&profile, NOTHING).unwrap();
    let trial = Trial::begin(&scene, &["prove", "pfs", profile.to_str().unwrap()]);
    let (output, said) = at_work(&scene.server, |_| {
        trial.wait_for_a_block();
        trial.ended(Holding::end)
    });
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(object(&output, &said)["witness"]["is_switched"], false);
}

#[test]
fn who_may_not_change_settings_is_told_what_to_grant() {
    let scene = Scene::of(Version::Mysql80);
    let pid = scene.server.pid().to_string();
    let file = scene.few(&["SELECT ON performance_schema.*"]);
    let words = ["prove", "pfs", "stages", "--pid", &pid];
    at_work(&scene.server, |_| scene.assert_run_as(&file, &words, 4, &["GRANT", "UPDATE"]));
    assert!(scene.contents().iter().all(|contents| contents.undone.is_some()));
    let wrong = [
        (&["prove", "pfs", "no_such_profile"][..], 2, "no_such_profile"),
        (&["prove", "innodb-metrics", "no_such_counter"], 2, "no_such_counter"),
        (&["prove", "pfs", "waits", "--give-up", "0"], 2, "no share"),
        (&["prove", "variable", "sync_binlog", "1", "0"], 2, "sync_binlog is not among"),
        (&["prove", "variable", "general_log", "OFF", "'ON'"], 2, "write ON or OFF"),
        (&["prove", "variable", "general_log", "ON", "1"], 2, "both values are the same"),
        (&["prove", "variable", "userstat", "OFF", "ON"], 2, "has no variable userstat"),
        (&["prove", "--within", "1us", "pfs", "waits"], 2, "cannot be used with"),
    ];
    for (words, code, said) in wrong {
        scene.assert_run(words, code, &[said]);
    }
}

#[test]
fn a_server_that_ends_in_the_middle_is_told() {
    let state = tempfile::TempDir::new().unwrap();
    let mut server =
        Server::builder(Version::Mysql57).arg("--performance-schema=ON").start().unwrap();
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
    command.args(["prove", "pfs", "waits", "--for", "600s", "--give-up", "100%"]);
    command.args(["--pid", &server.pid().to_string(), "--defaults-file"]);
    command.arg(server.defaults_file()).env("WAGGLE_STATE_DIR", state.path());
    command.stdout(Stdio::piped()).stderr(said.reopen().unwrap());
    let child = Holding(Some(command.spawn().unwrap()));
    let trial = Trial { child, said };
    let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
    let (output, said) = at_work(&server, |_| {
        trial.wait_for_a_block();
        kill_process(pid, Signal::KILL).unwrap();
        trial.ended(Holding::wait)
    });
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("`prove pfs waits` failed"), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("WINDOWS"), "what was found until then: {shown} {said}");
    server.kill9().unwrap();
}

#[test]
fn without_statements_nothing_is_said_of_a_price() {
    let scene = Scene::of(Version::Mariadb1011);
    let pid = scene.server.pid().to_string();
    let words = ["prove", "pfs", "waits", "--pid", &pid, "--for", "1s"];
    let output = scene.run(&words);
    assert_ended(&output, 1, &["rows are as before"], stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("Not measured: no statement came, so nothing was switched"), "{said}");
}
