//! A plan is whole: whoever runs its statements by hand has what was planned.

use serde_json::Value;
use waggle_instrumentation::apply::ROWS_MAX;
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Version, wait_until};

use super::costing::json;
use super::{Scene, stderr};

const BRIEFLY: [&str; 3] = ["plan", "--interval", "10ms"];

/// The profile of somebody's own that the guide shows, as a file.
fn of_the_guide(scene: &Scene) -> String {
    let page = include_str!("../../../../docs/guide/performance-schema.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let file = scene.state.path().join("own.toml");
    std::fs::write(&file, rest.split_once("```").unwrap().0).unwrap();
    file.into_os_string().into_string().unwrap()
}

fn plan(scene: &Scene, words: &[&str]) -> Value {
    json(&scene.run(&[&BRIEFLY[..], words, &["--json"]].concat()))
}

/// Waits until the sessions of the commands before are gone: the plan did not know all of them.
fn wait_until_alone(connection: &mut Connection) {
    let sql = "SELECT COUNT(*) FROM performance_schema.threads \
               WHERE NAME = 'thread/sql/one_connection'";
    wait_until("the end of all sessions but ours", || {
        text(&connection.rows(sql).unwrap()[0], 0) == "1"
    });
}

#[test]
fn every_key_is_named_and_the_statements_leave_nothing_to_change() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        // As the statements are written for.
        connection.rows("SET SESSION sql_mode = ''").unwrap();
        let own = of_the_guide(&scene);
        for words in [
            &[own.as_str()][..],
            &["everything"],
            &["off"],
            &["waits", "--account", "app@%"],
            &["io", "--schema", "one", "--object", "TABLE:two.b"],
            &["metrics-on"],
            &["metrics-off"],
        ] {
            let planned = plan(&scene, words);
            let changes = planned["changes"].as_array().unwrap();
            assert!(!changes.is_empty(), "{version} {words:?}");
            let output = scene.run(&[&BRIEFLY[..], words, &["-v"]].concat());
            assert!(output.status.success(), "{version} {words:?}: {}", stderr(&output));
            let said = String::from_utf8(output.stdout).unwrap();
            // Each of the two commands had a session of its own, and so a thread.
            for change in changes.iter().filter(|change| change["table"] != "threads") {
                let key = change["key"].as_array().unwrap().iter();
                let key: Vec<&str> = key.map(|part| part.as_str().unwrap()).collect();
                let line = format!("        {}", key.join(" "));
                let is_named = said.lines().any(|said| said == line);
                assert!(is_named, "{version} {words:?}: {line} in {said}");
            }
            for sql in planned["statements"].as_array().unwrap() {
                let sql = sql.as_str().unwrap();
                connection.rows(sql).unwrap_or_else(|error| panic!("{version}: {error}: {sql}"));
                let rows =
                    sql.split_once(" IN (").map_or(1, |(_, keys)| keys.split("', '").count());
                assert!(rows <= ROWS_MAX, "{version} {words:?}: {rows} rows at once: {sql}");
            }
            let sql = planned["statements"].to_string();
            assert!(!sql.contains("wait/synch/%"), "{version} {words:?}: all at once: {sql}");
            wait_until_alone(&mut connection);
            let left = plan(&scene, words);
            assert_eq!(left["changes"], Value::Array(Vec::new()), "{version} {words:?}");
            assert_eq!(left["statements"], Value::Array(Vec::new()), "{version} {words:?}");
        }
    }
}
