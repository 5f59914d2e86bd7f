//! What the time and the processors do not allow.

use std::fs;

use serde_json::Value;

use super::{Place, done, ended, is_empty, small_suite, windows};

/// One session, closed and at fixed rates, and two scenarios on one server.
const SUITE: [&str; 2] = [
    r#"
title = "limits"
baseline = "default"
threads = [2]
open_shares = [SHARES]
open_threads = 1
servers = "SERVERS"
"#,
    r#"
[[scenarios]]
name = "default"
title = "as by default"
profile = "default"

[[scenarios]]
name = "everything"
title = "everything"
profile = "everything"
"#,
];

/// What one session never reaches: it and its server take turns, so that of two processors one is idle.
const TOO_MUCH: f64 = 0.9999;

/// Writes a suite whose open loads use a share of the processors that one session reaches, and others.
pub(super) fn suite(place: &Place, servers: &str, others: &[f64]) -> String {
    // One session keeps about one processor of the host busy; this is a third of it.
    let share = 0.3 / waggle_host::processors::online().unwrap() as f64;
    let shares: Vec<String> = [&[share], others].concat().iter().map(f64::to_string).collect();
    let suite =
        small_suite(SUITE).replace("SERVERS", servers).replace("SHARES", &shares.join(", "));
    place.file_of(&suite)
}

fn report(place: &Place) -> String {
    fs::read_to_string(place.run().join("report.md")).unwrap()
}

#[test]
fn a_load_at_a_fixed_rate_has_one_where_the_baseline_can_hold_it_and_else_is_not_run() {
    let place = Place::new();
    let suite = suite(&place, "side_by_side", &[TOO_MUCH]);
    done(place.small(&suite, "mysql-5.7", &["--only", "open", "--blocks", "2"]).output());
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 2 * 3);
    let (mut transactions, mut arrived) = (0.0, 0.0);
    for window in &windows {
        let share = window["cell"]["load"]["open"]["share"].as_f64().unwrap();
        assert!(share < TOO_MUCH, "{window}");
        let rate = window["rate"].as_f64().unwrap();
        assert_eq!(window["rate"], windows[0]["rate"], "every arm has the same one");
        let measured = &window["measured"];
        assert!(measured["latency"]["p99_ns"].as_f64().unwrap() > 0.0, "{window}");
        let behind = measured["behind_s"].as_array().unwrap();
        assert!(behind.iter().all(|one| one.as_f64().unwrap() >= 0.0), "{window}");
        transactions += measured["transactions"].as_f64().unwrap();
        arrived += rate * measured["seconds"].as_f64().unwrap();
    }
    // As fast as it goes would be three times as much.
    assert!(transactions > 0.0 && transactions < 2.0 * arrived, "{transactions} of {arrived}");

    let run = place.run_json();
    let left_out = run["facts"]["not_run"].as_array().unwrap();
    let why = "the baseline cannot use 99.99 % of the CPUs";
    let beyond: Vec<&Value> = left_out.iter().filter(|one| one["why"] == why).collect();
    assert_eq!(beyond.len(), 1, "{left_out:?}");
    assert_eq!(beyond[0]["cell"]["load"]["open"]["share"].as_f64(), Some(TOO_MUCH));
    let report = report(&place);
    assert!(report.contains(&format!("not run: {why}")), "{report}");
    assert!(report.contains("CPUs in use, % of those that the server may use"), "{report}");
    let shown = done(place.lab(&["show", place.run().to_str().unwrap()]).output());
    assert!(shown.contains("6 of 6"), "{shown}");

    // Nothing is made for a run that has everything.
    let whole = fs::read(place.run().join("run.json")).unwrap();
    let again = ended(place.lab(&["resume", place.run().to_str().unwrap()]).output(), 0);
    assert!(again.contains("every window is there") && !again.contains("data:"), "{again}");
    assert_eq!(fs::read(place.run().join("run.json")).unwrap(), whole);
    // Two blocks have no interval.
    let run = place.run().display().to_string();
    let compared = ended(place.lab(&["compare", &run, &run]).output(), 4);
    assert!(compared.contains("no effect was measured in both runs"), "{compared}");
}

#[test]
fn a_run_ends_after_a_block_when_its_time_is_over_and_can_be_resumed() {
    let place = Place::new();
    // The windows of one block take longer.
    let words = ["--only", "closed", "--blocks", "2", "--time-budget", "500ms"];
    let suite = suite(&place, "side_by_side", &[TOO_MUCH]);
    let said = ended(place.small(&suite, "mysql-5.7", &words).output(), 0);
    assert!(said.contains("the time is over") && said.contains("waggle lab resume"), "{said}");
    // Two pairs tell no effect.
    assert!(said.contains("Detects no effect: an interval needs 6 blocks"), "{said}");
    let made = windows(&place.run());
    assert!(made.len() == 3 && made.iter().all(|window| window["block"] == 0), "{made:?}");
    let why = "not run: budget: the time was over when 1 of 2 blocks were made";
    assert!(report(&place).contains(why), "{}", report(&place));

    let (run, list) = (place.run(), place.list());
    let words = ["resume", run.to_str().unwrap(), "--servers", list.to_str().unwrap()];
    done(place.lab(&words).output());
    let whole = windows(&place.run());
    assert!(whole.len() == 6 && whole.starts_with(&made), "{whole:?}");
    assert!(!report(&place).contains("not run: budget"), "{}", report(&place));
    assert!(is_empty(&place.servers()));
}
