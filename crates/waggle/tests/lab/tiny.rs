//! A run of a few windows on a server of each family: what it keeps, whatever it measured.

use std::fs;

use serde_json::Value;

use super::{Place, done, is_empty, small_suite, starts, windows};

const SUITE: [&str; 2] = [
    r#"
title = "tiny"
baseline = "off"
threads = [2]
open_shares = []
open_threads = 2
servers = "side_by_side"
"#,
    r#"
[[scenarios]]
name = "off"
title = "Performance Schema off"
start = ["--performance-schema=OFF"]

[[scenarios]]
name = "default"
title = "as by default"
start = ["--performance-schema=ON"]
profile = "default"
"#,
];

fn a_tiny_run(server: &str) {
    let place = Place::new();
    let suite = place.file_of(&small_suite(SUITE));
    let printed = done(place.small(&suite, server, &["--blocks", "2"]).output());
    assert!(printed.contains("report.html"), "{printed}");
    assert!(is_empty(&place.servers()));
    let windows = windows(&place.run());
    // The baseline twice, and the other arm; a server for "off", and one for "default".
    assert_eq!(windows.len(), 2 * 3, "{windows:#?}");
    assert!(starts(&windows) >= 2, "{windows:#?}");
    for window in windows.iter().filter(|window| window["void"].is_null()) {
        assert!(window["measured"]["transactions"].as_u64() > Some(0), "{window}");
    }
    let run = place.run();
    for name in ["report.html", "report.md", "report.csv", "report.json", "effects.md"] {
        assert!(fs::metadata(run.join(name)).unwrap().len() > 0, "{name}");
    }
    let run = run.to_str().unwrap();
    let shown = done(place.lab(&["show", run]).output());
    assert!(shown.contains("6 of 6"), "{shown}");
    let json = done(place.lab(&["report", run, "--format", "json"]).output());
    assert!(serde_json::from_str::<Value>(&json).unwrap().is_object());
}

#[test]
fn a_tiny_run_on_mysql_keeps_its_windows_and_its_report() {
    a_tiny_run("mysql-9");
}

#[test]
fn a_tiny_run_on_mariadb_keeps_its_windows_and_its_report() {
    a_tiny_run("mariadb-11.4");
}
