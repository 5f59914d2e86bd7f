//! Times against the server's own.

use serde_json::Value;
use serde_json::json;
use waggle_testkit::Client;
use waggle_testkit::PerformanceSchema;
use waggle_testkit::Server;
use waggle_testkit::Version;

use crate::host;
use crate::load;
use crate::size;
use crate::watched;
use crate::watching::Waggle;

/// Statements of a millisecond, and a few that are slow.
const SHORT: u32 = 990;
const LONG: u32 = 10;
const MIXED: &str = "SELECT SLEEP(";

/// What Performance Schema timed of the statements of a session, microseconds, shortest first.
fn timed(client: &mut Client, of: u32, like: &str) -> Vec<f64> {
    let sql = format!(
        "SELECT TIMER_WAIT / 1000000 FROM performance_schema.events_statements_history_long h \
         JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE t.PROCESSLIST_ID = {of} AND h.SQL_TEXT LIKE '{like}%'"
    );
    let result = client.run(sql).unwrap().remove(0);
    let rows = 0..result.rows.len();
    let mut times: Vec<f64> = rows.map(|row| result.text(row, 0).unwrap().parse().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The smallest value whose rank is at least `share` of all.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}

fn compare(ours: &Value, theirs: &[f64]) -> Value {
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

fn times_equal_the_servers(version: Version, before: &str) {
    let _steady = host::steady_clock();
    let records = PerformanceSchema::Statements;
    let server = Server::builder(version).performance_schema(records).start().unwrap();
    let (mut speaker, mut reader) = (load::session(&server), load::session(&server));
    speaker.run(before).unwrap();
    // One interval, so that its percentiles are those of everything.
    let mut waggle = Waggle::watch(&server, &["--interval", "100ms"]);
    waggle.wait_for_lines(1);
    drop(waggle);
    let pid = server.pid().to_string();
    let mut waggle =
        Waggle::start(&["watch", "--json", "--pid", &pid, "--interval", "1h"]);
    let marker = "SELECT 'attached'";
    // There is no line before the end: it watches when a program of it is seen to count.
    waggle.wait_for("the tap", |waggle| waggle.holds_programs());
    speaker.run(marker).unwrap();
    for turn in 0..SHORT + LONG {
        let seconds = if turn % 100 == 50 { "0.2" } else { "0.001" };
        speaker.run(format!("{MIXED}{seconds})")).unwrap();
    }
    for _ in 0..2000 {
        speaker.run("SELECT 1 + 1").unwrap();
    }
    let slow = timed(&mut reader, speaker.connection_id(), MIXED);
    let fast = timed(&mut reader, speaker.connection_id(), "SELECT 1 + 1");
    let lines = waggle.interrupt().lines();
    let of = |text: &str| watched::digests(&lines, text).remove(0).clone();
    let slow = compare(&of("`SLEEP`"), &slow);
    let fast = compare(&of("SELECT ? + ?"), &fast);
    size::keep(&json!({
        "test": "latency", "server": server.version_string(), "before": before,
        "milliseconds": slow, "fast": fast,
    }));
    assert_eq!(slow["calls"], SHORT + LONG, "{version}: {slow:#}");
    assert_eq!(slow["timed"], SHORT + LONG, "{version}: {slow:#}");
    for (name, limit) in [("sum", 0.03), ("p50", 0.02), ("p99", 0.02), ("max", 0.02)] {
        let off = slow[name]["off"].as_f64().unwrap();
        assert!(off.abs() <= limit, "{version}: {name} is off by {off}: {slow:#}");
    }
}

#[test]
fn the_times_of_mysql_8_0_are_the_servers() {
    times_equal_the_servers(Version::Mysql80, "SET @nothing = 1");
}

#[test]
fn the_times_of_mysql_9_are_the_servers() {
    times_equal_the_servers(Version::Mysql9, "SET @nothing = 1");
}

#[test]
fn the_times_of_mariadb_are_the_servers() {
    times_equal_the_servers(Version::Mariadb114, "SET @nothing = 1");
}

#[test]
fn a_session_that_set_its_timestamp_is_timed_all_the_same() {
    times_equal_the_servers(Version::Mysql80, "SET timestamp = 1");
    times_equal_the_servers(Version::Mariadb1011, "SET timestamp = 1");
}
