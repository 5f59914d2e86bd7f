//! The status says what the server says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json as value};
use waggle_mysql::Connection;
use waggle_mysql::connection::{optional_text, text};
use waggle_testkit::{Account, Client, Transport, Version, wait_for, wait_until};

use super::Scene;
use super::costing::{AT_WORK_PER_S, busy, json, number};

fn status(scene: &Scene, interval: &str) -> Value {
    json(&scene.run(&["status", "--interval", interval, "--json"]))
}

/// The first row as numbers.
fn numbers(connection: &mut Connection, sql: &str) -> Vec<u64> {
    let rows = connection.rows(sql).unwrap();
    (0..rows[0].len()).map(|at| text(&rows[0], at).parse().unwrap()).collect()
}

/// Every row as texts.
fn rows(connection: &mut Connection, sql: &str) -> BTreeSet<Vec<String>> {
    let rows = connection.rows(sql).unwrap();
    rows.iter().map(|row| (0..row.len()).map(|at| text(row, at)).collect()).collect()
}

/// The same of a list in the status: these members, and `YES` or `NO` for whether.
fn members(list: &Value, names: &[&str]) -> BTreeSet<Vec<String>> {
    let word = |value: &Value| match value {
        Value::Bool(true) => "YES".to_owned(),
        Value::Bool(false) => "NO".to_owned(),
        Value::String(text) => text.clone(),
        other => panic!("{other} is neither a text nor a truth"),
    };
    let list = list.as_array().unwrap().iter();
    list.map(|one| names.iter().map(|name| word(&one[name])).collect()).collect()
}

#[test]
fn what_is_set_is_what_the_tables_say() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        for sql in [
            "INSERT INTO performance_schema.setup_actors (HOST, USER, ROLE, ENABLED, HISTORY) \
             VALUES ('nowhere', 'nobody', '%', 'YES', 'NO')",
            "INSERT INTO performance_schema.setup_objects (OBJECT_TYPE, OBJECT_SCHEMA, \
             OBJECT_NAME, ENABLED, TIMED) VALUES ('TABLE', 'one', 'a', 'YES', 'NO')",
            "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'NO' \
             WHERE NAME LIKE 'wait/io/socket/%'",
        ] {
            connection.rows(sql).unwrap();
        }
        let status = status(&scene, "10ms");
        let classes = connection.rows(
            "SELECT IF(NAME LIKE 'wait/%', SUBSTRING_INDEX(NAME, '/', 3), \
             SUBSTRING_INDEX(NAME, '/', 1)) AS class, COUNT(*), SUM(ENABLED = 'YES'), \
             SUM(COALESCE(TIMED = 'YES', 0)) FROM performance_schema.setup_instruments \
             GROUP BY class",
        );
        let classes: BTreeMap<String, [String; 3]> = classes
            .unwrap()
            .iter()
            .map(|row| (text(row, 0), [1, 2, 3].map(|at| text(row, at))))
            .collect();
        let seen: BTreeMap<String, [String; 3]> = status["classes"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, of)| {
                (name.clone(), ["total", "enabled", "timed"].map(|n| of[n].to_string()))
            })
            .collect();
        assert_eq!(seen, classes, "{version}");
        assert_eq!(seen["wait/io/socket"][1..], ["3", "0"].map(str::to_owned), "{version}");
        let sql = "SELECT SUM(NAME LIKE 'wait/io/%'), SUM(NAME LIKE 'memory/performance_schema/%') \
                   FROM performance_schema.setup_instruments";
        let counts = numbers(&mut connection, sql);
        assert_eq!(status["tree"]["wait/io"]["total"], counts[0], "{version}");
        assert_eq!(status["classes"]["memory"]["always_on"], counts[1], "{version}");
        for (name, class) in status["classes"].as_object().unwrap() {
            let at_run_time =
                class["total"].as_u64().unwrap() - class["always_on"].as_u64().unwrap();
            assert_eq!(class["at_run_time"], at_run_time, "{version} {name}");
        }

        let actors = rows(
            &mut connection,
            "SELECT HOST, USER, ENABLED, HISTORY FROM performance_schema.setup_actors",
        );
        let names = ["host", "user", "enabled", "history"];
        assert_eq!(members(&status["actors"], &names), actors, "{version}");
        let objects = rows(
            &mut connection,
            "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, ENABLED, TIMED \
             FROM performance_schema.setup_objects",
        );
        let names = ["kind", "schema", "name", "enabled", "timed"];
        assert_eq!(members(&status["objects"], &names), objects, "{version}");
        assert_eq!(status["objects"].as_array().unwrap().len(), objects.len(), "{version}");

        if matches!(version, Version::Mysql80 | Version::Mysql9) {
            let sql = "SELECT SUM(ENABLED = 'YES'), COUNT(*) FROM performance_schema.setup_threads";
            let kinds = numbers(&mut connection, sql);
            let expected = value!({"used": kinds[0], "total": kinds[1]});
            assert_eq!(status["setup_threads"], expected, "{version}");
        } else {
            assert_eq!(status["setup_threads"], Value::Null, "{version}");
        }
    }
}

#[test]
fn consumers_below_one_that_is_off_are_dead() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let all = "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES'";
        for (off, alive) in [
            ("events_statements_current", "NOT LIKE 'events\\_statements\\_history%'"),
            (
                "thread_instrumentation",
                "IN ('global_instrumentation', 'thread_instrumentation', 'statements_digest')",
            ),
            ("global_instrumentation", "= 'global_instrumentation'"),
        ] {
            connection.rows(all).unwrap();
            let sql = format!(
                "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = '{off}'"
            );
            connection.rows(&sql).unwrap();
            let status = status(&scene, "10ms");
            let settings = rows(
                &mut connection,
                "SELECT NAME, ENABLED FROM performance_schema.setup_consumers",
            );
            assert_eq!(members(&status["consumers"], &["name", "enabled"]), settings, "{version}");
            let sql = format!(
                "SELECT NAME, '{off}' FROM performance_schema.setup_consumers WHERE NOT (NAME {alive})"
            );
            let consumers = status["consumers"].as_array().unwrap().iter();
            let dead: Vec<Value> =
                consumers.filter(|one| !one["dead_because"].is_null()).cloned().collect();
            let seen = members(&Value::Array(dead), &["name", "dead_because"]);
            assert_eq!(seen, rows(&mut connection, &sql), "{version}: {off} is off");
        }
    }
}

#[test]
fn threads_timers_and_memory_are_those_of_the_server() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let client = Client::connect(&scene.server, Transport::Unix, Account::APP).unwrap();
        let sql = format!(
            "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' \
             WHERE PROCESSLIST_ID = {}",
            client.connection_id()
        );
        connection.rows(&sql).unwrap();
        // The status has a session of its own, and others of the server come and go.
        wait_until("as many threads as the server says and one more", || {
            let sql = "SELECT COUNT(*) + 1, SUM(INSTRUMENTED = 'YES') + 1, \
                       SUM(HISTORY = 'YES') + 1 FROM performance_schema.threads";
            let threads = numbers(&mut connection, sql);
            assert!(threads[1] < threads[0] && threads[2] < threads[0], "{version}");
            let expected = value!({
                "total": threads[0], "instrumented": threads[1], "history": threads[2]
            });
            status(&scene, "10ms")["threads"] == expected
        });

        let bytes = |connection: &mut Connection| {
            let rows = connection.rows("SHOW ENGINE PERFORMANCE_SCHEMA STATUS").unwrap();
            let total = rows.iter().find(|row| text(row, 1) == "performance_schema.memory");
            text(total.unwrap(), 2).parse::<u64>().unwrap()
        };
        // It is never given back.
        let before = bytes(&mut connection);
        let status = status(&scene, "10ms");
        let after = bytes(&mut connection);
        let seen = status["memory_bytes"].as_u64().unwrap();
        assert!((before..=after).contains(&seen), "{version}: {before} {seen} {after}");
        assert!(seen > 1 << 20, "{version}: {seen}");

        // MariaDB has these where it could not measure.
        let none = "9223372036854775807";
        let timers = connection.rows(&format!(
            "SELECT TIMER_NAME, NULLIF(NULLIF(TIMER_FREQUENCY, 0), {none}), \
             NULLIF(TIMER_RESOLUTION, {none}), NULLIF(TIMER_OVERHEAD, {none}) \
             FROM performance_schema.performance_timers"
        ));
        let timer = |row| {
            let number = |at| optional_text(row, at).map(|text| text.parse::<u64>().unwrap());
            value!({
                "name": text(row, 0), "frequency": number(1), "resolution": number(2),
                "overhead_cycles": number(3)
            })
        };
        let timers: Vec<Value> = timers.unwrap().iter().map(timer).collect();
        assert!(timers.iter().any(|timer| timer["frequency"].is_u64()), "{version}: {timers:?}");
        assert_eq!(status["timers"], Value::Array(timers), "{version}");
    }
}

#[test]
fn what_is_full_and_what_is_lost_is_said() {
    const DIGESTS: u64 = 40;
    for version in Version::ALL {
        let options = ["=ON", &format!("-digests-size={DIGESTS}"), "-max-cond-classes=5"];
        let options = options.map(|option| format!("--performance-schema{option}"));
        let scene = Scene::with(version, options);
        let mut connection = scene.connect();
        let used = "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest";
        connection.rows("TRUNCATE performance_schema.events_statements_summary_by_digest").unwrap();
        let before = numbers(&mut connection, used)[0];
        let digests = status(&scene, "10ms")["digests"].clone();
        let after = numbers(&mut connection, used)[0];
        let seen = digests["used"].as_u64().unwrap();
        assert!((before..=after).contains(&seen), "{version}: {before} {seen} {after}");
        assert_eq!(digests["total"], DIGESTS, "{version}");

        for columns in 1..=DIGESTS {
            let columns = (0..columns).map(|at| format!("1 AS c{at}"));
            connection.rows(&format!("SELECT {}", columns.collect::<Vec<_>>().join(", "))).unwrap();
        }
        let lost = |connection: &mut Connection, what: &str| {
            let sql = format!("SHOW GLOBAL STATUS LIKE 'Performance\\_schema\\_{what}\\_lost'");
            text(&connection.rows(&sql).unwrap()[0], 1).parse::<u64>().unwrap()
        };
        let before = lost(&mut connection, "digest");
        let status = status(&scene, "10ms");
        let after = lost(&mut connection, "digest");
        assert_eq!(numbers(&mut connection, used), [DIGESTS], "{version}");
        assert_eq!(status["digests"], value!({"used": DIGESTS, "total": DIGESTS}), "{version}");
        let seen = status["lost"]["Performance_schema_digest_lost"].as_u64().unwrap();
        assert!(before > 0, "{version}: nothing was lost");
        assert!((before..=after).contains(&seen), "{version}: {before} {seen} {after}");
        let classes = lost(&mut connection, "cond_classes");
        assert!(classes > 0, "{version}: nothing was lost");
        assert_eq!(status["lost"]["Performance_schema_cond_classes_lost"], classes, "{version}");
    }
}

#[test]
fn a_class_under_load_has_events_per_second() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let _load = busy(&scene);
        let of = |status: &Value, class: &str| number(&status["classes"][class]["events_per_s"]);
        // Each of its statements reads a row; what waggle asks itself reads none of a table that is recorded.
        let status = wait_for("rows that the load reads", || {
            Some(status(&scene, "300ms")).filter(|one| of(one, "wait/io/table") >= AT_WORK_PER_S)
        });
        let per_s = |class: &str| of(&status, class);
        assert!(per_s("statement") > per_s("wait/io/table") / 2.0, "{version}: {status}");
        // It is off on every server that starts without options.
        assert_eq!(status["classes"]["wait/synch/mutex"]["enabled"], 0, "{version}");
        assert_eq!(per_s("wait/synch/mutex"), 0.0, "{version}: {status}");
    }
}
