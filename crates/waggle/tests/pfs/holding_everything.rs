//! Everything, and nothing, for a given time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use waggle_instrumentation::activity::{self, Events};
use waggle_instrumentation::class::class_of;
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Version};

use super::costing::json;
use super::{Holding, PATIENCE, Scene};

const HELD: Duration = Duration::from_secs(10);

/// Classes that the work of a test need not make MariaDB use, and why; MySQL uses all.
const MAY_BE_SILENT: [(&str, &str); 1] =
    [("wait/synch/sxlock", "MariaDB has only one, of the trees of indexes; MySQL has a dozen")];

fn may_be_silent(version: Version, class: &str) -> bool {
    version.is_mariadb() && MAY_BE_SILENT.iter().any(|(silent, _)| class == *silent)
}

/// Statements that make events of every class that a session can make.
fn work(client: &mut Client) {
    for sql in [
        "CREATE TABLE IF NOT EXISTS test.t (a INT PRIMARY KEY, b CHAR(200)) ENGINE=InnoDB",
        "BEGIN",
        "REPLACE INTO test.t VALUES (1, REPEAT('x', 200)), (2, 'y')",
        "COMMIT",
        "SELECT COUNT(*) FROM test.t ORDER BY b",
        "LOCK TABLES test.t WRITE",
        "UNLOCK TABLES",
        "FLUSH TABLES",
    ] {
        client.run(sql).unwrap();
    }
    client.run("SELECT nothing").unwrap_err();
}

/// A wait for a metadata lock: they count when they wait only.
fn wait_for_lock(scene: &Scene) {
    let connect = || Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
    let (mut holder, mut waiter) = (connect(), connect());
    holder.run("CREATE TABLE test.locked (a INT) ENGINE=InnoDB").unwrap();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT * FROM test.locked").unwrap();
    waiter.run("SET SESSION lock_wait_timeout = 1").unwrap();
    waiter.run("DROP TABLE test.locked").unwrap_err();
}

/// The status less what goes on by itself: events, threads, and what keeps them.
fn settings(scene: &Scene) -> Value {
    let mut status = json(&scene.run(&["status", "--interval", "10ms", "--json"]));
    let all = status.as_object_mut().unwrap();
    // Rows and memory that were taken for events are not given back.
    for name in ["threads", "interval_s", "memory", "memory_bytes", "lost", "digests"] {
        all.remove(name).unwrap_or_else(|| panic!("{name} is missing"));
    }
    for classes in ["classes", "tree"] {
        for class in all[classes].as_object_mut().unwrap().values_mut() {
            class.as_object_mut().unwrap().remove("events_per_s").unwrap();
        }
    }
    status
}

fn events(connection: &mut Connection) -> Events {
    activity::read(connection).unwrap().value().unwrap().clone()
}

/// The classes of which an instrument is on.
fn enabled(connection: &mut Connection) -> BTreeSet<String> {
    let sql = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'YES'";
    let rows = connection.rows(sql).unwrap();
    rows.iter().map(|row| class_of(&text(row, 0)).to_owned()).collect()
}

/// Applies a profile for some seconds, calls `check` when all is set, and gives what it said of each
/// class when it ended by itself.
fn hold_for_seconds(scene: &Scene, profile: &str, check: impl FnOnce()) -> BTreeMap<String, Value> {
    let before = settings(scene);
    let begin = Instant::now();
    let seconds = format!("{}s", HELD.as_secs());
    let mut command = scene.command(&["apply", profile, "--for", &seconds, "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let holding = Holding(Some(child));
    let mut line = String::new();
    while !line.starts_with("set for 10 s") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "{profile}: it ended before it was set");
    }
    check();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = holding.wait();
    assert!(begin.elapsed() >= HELD, "it ended early: {rest}");
    assert_eq!(ended.status.code(), Some(0), "{rest}");
    assert!(rest.contains("undone: "), "{rest}");
    assert_eq!(settings(scene), before, "{profile}");

    let proofs: Vec<Value> = serde_json::from_slice(&ended.stdout).unwrap();
    let by_class =
        proofs.into_iter().map(|proof| (proof["class"].as_str().unwrap().to_owned(), proof));
    by_class.collect()
}

#[test]
fn everything_ends_by_itself_and_every_class_that_is_on_counts() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut watcher = scene.connect();
        let mut client = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        let mut on = BTreeSet::new();
        let proofs = hold_for_seconds(&scene, "everything", || {
            on = enabled(&mut watcher);
            let begin = Instant::now();
            let earlier = events(&mut watcher);
            wait_for_lock(&scene);
            loop {
                work(&mut client);
                let counted = activity::by_class(&earlier, &events(&mut watcher));
                let is_silent = |class: &&String| {
                    !may_be_silent(version, class)
                        && counted.get(*class).is_none_or(|count| *count == 0)
                };
                let silent: Vec<_> = on.iter().filter(is_silent).collect();
                if silent.is_empty() {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "{version}: nothing counted: {silent:?}");
            }
        });
        assert!(on.contains("wait/synch/mutex"), "{version}: {on:?}");
        assert_eq!(proofs.keys().cloned().collect::<BTreeSet<_>>(), on, "{version}");
        for (class, proof) in &proofs {
            let may_be_silent = may_be_silent(version, class);
            let is_as_set =
                proof["verdict"] == "counts" || may_be_silent && proof["verdict"] == "silent";
            assert!(is_as_set && proof["enabled"].as_u64() > Some(0), "{version}: {proof}");
            let has_events = proof["events"].as_u64() > Some(0);
            assert_eq!(has_events, proof["verdict"] == "counts", "{version}: {proof}");
        }
    }
}

#[test]
fn off_ends_by_itself_and_nothing_counts_but_the_memory_of_performance_schema() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut watcher = scene.connect();
        let mut client = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        let proofs = hold_for_seconds(&scene, "off", || {
            // The only instruments that nobody can switch off.
            let sql = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'YES' \
                       AND NAME NOT LIKE 'memory/performance\\_schema/%'";
            assert_eq!(watcher.rows(sql).unwrap().len(), 0, "{version}");
            let switchable = |connection: &mut Connection| {
                let mut events = events(connection);
                events.retain(|name, _| !name.starts_with("memory/performance_schema/"));
                events
            };
            let earlier = switchable(&mut watcher);
            // More statements than there are threads.
            (0..50).for_each(|_| work(&mut client));
            let rows = watcher.rows("SELECT COUNT(*) FROM performance_schema.threads").unwrap();
            let threads: u64 = text(&rows[0], 0).parse().unwrap();
            for (class, count) in activity::by_class(&earlier, &switchable(&mut watcher)) {
                // In each thread one event can have begun before.
                assert!(
                    count <= threads,
                    "{version}: {class} counted {count} with {threads} threads"
                );
            }
        });
        assert!(proofs.contains_key("statement"), "{version}");
        for (class, proof) in &proofs {
            if class != "memory" {
                assert_eq!(proof["enabled"], 0, "{version}: {proof}");
                assert_eq!(proof["verdict"], "still", "{version}: {proof}");
            }
        }
    }
}
