//! `waggle innodb status`, `watch` and `reset`.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Version, wait_for};

use super::costing::json;
use super::innodb::{counter, counters};
use super::{Holding, Scene, stderr};

#[test]
fn the_status_is_that_of_the_table_also_without_performance_schema() {
    for version in Version::ALL {
        let scene = Scene::with(version, ["--performance-schema=OFF"]);
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

        scene.assert_run(&["innodb", "enable", "module_lock", "--for", "1ms"], 0, &[]);
    }
}

/// The lines of `innodb watch --json` from one before `work` to the one that `is_last`.
fn watched(
    scene: &Scene,
    work: impl FnOnce(),
    mut is_last: impl FnMut(&Value) -> bool,
) -> Vec<Value> {
    let mut command = scene.command(&["innodb", "watch", "--interval", "100ms", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let watch = Holding(Some(child));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let mut seen = vec![next()];
    work();
    wait_for("a line that has all of the work", || {
        seen.push(next());
        seen.last().filter(|line| is_last(line)).map(drop)
    });
    // Nobody reads on: it must not be kept from seeing the signal by a full pipe.
    drop(lines);
    watch.end();
    seen
}

/// A metric of a line.
fn metric<'a>(line: &'a Value, source: &str, name: &str) -> &'a Value {
    let metrics = line["metrics"].as_array().unwrap();
    let is_it = |metric: &&Value| metric["source"] == source && metric["name"] == name;
    metrics.iter().find(is_it).unwrap()
}

/// The sum of what a metric changed by.
fn sum(lines: &[Value], source: &str, name: &str) -> i64 {
    let change = |line: &Value| {
        let metric = metric(line, source, name);
        let change = metric["change"].as_i64().unwrap();
        let by_rate = metric["per_s"].as_f64().unwrap() * line["interval_s"].as_f64().unwrap();
        assert!((by_rate - change as f64).abs() < 1e-6, "{name}: {metric}");
        change
    };
    lines.iter().map(change).sum()
}

const INSERTS: i64 = 300;

#[test]
fn rates_add_up_to_the_work_that_was_done() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let mut client = scene.server.root().unwrap();
        client.run("CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        connection.rows("SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'").unwrap();
        let mut commits = || counter(&mut connection, "trx_rw_commits").count;
        let mut status = scene.connect();
        let mut inserts = || {
            let rows = status.rows("SHOW GLOBAL STATUS LIKE 'Com_insert'").unwrap();
            text(&rows[0], 1).parse::<i64>().unwrap()
        };
        let first = commits();
        let done = Cell::new((0, 0));
        let work = || {
            for number in 0..INSERTS {
                client.run(format!("INSERT INTO test.t VALUES ({number})")).unwrap();
            }
            done.set((commits(), inserts()));
        };
        let count = |line: &Value, source: &str, name: &str| {
            metric(line, source, name)["value"].as_i64().unwrap()
        };
        // A line reads its sources one after the other, so that work can fall between them.
        let lines = watched(&scene, work, |line| {
            let (commits, inserts) = done.get();
            count(line, "innodb", "trx_rw_commits") >= commits
                && count(line, "status", "Com_insert") >= inserts
        });
        let last = commits();
        assert_eq!(sum(&lines, "status", "Com_insert"), INSERTS, "{version}");
        // The server commits a little of its own.
        let committed = sum(&lines, "innodb", "trx_rw_commits");
        assert!(
            (INSERTS..=last - first).contains(&committed),
            "{version}: {committed} {first} {last}"
        );
        let off = metric(&lines[0], "innodb", "icp_match");
        assert!(off["value"].is_null() && off["per_s"].is_null(), "{version}: {off}");
        let memory = metric(&lines[0], "memory", "memory_current_allocated");
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
    // On a busy host the time can be over before anything was shown of it.
    let shown = |words: &[&str]| {
        wait_for("a table", || {
            let (code, table, said) = run(words);
            assert_eq!(code, Some(0), "{said}");
            (!table.is_empty()).then_some(table)
        })
    };
    let moved = shown(&[]);
    assert!(moved.contains("Questions") && !moved.contains("Com_insert"), "{moved}");
    let named = shown(&["module_icp", "Com_insert"]);
    let row = |name: &str| named.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("icp_match").contains("off"), "{named}");
    assert!(row("Com_insert").ends_with("0.0"), "{named}");
    assert!(!named.contains("Questions"), "{named}");
    assert_eq!(run(&["nosuch"]).0, Some(2));
}

#[test]
fn a_reset_asks_first_and_is_in_the_journal() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        connection.rows("SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'").unwrap();
        let mut client = scene.server.root().unwrap();
        client.run("CREATE TABLE test.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        client.run("INSERT INTO test.t VALUES (1)").unwrap();
        let before = counter(&mut connection, "trx_rw_commits");
        assert!(before.count_reset > 0, "{version}");

        scene.assert_run(&["innodb", "reset", "trx_rw_commits"], 2, &["add --yes"]);
        assert!(counter(&mut connection, "trx_rw_commits").count_reset >= before.count_reset);
        assert_eq!(scene.contents(), [], "{version}");

        scene.assert_run(&["innodb", "reset", "trx_rw_commits", "--yes"], 0, &[]);
        let after = counter(&mut connection, "trx_rw_commits");
        assert!(after.count >= before.count, "{version}: {after:?} {before:?}");
        // `COUNT_RESET` has what was committed since the reset only, by the server itself, too: no more
        // than came to `COUNT` from before the reset until after it was read.
        let later = counter(&mut connection, "trx_rw_commits");
        assert!(
            after.count_reset <= later.count - before.count,
            "{version}: {after:?} {before:?} {later:?}"
        );
        let contents = scene.contents().pop().unwrap();
        let held = contents.reset["trx_rw_commits"];
        assert!((before.count_reset..=after.count).contains(&held), "{version}: {held}");

        // It holds nothing: the next command is not kept waiting, and there is nothing to undo.
        scene.assert_run(&["innodb", "enable", "module_icp", "--for", "1ms"], 0, &[]);
        let rollback = scene.run(&["rollback"]);
        assert!(stderr(&rollback).contains("nothing is left"), "{version}: {}", stderr(&rollback));
        let history = scene.history();
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
    // A counter that mirrors the status gets its value when it is read.
    counters(&mut connection);
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
