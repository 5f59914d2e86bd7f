//! A run is made, listed and reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Place, done, is_empty, is_of_host, reference, small_suite, starts, windows};

#[test]
fn servers_side_by_side_are_measured_and_reported_in_the_shape_of_the_source() {
    let place = Place::new();
    // This server lives in a tree of its own, and so do its data and its sockets.
    let before = in_trees(&place);
    let only = ["--only", "read-only", "--only", "4", "--only", "closed", "--blocks", "6"];
    let printed = done(place.small("rds", "mysql-9", &only).output());
    let left: Vec<PathBuf> = in_trees(&place).difference(&before).cloned().collect();
    assert!(left.is_empty() && is_empty(&place.servers()), "{left:?}");
    assert!(printed.contains("report.html"), "{printed}");
    assert!(printed.lines().count() <= 50, "{printed}");
    assert!(printed.contains("not asked: --only read-only --only 4 --only closed"), "{printed}");
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 6 * 8);
    let is_void = |window: &&Value| !window["void"].is_null() && !is_of_host(window);
    let void: Vec<&Value> = windows.iter().filter(is_void).collect();
    assert!(void.len() <= windows.len() / 20, "{void:?}");
    assert_eq!(starts(&windows), 6 * 4, "four servers a block, none of them twice");
    for window in windows.iter().filter(|window| window["void"].is_null()) {
        let is_off = ["pfsoff", "baseline again"].contains(&window["arm"].as_str().unwrap());
        let bytes = &window["measured"]["performance_schema_bytes"];
        assert_eq!(bytes.as_u64().unwrap() == 0, is_off, "{window}");
    }

    let markdown = fs::read_to_string(place.run().join("report.md")).unwrap();
    for scenario in ["pfsoff", "pfson_conoff_insoff", "pfson_conon_inson"] {
        assert!(markdown.contains(scenario), "{markdown}");
    }
    let run = place.run();
    let run = run.to_str().unwrap();
    let report = |format| done(place.lab(&["report", run, "--format", format]).output());
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    assert!(json.is_object());
    assert_eq!(report("windows").lines().count(), 1 + windows.len());
    assert!(report("html").starts_with("<!"));
    assert!(report("effects").starts_with("## rds on "));
    assert_written_anew(&place);
    let compared = done(place.lab(&["compare", run, run]).output());
    assert!(compared.contains("No difference was found among"), "{compared}");
    let shown = done(place.lab(&["show", run]).output());
    assert!(shown.contains("48 of 48"), "{shown}");
    assert_documented(&place);
}

/// The directories of private servers in the trees in which servers of the list live.
fn in_trees(place: &Place) -> BTreeSet<PathBuf> {
    let list = fs::read_to_string(place.list()).unwrap();
    let root = |line: &str| Some(line.strip_prefix("root = \"")?.strip_suffix('"')?.to_owned());
    let roots: Vec<String> = list.lines().filter_map(root).collect();
    assert!(!roots.is_empty(), "no server lives in a tree of its own: {list}");
    let entries = roots.iter().flat_map(|root| fs::read_dir(Path::new(root).join("tmp")).unwrap());
    let is_ours = |path: &PathBuf| path.to_str().unwrap().contains("/waggle-server-");
    entries.map(|entry| entry.unwrap().path()).filter(is_ours).collect()
}

/// The report can be written again, from the windows alone, with its charts.
fn assert_written_anew(place: &Place) {
    let (run, other) = (place.run(), place.dir.path().join("again/report"));
    let words = ["report", run.to_str().unwrap(), "--output", other.to_str().unwrap()];
    done(place.lab(&words).output());
    let size = |name: &str| fs::metadata(run.join(name)).unwrap().len();
    assert!(size("report.json") < 300_000, "{} bytes", size("report.json"));
    let charts = fs::read_dir(run.join("charts")).unwrap().map(|chart| chart.unwrap().file_name());
    let charts: Vec<String> =
        charts.map(|name| format!("charts/{}", name.to_str().unwrap())).collect();
    assert!(charts.len() >= 4 && charts.iter().all(|name| name.ends_with(".svg")), "{charts:?}");
    let files = ["report.html", "report.md", "report.csv", "report.json", "effects.md"];
    for name in files.into_iter().chain(charts.iter().map(String::as_str)) {
        let read = |place: &Path| fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(read(&run), read(&other), "{name}");
    }
}

/// What is printed as JSON has the paths of the reference.
fn assert_documented(place: &Place) {
    let run = place.run();
    let run = run.to_str().unwrap();
    let tables = reference::documented("lab-json.md");
    assert_eq!(tables.len(), 4);
    for (command, documented) in tables {
        let mut words: Vec<&str> = command.split(' ').skip(2).collect();
        match words[0] {
            "report" => words.push(run),
            "compare" => words.extend([run, run]),
            _ => {}
        }
        let printed = done(place.lab(&words).output());
        reference::compare(&command, &documented, &printed);
    }
}

#[test]
fn where_every_arm_has_a_restart_servers_come_one_after_another() {
    let place = Place::new();
    // The counters of InnoDB are off, on, and as by default: each window proves it.
    let only = ["--only", "closed", "--blocks", "2", "--only", "instruments-off-metrics-off"];
    let only = [only.as_slice(), &["--only", "metrics-on"]].concat();
    done(place.small("line", "mysql-5.7", &only).output());
    let windows = windows(&place.run());
    assert_eq!((windows.len(), starts(&windows)), (2 * 4, 2 * 4));
    let is_spoilt = |window: &&Value| !window["void"].is_null() && !is_of_host(window);
    let spoilt: Vec<&Value> = windows.iter().filter(is_spoilt).map(|one| &one["void"]).collect();
    // In one, by chance, everybody may have stood still.
    assert!(spoilt.len() <= 1, "{spoilt:?}");
}

/// A suite whose only order has a restart for each arm.
const RESTARTS: [&str; 2] = [
    r#"
title = "memory"
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

[[scenarios]]
name = "everything"
title = "everything"
start = ["--performance-schema=ON"]
profile = "everything"

[[orders]]
name = "memory"
title = "each just started"
sequence = "random"
restart = true
scenarios = ["off", "default", "everything"]
"#,
];

#[test]
fn memory_is_read_on_servers_that_were_just_started_and_is_0_where_there_is_none() {
    for server in ["mysql-5.7", "mariadb-10.11"] {
        let place = Place::new();
        let suite = place.file_of(&small_suite(RESTARTS));
        done(place.small(&suite, server, &["--blocks", "2"]).output());
        let windows = windows(&place.run());
        assert_eq!((windows.len(), starts(&windows)), (2 * 4, 2 * 4), "{server}");
        for window in &windows {
            assert!(window["void"].is_null() || is_of_host(window), "{server}: {window}");
            let is_off = ["off", "baseline again"].contains(&window["arm"].as_str().unwrap());
            let measured = &window["measured"];
            let bytes = measured["performance_schema_bytes"].as_u64().unwrap();
            assert_eq!(bytes == 0, is_off, "{server}: {window}");
            assert!(measured["rss_bytes"].as_u64().unwrap() > 0, "{server}: {window}");
        }
    }
}

#[test]
fn suites_and_runs_are_listed() {
    let place = Place::new();
    let printed = done(place.lab(&["suites", "line"]).output());
    assert_eq!(printed, waggle_lab::suite::Suite::text("line").unwrap());
    let suites = done(place.lab(&["suites"]).output());
    for name in ["rds", "line", "modb"] {
        assert!(suites.contains(name), "{suites}");
    }
    let none = done(place.lab(&["list"]).output());
    assert!(none.contains("no run is kept"), "{none}");
    assert_eq!(done(place.lab(&["list", "--json"]).output()).trim(), "[]");
}
