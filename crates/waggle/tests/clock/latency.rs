//! Times against the server's own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Client, PerformanceSchema, Server, Version, on_each_server};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{alone, load, size, watched};

/// Statements of a millisecond, and a few that are slow.
const SHORT: u32 = 990;
const LONG: u32 = 10;
const MIXED: &str = "SELECT SLEEP(";
/// In the data directory.
const SLOW_LOG: &str = "slow.log";
/// What all clocks but the tap's contain and none shows, microseconds: before a statement the
/// session's thread has to wake up, and behind it the client's.
const WAKE_UP_US: f64 = 50.0;
/// A statement of a few microseconds.
const FAST: &str = "SELECT 1 + 1";

/// What Performance Schema timed of the statements of a session, microseconds, in their order.
fn timed(client: &mut Client, of: u32, like: &str) -> Vec<f64> {
    let sql = format!(
        "SELECT TIMER_WAIT / 1000000 FROM performance_schema.events_statements_history_long h \
         JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE t.PROCESSLIST_ID = {of} AND h.SQL_TEXT LIKE '{like}%' ORDER BY h.EVENT_ID"
    );
    let result = client.run(sql).unwrap().remove(0);
    (0..result.rows.len()).map(|row| result.text(row, 0).unwrap().parse().unwrap()).collect()
}

/// Runs statements one after another, and times each from here, in microseconds.
fn run_timed(client: &mut Client, statements: impl Iterator<Item = String>) -> Vec<f64> {
    let run = |statement: String| {
        let begin = Instant::now();
        client.run(statement).unwrap();
        begin.elapsed().as_secs_f64() * 1e6
    };
    statements.map(run).collect()
}

/// What the slow log timed of statements, microseconds, in their order.
fn logged(server: &Server, like: &str) -> Vec<f64> {
    let log = fs::read_to_string(server.datadir().join(SLOW_LOG)).unwrap();
    let (mut times, mut time) = (Vec::new(), None);
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("# Query_time: ") {
            let seconds = rest.split_whitespace().next().unwrap();
            time = Some(seconds.parse::<f64>().unwrap() * 1e6);
        } else if line.starts_with(like) {
            times.extend(time.take());
        }
    }
    times
}

/// Of each statement the shortest time, since each runs on beyond the reply where another does not:
/// those of the server through clean-up, which the client that wakes up on the same CPU interrupts,
/// and the client's until it gets a CPU. MariaDB's slow log alone ends just before the reply.
fn shortest(timed: &[Vec<f64>]) -> Vec<f64> {
    assert!(timed.iter().all(|times| times.len() == timed[0].len()), "all were timed");
    let of = |at: usize| timed.iter().map(|times| times[at]).fold(f64::INFINITY, f64::min);
    (0..timed[0].len()).map(of).collect()
}

/// The smallest value whose rank is at least `share` of all.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}

fn compare(ours: &Value, mut theirs: Vec<f64>) -> Value {
    theirs.sort_by(f64::total_cmp);
    let theirs = &theirs;
    let mut row = json!({"calls": ours["calls"], "timed": theirs.len()});
    let sum: f64 = theirs.iter().sum();
    let pairs = [
        ("sum", sum),
        ("p50", quantile(theirs, 0.50)),
        ("p95", quantile(theirs, 0.95)),
        ("p99", quantile(theirs, 0.99)),
        ("max", quantile(theirs, 1.0)),
    ];
    for (name, theirs) in pairs {
        let ours = ours["latency_us"][name].as_f64().unwrap();
        row[name] = json!({"ours": ours, "theirs": theirs, "off": (ours - theirs) / theirs});
    }
    row
}

/// What else runs on this machine comes between the clocks that are compared.
const TRIES: usize = 5;

/// What is off in every try, as a fault of ours would be.
fn off_every_time<Name: Ord>(off: impl Fn() -> BTreeMap<Name, Value>) -> BTreeMap<Name, Value> {
    let mut every_time = off();
    for _ in 1..TRIES {
        if every_time.is_empty() {
            break;
        }
        let again = off();
        every_time.retain(|name, _| again.contains_key(name));
    }
    every_time
}

fn times_equal_the_servers(version: Version, before: &str) {
    let _alone = alone();
    let off = off_every_time(|| times_off(version, before));
    assert!(off.is_empty(), "{version}: {off:#?}");
}

/// The sums and percentiles that are not the server's, each with what was compared.
fn times_off(version: Version, before: &str) -> BTreeMap<&'static str, Value> {
    let records = PerformanceSchema::Statements;
    let server = Server::builder(version)
        .performance_schema(records)
        .arg("--performance-schema-events-statements-history-long-size=10000")
        .arg("--slow-query-log=1")
        .arg(format!("--slow-query-log-file={SLOW_LOG}"))
        .arg("--long-query-time=0")
        .arg("--log-output=FILE")
        .start()
        .unwrap();
    let (mut speaker, mut reader) = (load::session(&server), load::session(&server));
    speaker.run(before).unwrap();
    // One interval, so that its percentiles are those of everything; nothing is printed before.
    let pid = server.pid().to_string();
    let mut waggle = Waggle::start(&["watch", "--json", "--pid", &pid, "--interval", "1h"]);
    waggle.wait_for("the tap", |waggle| !waggle.kernel_ids().links.is_empty());
    thread::sleep(Duration::from_millis(500));
    let mixed = (0..SHORT + LONG)
        .map(|turn| format!("{MIXED}{})", if turn % 100 == 50 { "0.2" } else { "0.001" }));
    let slow = run_timed(&mut speaker, mixed);
    let slow_by_server = timed(&mut reader, speaker.connection_id(), MIXED);
    let fast = run_timed(&mut speaker, (0..2000).map(|_| FAST.to_owned()));
    let fast_by_server = timed(&mut reader, speaker.connection_id(), FAST);
    let lines = waggle.interrupt().lines();
    let of = |text: &str| watched::digests(&lines, text).remove(0).clone();
    let (ours, ours_fast) = (of("`SLEEP`"), of("SELECT ? + ?"));
    let (slow_log, fast_log) = (logged(&server, MIXED), logged(&server, FAST));
    let truth = shortest(&[slow, slow_by_server.clone(), slow_log.clone()]);
    let fast_truth = shortest(&[fast, fast_by_server.clone(), fast_log]);
    let by_server = compare(&ours, slow_by_server);
    let fast_by_server = compare(&ours_fast, fast_by_server);
    let by_log = compare(&ours, slow_log);
    let (slow, fast) = (compare(&ours, truth), compare(&ours_fast, fast_truth));
    size::keep(&json!({
        "test": "latency", "server": server.version_string(), "before": before,
        "milliseconds": slow, "milliseconds_by_schema": by_server, "milliseconds_by_log": by_log,
        "fast": fast, "fast_by_schema": fast_by_server,
    }));
    assert_eq!(slow["calls"], SHORT + LONG, "{version}: {slow:#}");
    assert_eq!(slow["timed"], SHORT + LONG, "{version}: {slow:#}");
    let limits = [("sum", 0.03), ("p50", 0.02), ("p99", 0.02), ("max", 0.02)];
    let is_off = |(name, limit): &(&str, f64)| {
        let [off, ours, theirs] =
            ["off", "ours", "theirs"].map(|it| slow[*name][it].as_f64().unwrap());
        off.abs() > *limit && (ours - theirs).abs() > WAKE_UP_US
    };
    limits.into_iter().filter(is_off).map(|(name, _)| (name, slow.clone())).collect()
}

/// Performance Schema's timer stops between the reply and the server's next read, both of which
/// `verify` times: so its sums are met, or lie between.
fn times_of_performance_schema_are_met(version: Version) {
    let _alone = alone();
    let unmet = off_every_time(|| unmet_sums(version));
    assert!(unmet.is_empty(), "{version}: {unmet:#?}");
}

/// The sums of digests that are not met, by digest.
fn unmet_sums(version: Version) -> BTreeMap<String, Value> {
    let builder = Server::builder(version).performance_schema(PerformanceSchema::Statements);
    let server = builder.start().unwrap();
    let length = Length::Events(1000);
    let sysbench = Sysbench { threads: 2, length, ..load::read_write(&server) };
    let verified = Verified::around(&server, &[], |_| {
        sysbench.start(&server).unwrap().wait().unwrap();
    });
    verified.assert_exact(&format!("{version}, times"), 1000 * load::PER_TRANSACTION);
    let report = &verified.report;
    size::keep(&json!({
        "test": "performance_schema_times", "server": server.version_string(),
        "captured": report["captured"], "latency_sum": report["fields"]["latency_sum"],
        "latency_percentiles": report["fields"]["latency_percentiles"],
    }));
    assert!(verified.number("/fields/latency_sum/compared") >= 5, "{report:#}");
    assert!(verified.number("/fields/latency_percentiles/compared") >= 5, "{report:#}");
    let sums = report["differing"].as_array().unwrap().iter();
    let is_unmet = |one: &&Value| {
        let why = one["why"].as_str().unwrap_or("no reason");
        one["field"] == "latency_sum" && !why.contains("next read")
    };
    sums.filter(is_unmet).map(|one| (one["digest_text"].to_string(), one.clone())).collect()
}

on_each_server!(times_of_performance_schema_are_met: mysql_8_0 Mysql80, mysql_9 Mysql9);

fn times_are_the_servers(version: Version) {
    times_equal_the_servers(version, "SET @nothing = 1");
}

on_each_server!(times_are_the_servers: mysql_8_0 Mysql80, mysql_9 Mysql9, mariadb_11_4 Mariadb114);

#[test]
fn a_session_that_set_its_timestamp_is_timed_all_the_same() {
    times_equal_the_servers(Version::Mysql80, "SET timestamp = 1");
    times_equal_the_servers(Version::Mariadb1011, "SET timestamp = 1");
}
