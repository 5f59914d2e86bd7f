//! A thread that serves no client is recorded alone.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Version, wait_for, wait_until};

use super::{Scene, assert_ended};

fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let rows = connection.rows(sql).unwrap();
    rows.iter().map(|row| (0..row.len()).map(|at| text(row, at)).collect()).collect()
}

/// How long is looked which threads do something: most of those that do, do so every second.
const BUSY: Duration = Duration::from_secs(2);

const KINDS: &str =
    "SELECT NAME, ENABLED, HISTORY FROM performance_schema.setup_threads ORDER BY NAME";
const THREADS: &str = "SELECT THREAD_ID, NAME, INSTRUMENTED, HISTORY FROM \
                       performance_schema.threads WHERE NAME LIKE 'thread/innodb/%' \
                       ORDER BY THREAD_ID";

/// The threads that another look has, too: a few of InnoDB come and go.
fn in_both(threads: &[Vec<String>], other: &[Vec<String>]) -> Vec<Vec<String>> {
    let is_there = |thread: &&Vec<String>| other.iter().any(|row| row[0] == thread[0]);
    threads.iter().filter(is_there).cloned().collect()
}

/// A kind of thread of InnoDB of which one runs, and one of which none does.
const RUNNING: &str = "SELECT MIN(NAME) FROM performance_schema.setup_threads JOIN \
                       performance_schema.threads USING (NAME) WHERE NAME LIKE 'thread/innodb/%'";
const TO_COME: &str = "SELECT MIN(NAME) FROM performance_schema.setup_threads WHERE NAME LIKE \
                       'thread/innodb/%' AND NAME NOT IN (SELECT NAME FROM \
                       performance_schema.threads)";

/// The only value.
fn value(connection: &mut Connection, sql: &str) -> String {
    rows(connection, sql)[0][0].clone()
}

#[test]
fn a_background_thread_is_set_now_and_for_its_next_start() {
    // The others have no setup_threads.
    for version in [Version::Mysql80, Version::Mysql9] {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let [running, to_come] = [RUNNING, TO_COME].map(|sql| value(&mut connection, sql));
        assert!(!running.is_empty() && !to_come.is_empty(), "{version}: no thread of InnoDB");
        let number = format!(
            "SELECT MIN(THREAD_ID) FROM performance_schema.threads WHERE NAME = '{running}'"
        );
        let number = value(&mut connection, &number);
        // Not as they are at the start, so that what is undone is what was there.
        for sql in [
            format!(
                "UPDATE performance_schema.setup_threads SET HISTORY = 'NO' WHERE NAME = '{running}'"
            ),
            format!(
                "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' \
                 WHERE NAME = '{running}'"
            ),
        ] {
            connection.rows(&sql).unwrap();
        }
        let kinds = rows(&mut connection, KINDS);
        let threads = rows(&mut connection, THREADS);

        // By a number no thread is meant that starts later.
        let choices = [(&running, running.as_str()), (&to_come, to_come.as_str()), (&number, "")];
        for (chosen, kind) in choices {
            let holding = scene.hold(&["apply", "io", "--thread", chosen]);
            let of = |is_chosen| if is_chosen { "YES" } else { "NO" };
            for row in rows(&mut connection, KINDS) {
                assert_eq!(row[1..], [of(row[0] == kind); 2], "{version} {chosen}: {row:?}");
            }
            let now = in_both(&rows(&mut connection, THREADS), &threads);
            let is_there = now.iter().any(|row| row[1] == running);
            assert!(is_there, "{version}: {running} has ended");
            for row in now {
                let is_chosen = row[..2].contains(chosen);
                assert_eq!(row[2..], [of(is_chosen); 2], "{version} {chosen}: {row:?}");
            }

            assert_ended(&holding.end(), 0, &[], format_args!("{version} {chosen}"));
            assert_eq!(rows(&mut connection, KINDS), kinds, "{version} {chosen}");
            let after = rows(&mut connection, THREADS);
            let (after, before) = (in_both(&after, &threads), in_both(&threads, &after));
            assert_eq!(after, before, "{version} {chosen}");
        }
    }
}

/// A thread that starts when an event does.
const WORKER: &str = "thread/sql/event_worker";
const WORKERS: &str = "SELECT PROCESSLIST_ID, INSTRUMENTED, HISTORY FROM \
                       performance_schema.threads WHERE NAME = 'thread/sql/event_worker' AND \
                       PROCESSLIST_ID > 0";

#[test]
fn a_thread_that_starts_later_is_recorded_by_its_name_and_by_no_number() {
    for version in [Version::Mysql80, Version::Mysql9] {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        connection.rows("SET GLOBAL event_scheduler = ON").unwrap();
        let own = "SELECT THREAD_ID FROM performance_schema.threads \
                   WHERE PROCESSLIST_ID = CONNECTION_ID()";
        let own = value(&mut connection, own);
        // On MySQL 9 it has an account, and setup_actors decides.
        let by_name = (version == Version::Mysql80).then_some((WORKER, "YES"));
        for (chosen, expected) in [(own.as_str(), "NO")].into_iter().chain(by_name) {
            let holding = scene.hold(&["apply", "io", "--thread", chosen]);
            let event = "CREATE EVENT test.e ON SCHEDULE AT CURRENT_TIMESTAMP DO DO SLEEP(600)";
            connection.rows(event).unwrap();
            let worker = wait_for("the event", || rows(&mut connection, WORKERS).pop());
            assert_eq!(worker[1..], [expected; 2], "{version} {chosen}");
            assert_ended(&holding.end(), 0, &[], format_args!("{version} {chosen}"));
            assert_eq!(rows(&mut connection, WORKERS)[0][1..], ["YES"; 2], "{version} {chosen}");
            connection.rows(&format!("KILL {}", worker[0])).unwrap();
            wait_until("its end", || rows(&mut connection, WORKERS).is_empty());
            connection.rows("DROP EVENT IF EXISTS test.e").unwrap();
        }
    }
}

/// How many waits each thread has had that serves no client, by its number, with its name.
fn waits(connection: &mut Connection) -> BTreeMap<u64, (String, u64)> {
    let sql = "SELECT THREAD_ID, NAME, SUM(COUNT_STAR) FROM performance_schema.threads JOIN \
               performance_schema.events_waits_summary_by_thread_by_event_name USING (THREAD_ID) \
               WHERE TYPE = 'BACKGROUND' GROUP BY THREAD_ID, NAME";
    let number = |text: &str| text.parse().unwrap();
    let rows = rows(connection, sql).into_iter();
    rows.map(|row| (number(&row[0]), (row[1].clone(), number(&row[2])))).collect()
}

/// How many waits they have had since, by name, of those with more than one: one may have begun before.
fn waits_since(
    connection: &mut Connection,
    earlier: &BTreeMap<u64, (String, u64)>,
) -> BTreeMap<String, u64> {
    let mut since = BTreeMap::new();
    for (thread, (name, count)) in waits(connection) {
        let count = count - earlier.get(&thread).map_or(0, |(_, count)| *count);
        if count > 1 {
            *since.entry(name).or_default() += count;
        }
    }
    since
}

#[test]
fn what_a_background_thread_does_is_recorded_alone() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let all = scene.hold(&["apply", "waits"]);
        // What a server does once after its start is over by then, else there are not two.
        let earlier = wait_for("two busy threads", || {
            let earlier = waits(&mut connection);
            sleep(BUSY);
            (waits_since(&mut connection, &earlier).len() > 1).then_some(earlier)
        });
        let busy = waits_since(&mut connection, &earlier);
        assert_eq!(all.end().status.code(), Some(0), "{version}");

        let (chosen, _) = busy.iter().max_by_key(|(_, waits)| **waits).unwrap();
        let alone = scene.hold(&["apply", "waits", "--thread", chosen]);
        let earlier = waits(&mut connection);
        let seen = wait_for(format_args!("{chosen} of {version}"), || {
            sleep(BUSY);
            let seen = waits_since(&mut connection, &earlier);
            seen.contains_key(chosen).then_some(seen)
        });
        let names: Vec<&String> = seen.keys().collect();
        assert_eq!(names, [chosen], "{version}: of {busy:?}");
        assert_eq!(alone.end().status.code(), Some(0), "{version}");
    }
}
