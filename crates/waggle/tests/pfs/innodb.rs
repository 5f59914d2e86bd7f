//! `waggle innodb enable` and `disable`: counters are on or off while it holds, and as they were after.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use waggle_instrumentation::journal::Undoer;
use waggle_instrumentation::metrics::{Counter, read};
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Version, wait_for, wait_until};

use super::{Scene, assert_ended, guardian_of, stderr};

pub(crate) fn counters(connection: &mut Connection) -> Vec<Counter> {
    read(connection).unwrap().value().unwrap().clone()
}

pub(crate) fn counter(connection: &mut Connection, name: &str) -> Counter {
    counters(connection).into_iter().find(|counter| counter.name == name).unwrap()
}

/// A counter, and since when it is on. A time has no fractions.
struct Row {
    name: String,
    subsystem: String,
    on: bool,
    since: String,
}

/// Every counter as the table has it.
fn table(connection: &mut Connection) -> Vec<Row> {
    let since = connection.rows("SELECT NAME, TIME_ENABLED FROM information_schema.INNODB_METRICS");
    let since: BTreeMap<String, String> =
        since.unwrap().iter().map(|row| (text(row, 0), text(row, 1))).collect();
    let row = |Counter { name, subsystem, enabled, .. }: Counter| Row {
        since: since[&name].clone(),
        name,
        subsystem,
        on: enabled,
    };
    counters(connection).into_iter().map(row).collect()
}

fn states(connection: &mut Connection) -> Vec<(String, bool)> {
    table(connection).into_iter().map(|row| (row.name, row.on)).collect()
}

/// Waits until the server's clock shows another second than when its counters were turned on: one
/// that is turned on again shows a later time.
fn until_a_second_is_over(connection: &mut Connection) {
    wait_until("another second", || {
        let sql = "SELECT NOW() > MAX(TIME_ENABLED) FROM information_schema.INNODB_METRICS";
        text(&connection.rows(sql).unwrap()[0], 0) == "1"
    });
}

/// What is done, with which words, and whether they mean a counter of a subsystem.
type Switching = (&'static str, &'static [&'static str], fn(&str, &str) -> bool);

#[test]
fn what_is_named_is_switched_while_it_holds_and_nothing_else_ever() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        until_a_second_is_over(&mut connection);
        let before = table(&mut connection);
        let is_meant: [Switching; 5] = [
            ("enable", &["icp_match"], |_, name| name == "icp_match"),
            ("enable", &["module_lock", "module_buf_page"], |subsystem, _| {
                subsystem == "lock" || subsystem == "buffer_page_io"
            }),
            ("enable", &["trx_%"], |_, name| name.starts_with("trx_")),
            ("enable", &["all"], |_, _| true),
            ("disable", &["buffer_pool_%"], |_, name| name.starts_with("buffer_pool_")),
        ];
        for (verb, words, is_meant) in is_meant {
            let holding = scene.hold(&[&["innodb", verb], words].concat());
            let now = table(&mut connection);
            let mut switched = 0;
            for (Row { name, subsystem, on, since }, now) in before.iter().zip(&now) {
                let wanted = if is_meant(subsystem, name) { verb == "enable" } else { *on };
                assert_eq!(now.on, wanted, "{version} {verb} {words:?}: {name}");
                switched += usize::from(now.on != *on);
                if *on && now.on {
                    assert_eq!(now.since, *since, "{version} {verb} {words:?}: {name} was touched");
                }
            }
            assert!(switched > 0, "{version} {verb} {words:?}: nothing was switched");
            assert_ended(&holding.end(), 0, &[], format_args!("{version} {words:?}"));
            let after = table(&mut connection);
            for (Row { name, on, since, .. }, after) in before.iter().zip(&after) {
                assert_eq!(after.on, *on, "{version} {verb} {words:?}: {name} after the undo");
                if *on && verb == "enable" {
                    assert_eq!(after.since, *since, "{version} {words:?}: {name} was touched");
                }
            }
        }
    }
}

#[test]
fn what_is_named_is_shown_alone_with_what_it_counts() {
    let scene = Scene::of(Version::Mysql9);
    let shown = scene.run(&["innodb", "status", "module_icp", "lock_dead%", "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let status: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let names = |subsystem: &str| {
        let counters = status["subsystems"][subsystem]["counters"].as_array().unwrap();
        counters.iter().map(|counter| counter["name"].as_str().unwrap().to_owned()).collect()
    };
    let (icp, lock): (Vec<String>, Vec<String>) = (names("icp"), names("lock"));
    assert!(icp.len() == 4 && icp.iter().all(|name| name.starts_with("icp_")), "{icp:?}");
    assert!(!lock.is_empty() && lock.iter().all(|name| name.starts_with("lock_dead")), "{lock:?}");
    assert_eq!(status["subsystems"].as_object().unwrap().len(), 2);
    let table = scene.run(&["innodb", "status", "icp_match"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("icp_match") && !table.contains("icp_attempts"), "{table}");
    scene.assert_run(&["innodb", "status", "lock_deadlock"], 2, &["`lock_deadlock` is no counter"]);
}

#[test]
fn everything_off_says_that_counts_will_have_a_gap_and_a_dead_command_is_undone() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let before = states(&mut connection);
        for words in [["innodb", "disable", "all"], ["innodb", "enable", "all"]] {
            let holding = scene.hold(&words);
            assert_ne!(states(&mut connection), before, "{version} {words:?}");
            holding.kill();
            let undone = wait_for("the guardian's work", || scene.contents().pop().unwrap().undone);
            assert_eq!(undone.by, Undoer::Guardian, "{version} {words:?}");
            assert_eq!(states(&mut connection), before, "{version} {words:?}");
        }
        let off = scene.run(&["innodb", "disable", "all", "--for", "1ms"]);
        let said = stderr(&off);
        let on = before.iter().filter(|(_, on)| *on).count();
        assert!(said.contains(&format!("{on} counters that count now stop")), "{version}: {said}");
        assert_eq!(states(&mut connection), before, "{version}");
    }
}

#[test]
fn what_is_kept_stays_until_the_rollback_and_is_in_the_history() {
    let scene = Scene::of(Version::Mysql9);
    let mut connection = scene.connect();
    let before = states(&mut connection);
    scene.assert_run(&["innodb", "enable", "module_icp", "--keep"], 0, &[]);
    assert!(counter(&mut connection, "icp_attempts").enabled);
    let path = scene.contents().pop().unwrap().path;
    wait_until("the end of the guardian", || guardian_of(&path).is_none());
    assert!(counter(&mut connection, "icp_attempts").enabled, "the guardian let it stay");
    let history = scene.history();
    assert!(
        history.contains("innodb enable module_icp") && history.contains("4 rows"),
        "{history}"
    );
    scene.assert_run(&["rollback"], 0, &[]);
    assert_eq!(states(&mut connection), before);
}

#[test]
fn what_cannot_be_set_back_is_refused() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let before = states(&mut connection);
        for (word, why) in [
            ("buffer_page_read_blob", "switch together only; write module_buffer_page"),
            ("%_blob", "page counters"),
            ("latch_status", "stands in no table"),
            ("lock_deadlock", "is no counter"),
        ] {
            scene.assert_run(&["innodb", "enable", word], 2, &[why]);
        }
        assert_eq!(scene.contents(), [], "{version}");
        assert_eq!(states(&mut connection), before, "{version}");
    }
}

#[test]
fn a_missing_right_is_named_with_its_grant_and_the_grant_is_enough() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut root = scene.connect();
        let file = scene.few(&[]);
        let run = |words: &[&str]| {
            scene.command_as(&file, &[&["innodb"][..], words].concat()).output().unwrap()
        };
        let grant_of = |output: &Output| {
            let said = stderr(output);
            let mut grants = said.lines().filter_map(|line| line.split_once("; run "));
            let grant = grants.next_back().unwrap().1;
            // The reason of the server follows.
            let end = grant.rfind("'localhost'").unwrap() + "'localhost'".len();
            grant[..end].to_owned()
        };
        let unread = run(&["status"]);
        assert_eq!(unread.status.code(), Some(4), "{version}: {}", stderr(&unread));
        let grant = grant_of(&unread);
        assert_eq!(grant, "GRANT PROCESS ON *.* TO 'few'@'localhost'", "{version}");
        let watched = run(&["watch", "--for", "1ms", "--json"]);
        assert_only_the_status_is_shown(&watched, version);
        root.rows(&grant).unwrap();
        assert_eq!(run(&["status"]).status.code(), Some(0), "{version}");

        let before = states(&mut root);
        let unset = run(&["enable", "module_icp", "--for", "1ms"]);
        assert_eq!(unset.status.code(), Some(4), "{version}: {}", stderr(&unset));
        let grant = grant_of(&unset);
        let is_new = matches!(version, Version::Mysql80 | Version::Mysql9);
        let right = if is_new { "SYSTEM_VARIABLES_ADMIN" } else { "SUPER" };
        assert!(grant.contains(right), "{version}: {grant}");
        assert_eq!(states(&mut root), before, "{version}");
        let unreset = run(&["reset", "module_icp", "--yes"]);
        assert_eq!(grant_of(&unreset), grant, "{version}: {}", stderr(&unreset));
        root.rows(&grant).unwrap();
        assert_ended(&run(&["enable", "module_icp", "--for", "1ms"]), 0, &[], version);
        assert_eq!(states(&mut root), before, "{version}");
        assert_who_reads_a_baseline_is_named(&scene, &file, version);
    }
}

/// What an account without rights sees, and is told.
fn assert_only_the_status_is_shown(watched: &Output, version: Version) {
    let said = stderr(watched);
    assert_eq!(watched.status.code(), Some(0), "{version}: {said}");
    let absent = said.lines().filter_map(|line| line.strip_prefix("waggle: not shown: "));
    let grants: Vec<&str> = absent.filter_map(|why| Some(why.split_once("; run ")?.1)).collect();
    let expected = [
        "GRANT PROCESS ON *.* TO 'few'@'localhost'",
        "GRANT SELECT ON performance_schema.* TO 'few'@'localhost'",
    ];
    assert_eq!(grants, expected, "{version}: {said}");
    let line = String::from_utf8_lossy(&watched.stdout);
    assert!(line.contains(r#""source":"status""#), "{version}: {line}");
    let is_more = line.contains(r#""source":"innodb""#) || line.contains(r#""source":"memory""#);
    assert!(!is_more, "{version}: {line}");
}

/// Whoever reads what a reset gives other values is named with the account, and whoever counts is not.
fn assert_who_reads_a_baseline_is_named(scene: &Scene, file: &Path, version: Version) {
    let on = "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
              WHERE NAME IN ('events_statements_current', 'events_statements_history')";
    scene.connect().rows(on).unwrap();
    let mut reader = scene.connect_as(file);
    for columns in ["COUNT", "COUNT(*)", "*"] {
        let sql = format!("SELECT {columns} FROM information_schema.INNODB_METRICS");
        reader.rows(&sql).unwrap();
    }
    let reset = scene.run(&["innodb", "reset", "module_icp", "--yes"]);
    let said = stderr(&reset);
    assert_eq!(reset.status.code(), Some(0), "{version}: {said}");
    let named: Vec<&str> = said.lines().filter(|line| line.starts_with("  once, at ")).collect();
    let [one] = named[..] else { panic!("{version}: {said}") };
    assert!(one.contains(", by few@localhost: SELECT * FROM"), "{version}: {said}");
}
