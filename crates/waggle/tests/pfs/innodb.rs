//! `waggle innodb`: counters are on or off while it holds, as they were after, and counted rightly.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use waggle_instrumentation::journal::Undoer;
use waggle_instrumentation::metrics::{Counter, read};
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Version};

use super::{Holding, Scene, guardian_of, stderr, wait_for};

fn counters(connection: &mut Connection) -> Vec<Counter> {
    read(connection).unwrap().value().unwrap().clone()
}

fn counter(connection: &mut Connection, name: &str) -> Counter {
    counters(connection).into_iter().find(|counter| counter.name == name).unwrap()
}

/// Name, whether it is on, and since when.
type Row = (String, bool, String);

/// Every counter as the table has it. A time has no fractions.
fn table(connection: &mut Connection) -> Vec<Row> {
    let since = connection.rows("SELECT NAME, TIME_ENABLED FROM information_schema.INNODB_METRICS");
    let since: BTreeMap<String, String> =
        since.unwrap().iter().map(|row| (text(row, 0), text(row, 1))).collect();
    let row = |counter: Counter| {
        let since = since[&counter.name].clone();
        (counter.name, counter.enabled, since)
    };
    counters(connection).into_iter().map(row).collect()
}

fn states(connection: &mut Connection) -> Vec<(String, bool)> {
    table(connection).into_iter().map(|(name, on, _)| (name, on)).collect()
}

/// Waits until the server's clock shows another second than when its counters were turned on: one
/// that is turned on again shows a later time.
fn until_a_second_is_over(connection: &mut Connection) {
    wait_for("another second", || {
        let sql = "SELECT NOW() > MAX(TIME_ENABLED) FROM information_schema.INNODB_METRICS";
        (text(&connection.rows(sql).unwrap()[0], 0) == "1").then_some(())
    });
}

fn subsystem_of(connection: &mut Connection, name: &str) -> String {
    counter(connection, name).subsystem
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
            for ((name, on_before, since), (_, on_now, since_now)) in before.iter().zip(&now) {
                let subsystem = subsystem_of(&mut connection, name);
                let wanted = if is_meant(&subsystem, name) { verb == "enable" } else { *on_before };
                assert_eq!(*on_now, wanted, "{version} {verb} {words:?}: {name}");
                switched += usize::from(on_now != on_before);
                if *on_before && *on_now {
                    assert_eq!(since_now, since, "{version} {verb} {words:?}: {name} was touched");
                }
            }
            assert!(switched > 0, "{version} {verb} {words:?}: nothing was switched");
            let ended = holding.end();
            assert_eq!(ended.status.code(), Some(0), "{version} {words:?}: {}", stderr(&ended));
            let after = table(&mut connection);
            for ((name, on, since), (_, on_after, since_after)) in before.iter().zip(&after) {
                assert_eq!(on_after, on, "{version} {verb} {words:?}: {name} after the undo");
                if *on && verb == "enable" {
                    assert_eq!(since_after, since, "{version} {words:?}: {name} was touched");
                }
            }
        }
    }
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
            wait_for("the guardian's work", || {
                scene.contents().pop().unwrap().undone.is_some().then_some(())
            });
            let undone = scene.contents().pop().unwrap().undone.unwrap();
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
    let kept = scene.run(&["innodb", "enable", "module_icp", "--keep"]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    assert!(counter(&mut connection, "icp_attempts").enabled);
    let path = scene.contents().pop().unwrap().path;
    wait_for("the end of the guardian", || guardian_of(&path).is_none().then_some(()));
    assert!(counter(&mut connection, "icp_attempts").enabled, "the guardian let it stay");
    let history = scene.run(&["history"]);
    let history = String::from_utf8(history.stdout).unwrap();
    assert!(
        history.contains("innodb enable module_icp") && history.contains("4 rows"),
        "{history}"
    );
    let rollback = scene.run(&["rollback"]);
    assert_eq!(rollback.status.code(), Some(0), "{}", stderr(&rollback));
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
            let refused = scene.run(&["innodb", "enable", word]);
            assert_eq!(refused.status.code(), Some(3), "{version} {word}: {}", stderr(&refused));
            assert!(stderr(&refused).contains(why), "{version} {word}: {}", stderr(&refused));
        }
        assert_eq!(scene.contents(), [], "{version}");
        assert_eq!(states(&mut connection), before, "{version}");

        // By a pattern the server switches page counters one by one.
        connection.rows("SET GLOBAL innodb_monitor_enable = 'buffer_page_read_b%'").unwrap();
        let mixed = scene.run(&["innodb", "enable", "all"]);
        assert_eq!(mixed.status.code(), Some(3), "{version}: {}", stderr(&mixed));
        assert!(stderr(&mixed).contains("not all on or all off"), "{version}: {}", stderr(&mixed));
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_status_is_that_of_the_table_also_without_performance_schema() {
    for version in Version::ALL {
        let scene = Scene::with(version, "--performance-schema=OFF");
        let mut connection = scene.connect();
        connection.rows("SET GLOBAL innodb_monitor_enable = 'module_index'").unwrap();
        let counters = counters(&mut connection);
        let status = json(&scene.run(&["innodb", "status", "--json"]));
        assert_eq!(status["total"], counters.len(), "{version}");
        let on = counters.iter().filter(|counter| counter.enabled).count();
        assert_eq!(status["enabled"], on, "{version}");
        let index = &status["subsystems"]["index"];
        assert_eq!(index["module"], "module_index", "{version}");
        assert_eq!((&index["total"], &index["enabled"]), (&6.into(), &6.into()), "{version}");
        let names = index["counters"].as_array().unwrap().iter().map(|counter| &counter["name"]);
        let of_index = counters.iter().filter(|counter| counter.subsystem == "index");
        assert!(names.eq(of_index.map(|counter| &counter.name)), "{version}");

        let plain = scene.run(&["innodb", "status", "-v"]);
        let plain = String::from_utf8(plain.stdout).unwrap();
        let all_named = counters.iter().all(|counter| plain.contains(&counter.name));
        assert!(all_named && plain.contains("module_index"), "{version}: {plain}");

        let held = scene.run(&["innodb", "enable", "module_lock", "--for", "1ms"]);
        assert_eq!(held.status.code(), Some(0), "{version}: {}", stderr(&held));
    }
}

/// Runs `innodb watch --json` while `work` is done, from its first line to one after the work. The
/// lines.
fn watched(scene: &Scene, work: impl FnOnce()) -> Vec<Value> {
    let mut command = scene.command(&["innodb", "watch", "--interval", "100ms", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let watch = Holding(Some(child));
    let mut next = || serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let mut seen: Vec<Value> = vec![next()];
    work();
    // The second begins after the work.
    seen.extend([next(), next(), next()]);
    watch.end();
    seen
}

/// The sum of what a metric changed by, and the last value.
fn sum(lines: &[Value], source: &str, name: &str) -> (i64, i64) {
    let (mut sum, mut last) = (0, None);
    for line in lines {
        let metrics = line["metrics"].as_array().unwrap();
        let is_it = |metric: &&Value| metric["source"] == source && metric["name"] == name;
        let metric = metrics.iter().find(is_it).unwrap();
        let (change, rate) =
            (metric["change"].as_i64().unwrap(), metric["per_s"].as_f64().unwrap());
        let by_rate = rate * line["interval_s"].as_f64().unwrap();
        assert!((by_rate - change as f64).abs() < 1e-6, "{name}: {metric}");
        sum += change;
        last = metric["value"].as_i64();
    }
    (sum, last.unwrap())
}

const INSERTS: i64 = 300;

#[test]
fn rates_add_up_to_the_work_that_was_done() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let mut client = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        client.run("CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        connection.rows("SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'").unwrap();
        let first = counter(&mut connection, "trx_rw_commits").count;
        let lines = watched(&scene, || {
            for number in 0..INSERTS {
                client.run(format!("INSERT INTO test.t VALUES ({number})")).unwrap();
            }
        });
        let last = counter(&mut connection, "trx_rw_commits").count;
        assert_eq!(sum(&lines, "status", "Com_insert").0, INSERTS, "{version}");
        let (commits, value) = sum(&lines, "innodb", "trx_rw_commits");
        // The server commits a little of its own.
        assert!((INSERTS..=last - first).contains(&commits), "{version}: {commits} {first} {last}");
        assert!((first..=last).contains(&value), "{version}: {value} {first} {last}");
        let metric = |line: &Value, name: &str| {
            let metrics = line["metrics"].as_array().unwrap();
            metrics.iter().find(|metric| metric["name"] == name).unwrap().clone()
        };
        let off = metric(&lines[0], "icp_match");
        assert!(off["value"].is_null() && off["per_s"].is_null(), "{version}: {off}");
        let memory = metric(&lines[0], "memory_current_allocated");
        assert!(memory["value"].as_i64().unwrap() > 0, "{version}: {memory}");
    }
}

#[test]
fn a_table_shows_what_moved_or_what_was_named() {
    let scene = Scene::of(Version::Mysql9);
    let run = |words: &[&str]| {
        let output = scene.run(&[&["innodb", "watch", "--for", "300ms"], words].concat());
        let said = stderr(&output);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let (code, moved, said) = run(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(moved.contains("Questions") && !moved.contains("Com_insert"), "{moved}");
    let (_, named, _) = run(&["module_icp", "Com_insert"]);
    let row = |name: &str| named.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("icp_match").contains("off"), "{named}");
    assert!(row("Com_insert").ends_with("0.0"), "{named}");
    assert!(!named.contains("Questions"), "{named}");
    assert_eq!(run(&["nosuch"]).0, Some(3));
}

#[test]
fn a_reset_asks_first_and_is_in_the_journal() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        connection.rows("SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'").unwrap();
        let mut client = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        client.run("CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        client.run("INSERT INTO test.t VALUES (1)").unwrap();
        let before = counter(&mut connection, "trx_rw_commits");
        assert!(before.count_reset > 0, "{version}");

        let refused = scene.run(&["innodb", "reset", "trx_rw_commits"]);
        assert_eq!(refused.status.code(), Some(3), "{version}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("add --yes"), "{version}: {}", stderr(&refused));
        assert!(counter(&mut connection, "trx_rw_commits").count_reset >= before.count_reset);
        assert_eq!(scene.contents(), [], "{version}");

        let done = scene.run(&["innodb", "reset", "trx_rw_commits", "--yes"]);
        assert_eq!(done.status.code(), Some(0), "{version}: {}", stderr(&done));
        let after = counter(&mut connection, "trx_rw_commits");
        assert!(after.count >= before.count, "{version}: {after:?} {before:?}");
        assert!(after.count_reset < before.count_reset, "{version}: {after:?} {before:?}");
        let contents = scene.contents().pop().unwrap();
        let held = contents.reset["trx_rw_commits"];
        assert!((before.count_reset..=after.count).contains(&held), "{version}: {held}");

        // It holds nothing: the next command is not kept waiting, and there is nothing to undo.
        let next = scene.run(&["innodb", "enable", "module_icp", "--for", "1ms"]);
        assert_eq!(next.status.code(), Some(0), "{version}: {}", stderr(&next));
        let rollback = scene.run(&["rollback"]);
        assert!(stderr(&rollback).contains("nothing is left"), "{version}: {}", stderr(&rollback));
        let history = String::from_utf8(scene.run(&["history"]).stdout).unwrap();
        assert!(history.contains("cannot be undone"), "{version}: {history}");
    }
}

/// `script` gives the command a terminal, and passes on what it is told.
fn on_a_terminal(scene: &Scene, words: &[&str], answer: &str) -> (Option<i32>, String) {
    let command = scene.command(words);
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]);
    script.env("WAGGLE_STATE_DIR", scene.state.path());
    let child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("script is missing: install the package bsdutils");
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{answer}").unwrap();
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[test]
fn a_reset_is_done_by_yes_only_and_names_those_who_read() {
    let scene = Scene::of(Version::Mysql9);
    let mut connection = scene.connect();
    connection.rows("SET GLOBAL innodb_monitor_reset = 'buffer_pool_reads'").unwrap();
    connection.rows("SELECT COUNT_RESET FROM information_schema.INNODB_METRICS").unwrap();
    let words = ["innodb", "reset", "buffer_pool_read_requests", "buffer_pool_reads"];
    let count =
        |connection: &mut Connection| counter(connection, "buffer_pool_read_requests").count_reset;
    let before = count(&mut connection);
    let (code, said) = on_a_terminal(&scene, &words, "n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nothing was reset"), "{said}");
    assert!(said.contains("begin anew for 2 counters"), "{said}");
    assert!(said.contains("1 of them have been reset before"), "{said}");
    assert!(said.contains("SELECT `COUNT_RESET` FROM"), "{said}");
    assert!(count(&mut connection) >= before);
    let (code, said) = on_a_terminal(&scene, &words, "y");
    assert_eq!(code, Some(0), "{said}");
    assert!(count(&mut connection) < before, "{said}");
}

#[test]
fn a_missing_right_is_named_with_its_grant_and_the_grant_is_enough() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut root = scene.connect();
        root.rows("CREATE USER poor@localhost IDENTIFIED BY 'poor'").unwrap();
        let file = scene.state.path().join("poor.cnf");
        let socket = scene.server.socket();
        let options = format!("[client]\nuser=poor\npassword=poor\nsocket={}\n", socket.display());
        std::fs::write(&file, options).unwrap();
        let run = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_waggle"));
            command.arg("innodb").args(words).arg("--defaults-file").arg(&file);
            command.env("WAGGLE_STATE_DIR", scene.state.path()).output().unwrap()
        };
        let grant_of = |output: &Output| {
            let said = stderr(output);
            let grant = said.lines().find_map(|line| line.split_once("; run ")).unwrap().1;
            // The reason of the server follows.
            let end = grant.rfind("'localhost'").unwrap() + "'localhost'".len();
            grant[..end].to_owned()
        };
        let unread = run(&["status"]);
        assert_eq!(unread.status.code(), Some(3), "{version}: {}", stderr(&unread));
        let grant = grant_of(&unread);
        assert_eq!(grant, "GRANT PROCESS ON *.* TO 'poor'@'localhost'", "{version}");
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
        let set = run(&["enable", "module_icp", "--for", "1ms"]);
        assert_eq!(set.status.code(), Some(0), "{version}: {}", stderr(&set));
        assert_eq!(states(&mut root), before, "{version}");
    }
}
