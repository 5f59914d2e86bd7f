//! Servers that do not start.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Place, done, is_of_host, small_suite, stderr, windows};

/// A suite with a scenario whose server has an option that no server knows.
const SUITE: [&str; 2] = [
    r#"
title = "a server that does not start"
baseline = "off"
threads = [2]
open_shares = []
open_threads = 2
servers = "side_by_side"
"#,
    r#"
[[scenarios]]
name = "off"
title = "it starts"

[[scenarios]]
name = "broken"
title = "it does not"
start = ["--nosuch-option=1"]
"#,
];

fn run(place: &Place, suite: &str) -> Command {
    let file = place.dir.path().join("mine.toml");
    fs::write(&file, suite).unwrap();
    place.small(file.to_str().unwrap(), "mysql-5.7", &["--blocks", "2"])
}

#[test]
fn windows_of_a_server_that_does_not_start_are_void_and_say_what_it_said() {
    let place = Place::new();
    done(&run(&place, &small_suite(SUITE)).output().unwrap());
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 2 * 3);
    for window in &windows {
        let void = window["void"].as_str();
        match window["arm"].as_str().unwrap() {
            "broken" => assert!(void.unwrap().contains("nosuch-option"), "{window}"),
            _ => assert!(void.is_none() || is_of_host(window), "{window}"),
        }
        assert_eq!(window["measured"].is_null(), window["arm"] == "broken", "{window}");
    }
    let lives = windows.iter().map(|window: &Value| window["life"].as_u64().unwrap());
    assert_eq!(lives.collect::<std::collections::BTreeSet<_>>().len(), 6);
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_run_ends_where_no_server_starts_and_what_it_made_is_kept() {
    let place = Place::new();
    let works = "title = \"it starts\"\n";
    let suite = small_suite(SUITE);
    assert!(suite.contains(works));
    let suite = suite.replacen(works, &format!("{works}start = [\"--nosuch-option=2\"]\n"), 1);
    let output = run(&place, &suite).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("6 windows in a row failed") && said.contains("nosuch-option"), "{said}");
    assert!(said.contains("waggle lab resume"), "{said}");
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 6);
    assert!(windows.iter().all(|window| window["void"].is_string()));
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_counter_that_a_server_lacks_is_named_before_anything_is_measured() {
    let place = Place::new();
    let suite = small_suite(SUITE).replacen(
        "baseline =",
        "counters = [\"trx_rw_commits\", \"no_such\"]\nbaseline =",
        1,
    );
    let output = run(&place, &suite).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no counter no_such of InnoDB") && !said.contains("window 1"), "{said}");
    assert_eq!(windows(&place.run()), Vec::<Value>::new());
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_variable_of_sessions_is_refused_where_they_are_shared() {
    let place = Place::new();
    let suite = small_suite(SUITE)
        .replace(
            "title = \"it starts\"",
            "title = \"it starts\"\nvariables = { long_query_time = \"1\" }",
        )
        .replace("start = [\"--nosuch-option=1\"]", "variables = { long_query_time = \"2\" }");
    let output = run(&place, &suite).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("a session has its own long_query_time") && said.contains("start"),
        "{said}"
    );
    assert_eq!(windows(&place.run()), Vec::<Value>::new());
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_profile_is_refused_where_the_server_has_no_performance_schema() {
    let place = Place::new();
    let suite = small_suite(SUITE)
        .replace("title = \"it starts\"", "title = \"it starts\"\nprofile = \"default\"")
        .replace("start = [\"--nosuch-option=1\"]", "profile = \"everything\"");
    let file = place.dir.path().join("mine.toml");
    fs::write(&file, suite).unwrap();
    // MariaDB has it off by default.
    let mut command = place.small(file.to_str().unwrap(), "mariadb-10.11", &["--blocks", "2"]);
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("add --performance-schema=ON to its start"), "{said}");
    assert_eq!(windows(&place.run()), Vec::<Value>::new());
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}
