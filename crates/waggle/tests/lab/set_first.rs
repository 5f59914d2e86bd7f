//! What is set when sessions log in and prepare their statements.

use std::fs;

use waggle_lab::suite::Suite;

use super::{Place, done, small_suite, windows};

/// Two scenarios that share a server, under two numbers of sessions.
const SHARED: [&str; 2] = [
    r#"
title = "all on one server"
baseline = "off"
threads = [1, 2]
open_shares = []
open_threads = 2
servers = "side_by_side"
options = []
"#,
    r#"
[[scenarios]]
name = "off"
title = "nothing"
start = ["--performance-schema=ON"]
profile = "pfson_conoff_insoff"

[[scenarios]]
name = "on"
title = "everything"
start = ["--performance-schema=ON"]
profile = "pfson_conon_inson"
"#,
];

/// A suite whose servers log what they are asked.
fn logged(text: &str, place: &Place, log: &str) -> String {
    let options = "\noptions = [";
    assert_eq!(text.matches(options).count(), 1);
    let logged = format!("{options}\"--general-log=ON\", \"--general-log-file={log}\",");
    place.file_of(&text.replace(options, &logged))
}

#[test]
fn a_scenario_with_a_server_for_itself_is_set_before_the_sessions_of_its_load_log_in() {
    let place = Place::new();
    let log = place.dir.path().join("general.log");
    let suite = logged(&Suite::text("line").unwrap(), &place, log.to_str().unwrap());
    let words = ["--only", "closed", "--only", "instruments-on", "--blocks", "2"];
    done(place.small(&suite, "mysql-8.0", &words).output());
    assert_eq!(windows(&place.run()).len(), 2 * 3);

    let log = fs::read_to_string(log).unwrap();
    let mut set = 0;
    // A server writes that at its start.
    for server in log.split("started with:") {
        let lines: Vec<&str> = server.lines().collect();
        let is_login = |line: &&str| line.contains("Connect") && line.contains("on sbtest");
        let is_change = |line: &&str| line.contains("UPDATE performance_schema.");
        let login = lines.iter().position(is_login);
        let change = lines.iter().rposition(is_change);
        if let Some((login, change)) = login.zip(change) {
            assert!(change < login, "{}", lines[change]);
            set += 1;
        }
    }
    assert_eq!(set, 2, "{log}");
}

#[test]
fn sessions_of_a_server_that_arms_share_log_in_under_what_it_had_at_its_start() {
    let place = Place::new();
    let log = place.dir.path().join("general.log");
    let suite = logged(&small_suite(SHARED), &place, log.to_str().unwrap());
    done(place.small(&suite, "mysql-8.0", &["--blocks", "2"]).output());
    assert_eq!(windows(&place.run()).len(), 2 * 2 * 3);

    let log = fs::read_to_string(log).unwrap();
    let mut set_back = 0;
    for server in log.split("started with:") {
        let mut lines = server.lines();
        let is_load = |line: &&str| line.contains("Execute") && line.contains("sbtest1");
        // The load of the first cell, then the first session of the second one.
        if lines.by_ref().find(is_load).is_none() {
            continue;
        }
        let is_login = |line: &str| line.contains("Connect") && line.contains("on sbtest");
        let lines: Vec<&str> = lines.collect();
        let Some(login) = lines.iter().position(|line| is_login(line)) else { continue };
        let last = lines[..login].iter().rposition(is_load).unwrap_or(0);
        let changes =
            lines[last..login].iter().filter(|it| it.contains("UPDATE performance_schema."));
        assert!(changes.count() > 0, "{}", lines[last..login].join("\n"));
        set_back += 1;
    }
    assert_eq!(set_back, 2, "{log}");
}
