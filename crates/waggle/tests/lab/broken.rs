//! Servers that do not start, do not take what is set, or do not let the load in.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Place, done, is_of_host, small_suite, stderr, windows};

/// A suite with a scenario whose server takes no prepared statement, so that the load cannot be started there.
const SUITE: [&str; 2] = [
    r#"
title = "a server without its load"
baseline = "off"
threads = [2]
open_shares = []
open_threads = 2
servers = "side_by_side"
"#,
    r#"
[[scenarios]]
name = "off"
title = "it works"

[[scenarios]]
name = "broken"
title = "it does not"
start = ["--max-prepared-stmt-count=0"]
"#,
];

fn run(place: &Place, suite: &str) -> Command {
    let file = place.dir.path().join("mine.toml");
    fs::write(&file, suite).unwrap();
    place.small(file.to_str().unwrap(), "mysql-5.7", &["--blocks", "2"])
}

#[test]
fn windows_of_a_server_without_its_load_are_void_and_say_what_was_said() {
    let place = Place::new();
    done(&run(&place, &small_suite(SUITE)).output().unwrap());
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 2 * 3);
    for window in &windows {
        let void = window["void"].as_str();
        match window["arm"].as_str().unwrap() {
            "broken" => assert!(void.unwrap().contains("max_prepared_stmt_count"), "{window}"),
            _ => assert!(void.is_none() || is_of_host(window), "{window}"),
        }
        assert_eq!(window["measured"].is_null(), window["arm"] == "broken", "{window}");
    }
    let lives = windows.iter().map(|window: &Value| window["life"].as_u64().unwrap());
    assert_eq!(lives.collect::<std::collections::BTreeSet<_>>().len(), 6);
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_run_ends_where_no_load_works_and_what_it_made_is_kept() {
    let place = Place::new();
    let works = "title = \"it works\"\n";
    let suite = small_suite(SUITE);
    assert!(suite.contains(works));
    let suite = suite.replacen(
        works,
        &format!("{works}start = [\"--max-prepared-stmt-count=0\", \"--back-log=51\"]\n"),
        1,
    );
    let output = run(&place, &suite).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("6 windows in a row failed") && said.contains("max_prepared_stmt_count"),
        "{said}"
    );
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
fn what_only_the_server_knows_to_be_wrong_is_told_before_anything_is_measured() {
    let start = "start = [\"--max-prepared-stmt-count=0\"]";
    for (from, to, expected) in [
        (
            start,
            "start = [\"--nosuch-option=1\"]",
            &["scenario broken", "nosuch-option", "mend its start"][..],
        ),
        ("baseline =", "options = [\"--nosuch-option=1\"]\nbaseline =", &["nosuch-option", "mend"]),
        (
            start,
            "start = [\"--back-log=51\"]\nvariables = { nosuch_variable = \"1\" }",
            &["scenario broken", "nosuch_variable"],
        ),
        (
            "baseline =",
            "options = [\"--max-connections=2\"]\nbaseline =",
            &["options: max_connections", "room for 1", "there will be 2"],
        ),
    ] {
        let place = Place::new();
        let suite = small_suite(SUITE);
        assert_eq!(suite.matches(from).count(), 1, "{from}");
        let output = run(&place, &suite.replace(from, to)).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("data: ") && !place.run().exists(), "{said}");
        assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
    }
}

#[test]
fn a_variable_of_sessions_is_refused_where_they_are_shared() {
    let place = Place::new();
    let suite = small_suite(SUITE)
        .replace(
            "title = \"it works\"",
            "title = \"it works\"\nvariables = { long_query_time = \"1\" }",
        )
        .replace(
            "start = [\"--max-prepared-stmt-count=0\"]",
            "variables = { long_query_time = \"2\" }",
        );
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
        .replace("title = \"it works\"", "title = \"it works\"\nprofile = \"default\"")
        .replace("start = [\"--max-prepared-stmt-count=0\"]", "profile = \"everything\"");
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
