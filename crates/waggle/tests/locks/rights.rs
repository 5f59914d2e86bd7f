//! An account with few rights, and a server that dies.

use std::process::Stdio;

use waggle_testkit::Account;

use super::*;

const GUEST: Account = Account { user: "guest", password: "" };

fn few_rights(version: Version) {
    let scene = Scene::of(version);
    let mut root = scene.session_after(&["CREATE USER guest@localhost"]);
    let file = scene.server.option_file(GUEST).unwrap();
    let look = |arguments: &[&str]| scene.waggle(file.clone(), arguments);

    // Nobody waits, but who may not look does not know it.
    let output = look(&[]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{version}: {errors}");
    assert!(errors.contains("GRANT PROCESS ON *.* TO 'guest'@'localhost'"), "{version}: {errors}");

    let take = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
    let _holder = scene.session_after(&["BEGIN", take]);
    let waiter = scene.waiting(&["BEGIN", take]);
    scene.look_until("a waiter", |look| (look["row_lock_waits"] == 1).then_some(()));
    let output = look(&["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["row_lock_waits"]), (Some(1), &1.into()), "{json:#}");
    let not_known = json["not_known"].to_string();
    assert!(not_known.contains("GRANT PROCESS ON *.* TO 'guest'@'localhost'"), "{json:#}");

    // Who was killed is not seen without PROCESS.
    root.run("GRANT SELECT ON performance_schema.* TO guest@localhost").unwrap();
    if matches!(version, Version::Mysql80 | Version::Mysql9) {
        let named = scene.session_after(&["SELECT GET_LOCK('job', 0)"]);
        let also = scene.waiting(&["SELECT GET_LOCK('job', 60)"]);
        let found = format!("{}({})", named.connection_id(), also.connection_id());
        scene.look_until("a user lock", |look| {
            drawn(&look["blockers"]).contains(&found).then_some(())
        });
        let json: Value = serde_json::from_slice(&look(&["--json"]).stdout).unwrap();
        let blocker = &json["blockers"][0];
        assert_eq!(blocker["remedy"], format!("KILL {}", named.connection_id()), "{json:#}");
        let note = blocker["remedy_note"].as_str().unwrap();
        assert!(note.contains("killed already") && note.contains("GRANT PROCESS"), "{json:#}");
        assert_eq!(blocker["session"]["killed"], Value::Null, "{json:#}");
        drop(named);
        scene.look_until("no user lock", |look| {
            (!drawn(&look["blockers"]).contains(&found)).then_some(())
        });
        drop(also);
    }

    // What the message says is enough.
    root.run("GRANT PROCESS ON *.* TO guest@localhost").unwrap();
    let output = look(&["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["not_known"], serde_json::json!([]), "{json:#}");
    let holder = &json["blockers"][0];
    assert_eq!(holder["remedy_note"], Value::Null, "{version}: {json:#}");
    let below = &holder["waiters"][0];
    assert_eq!(below["connection_id"], waiter.connection_id(), "{version}: {json:#}");
}

fn killed(version: Version) {
    let mut scene = Scene::of(version);
    let mut watching = Command::new(env!("CARGO_BIN_EXE_waggle"));
    watching.args(["locks", "--json", "--watch", "100ms", "--defaults-file"]);
    watching.arg(scene.server.defaults_file()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = watching.spawn().unwrap();
    let mut lines = std::io::BufReader::new(watching.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    assert!(line.starts_with('{'), "{version}: {line}");
    scene.server.kill9().unwrap();
    // The lines that were written before, so that the pipe is never full or closed.
    std::io::Read::read_to_string(&mut lines, &mut line).unwrap();
    let output = watching.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{version}: {errors}");
    assert!(errors.contains("the connection broke"), "{version}: {errors}");
}

#[test]
fn an_account_with_few_rights_is_told_the_grant_and_sees_the_rest() {
    on_each(&Version::ALL, few_rights);
}

#[test]
fn a_server_that_dies_ends_the_watch_with_a_message() {
    on_each(&[Version::Mysql9, Version::Mariadb114], killed);
}
