//! Servers that do not start, do not take what is set, or do not let the load in.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Place, done, ended, is_of_host, small_suite, starts, windows};

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

/// How a scenario of it begins, and what its other one is started with.
const WORKS: &str = "title = \"it works\"";
const START: &str = "start = [\"--max-prepared-stmt-count=0\"]";

fn run(place: &Place, suite: &str, server: &str) -> Command {
    place.small(&place.file_of(suite), server, &["--blocks", "2"])
}

/// What is said of the suite with other words, on a server that it does not fit; nothing is measured.
fn refused(server: &str, changes: &[[&str; 2]]) -> (Place, String) {
    let mut suite = small_suite(SUITE);
    for [from, to] in changes {
        assert_eq!(suite.matches(from).count(), 1, "{from}");
        suite = suite.replace(from, to);
    }
    let place = Place::new();
    let said = ended(run(&place, &suite, server).output(), 3);
    assert!(!said.contains("window 1"), "{said}");
    assert_eq!(windows(&place.run()), Vec::<Value>::new(), "{said}");
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0, "{said}");
    (place, said)
}

#[test]
fn windows_of_a_server_without_its_load_are_void_and_say_what_was_said() {
    let place = Place::new();
    done(run(&place, &small_suite(SUITE), "mysql-5.7").output());
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
    assert_eq!(starts(&windows), 6);
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn a_run_ends_where_no_load_works_and_what_it_made_is_kept() {
    let place = Place::new();
    let suite = small_suite(SUITE);
    assert_eq!(suite.matches(WORKS).count(), 1);
    let start = "start = [\"--max-prepared-stmt-count=0\", \"--back-log=51\"]";
    let suite = suite.replace(WORKS, &format!("{WORKS}\n{start}"));
    let said = ended(run(&place, &suite, "mysql-5.7").output(), 4);
    for word in ["6 windows in a row failed", "max_prepared_stmt_count", "waggle lab resume"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 6);
    assert!(windows.iter().all(|window| window["void"].is_string()));
    assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0);
}

#[test]
fn what_a_server_lacks_is_named_before_anything_is_measured() {
    let shared = [
        [WORKS, "title = \"it works\"\nvariables = { long_query_time = \"1\" }"],
        [START, "variables = { long_query_time = \"2\" }"],
    ];
    let profiles = [
        [WORKS, "title = \"it works\"\nprofile = \"default\""],
        [START, "profile = \"everything\""],
    ];
    let counters = ["baseline =", "counters = [\"trx_rw_commits\", \"no_such\"]\nbaseline ="];
    for (server, changes, expected) in [
        ("mysql-5.7", &[counters][..], &["no counter no_such of InnoDB"][..]),
        // The sessions of the two are the same.
        ("mysql-5.7", &shared, &["a session has its own long_query_time", "start"]),
        // MariaDB has Performance Schema off by default.
        ("mariadb-10.11", &profiles, &["add --performance-schema=ON to its start"]),
    ] {
        let (_, said) = refused(server, changes);
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn what_only_the_server_knows_to_be_wrong_is_told_before_data_is_loaded() {
    for (from, to, expected) in [
        (
            START,
            "start = [\"--nosuch-option=1\"]",
            &["scenario broken", "nosuch-option", "mend its start"][..],
        ),
        ("baseline =", "options = [\"--nosuch-option=1\"]\nbaseline =", &["nosuch-option", "mend"]),
        (
            START,
            "start = [\"--back-log=51\"]\nvariables = { nosuch_variable = \"1\" }",
            &["scenario broken", "nosuch_variable"],
        ),
        (
            "baseline =",
            "options = [\"--max-connections=2\"]\nbaseline =",
            &["options: max_connections", "room for 1", "there will be 2"],
        ),
    ] {
        let (place, said) = refused("mysql-5.7", &[[from, to]]);
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("data: ") && !place.run().exists(), "{said}");
    }
}
