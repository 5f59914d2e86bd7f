//! What runs now is seen while it runs, when nothing ends.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use waggle_testkit::client::Command;
use waggle_testkit::{Account, Client, Server, Transport, Version, on_each_server, wait_until};

use crate::watching::Waggle;
use crate::{load, size, watched};

const WAITING: usize = 50;

fn running(line: &Value) -> usize {
    line["running"].as_u64().unwrap() as usize
}

fn active(line: &Value) -> f64 {
    line["active_sessions"].as_f64().unwrap()
}

/// What the holder is said to have done, also after it has committed.
fn has_held(told: &Value, version: Version) {
    assert_eq!(
        (&told["user"], &told["idle"]),
        (&json!("root"), &json!(true)),
        "{version}: {told:#}"
    );
    assert_eq!(told["statement"], "SELECT ?", "{version}: {told:#}");
    let first_write = "UPDATE pile SET v = ? WHERE id = ?";
    assert_eq!(told["first_write"], first_write, "{version}: {told:#}");
}

/// Each wait is told by itself once its statement has ended.
fn each_wait_is_told(lines: &[Value], held_by: &Value, version: Version) {
    let waits: Vec<&Value> =
        lines.iter().flat_map(|line| line["lock_waits"].as_array().unwrap()).collect();
    let of: HashSet<u64> =
        waits.iter().map(|wait| wait["connection_id"].as_u64().unwrap()).collect();
    assert_eq!(of.len(), WAITING, "{version}: {waits:#?}");
    for wait in waits {
        let length_us = wait["length_us"].as_u64().unwrap();
        assert!(wait["waits_for"] == "row_lock" && length_us > 1_000_000, "{version}: {wait:#}");
        let by = wait["blocked_by"].as_array().unwrap();
        assert!(!by.is_empty() && wait["digest_text"].is_string(), "{version}: {wait:#}");
        // The last look may have met the holder at its commit.
        if wait["blocked_by"] == *held_by && wait["blockers"][0]["idle"] == true {
            has_held(&wait["blockers"][0], version);
        }
    }
}

fn fifty_sessions_wait_for_one_row(version: Version) {
    let server = Server::start(version).unwrap();
    let mut holder = load::session(&server);
    holder.run("CREATE TABLE pile (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
    holder.run("INSERT INTO pile VALUES (1, 0)").unwrap();
    let mut waiting: Vec<Client> = (0..WAITING).map(|_| load::session(&server)).collect();
    let mut waggle = Waggle::watch(&server, &["--interval", "1s", "--limit", "100"]);
    holder.run("BEGIN").unwrap();
    holder.run("UPDATE pile SET v = 7 WHERE id = 1").unwrap();
    holder.run("SELECT 'ready'").unwrap();

    for client in &mut waiting {
        client.send(Command::Query, b"UPDATE pile SET v = v + 1 WHERE id = 1").unwrap();
    }
    let mut root = load::session(&server);
    wait_until("all wait", || {
        let waits = root.run("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").unwrap();
        waits[0].text(0, 1) == Some(WAITING.to_string())
    });
    root.quit().unwrap();
    let before = waggle.lines().len();
    // The interval in which they began, then whole ones.
    let whole = size::choose(8, 30);
    waggle.wait_for_lines(1 + whole);
    let after = waggle.lines().len();
    holder.run("COMMIT").unwrap();
    for client in &mut waiting {
        client.read_reply().unwrap();
    }
    waggle.wait_for_lines(3);
    let lines = waggle.interrupt().lines();
    let piled = &lines[before + 1..after];

    // By the end of the second interval, so within two seconds, and in every one from there on.
    let (mut age, mut load) = (0.0, Vec::new());
    for line in piled {
        assert_eq!(running(line), WAITING, "{version}: {line:#}");
        let sessions = line["sessions"].as_array().unwrap();
        assert!(sessions.iter().all(|session| {
            session["text"] == "UPDATE pile SET v = v + ? WHERE id = ?" && session["user"] == "root"
        }));
        let ages = sessions.iter().map(|session| session["age_s"].as_f64().unwrap());
        let youngest = ages.reduce(f64::min).unwrap();
        assert!(youngest > age, "{version}: {youngest} s old after {age} s");
        age = youngest;
        load.push(active(line));
    }
    let held_by = json!([holder.connection_id()]);
    each_wait_is_told(&lines, &held_by, version);

    // The last look has surely been answered: all wait for the holder.
    for session in piled.last().unwrap()["sessions"].as_array().unwrap() {
        assert_eq!(session["waits_for"], "row_lock", "{version}: {session:#}");
        assert_eq!(session["blocked_by"], held_by, "{version}: {session:#}");
        has_held(&session["blockers"][0], version);
    }
    for active in &load {
        assert!((active - WAITING as f64).abs() < 1.0, "{version}: {load:?}");
    }
    // Their time was booked where it passed: not once more where they end.
    let last: Vec<f64> = lines[after..].iter().map(active).collect();
    assert!(last.iter().all(|active| *active < WAITING as f64 + 1.0), "{version}: {last:?}");
    assert_eq!(last.last().copied().map(f64::round), Some(0.0), "{version}: {last:?}");
    let ended = lines.iter().skip(after.saturating_sub(1));
    let ended: Vec<Value> = ended.cloned().collect();
    assert_eq!(watched::calls(&ended, "`pile`") as usize, WAITING, "{version}");
    let spread: f64 = lines
        .iter()
        .zip(lines.iter().map(active))
        .map(|(line, active)| active * line["interval_s"].as_f64().unwrap())
        .sum();
    size::keep(&json!({
        "test": "pile_up", "server": server.version_string(), "waiting": WAITING,
        "active_sessions": load, "active_sessions_at_end": last, "session_seconds": spread,
    }));
}

on_each_server!(fifty_sessions_wait_for_one_row: mysql_8_0 Mysql80, mariadb_11_4 Mariadb114);

#[test]
fn a_thousand_idle_sessions_are_no_load_and_their_price_is_shown() {
    let server = Server::builder(Version::Mysql57).max_connections(1100).start().unwrap();
    let connect = |_| Client::connect(&server, Transport::Unix, Account::APP).unwrap();
    let idle: Vec<Client> = (0..1000).map(connect).collect();
    let mut waggle = Waggle::watch(&server, &["--interval", "1s"]);
    thread::sleep(Duration::from_secs(size::choose(6, 30)));
    waggle.wait_for_lines(1);
    let lines = waggle.interrupt().lines();
    let quiet = &lines[1..];
    assert!(quiet.iter().all(|line| running(line) == 0 && active(line) < 0.01), "{quiet:#?}");
    // The interruption cuts the last interval short, and a look costs the same in a short one.
    let sum = |of: &dyn Fn(&Value) -> f64| quiet.iter().map(of).sum::<f64>();
    let length = |line: &Value| line["interval_s"].as_f64().unwrap();
    let cores = |line: &Value| line["cost"]["agent_cores"].as_f64().unwrap();
    let mean = sum(&|line| cores(line) * length(line)) / sum(&length);
    size::keep(&json!({
        "test": "idle_sessions", "server": server.version_string(), "sessions": idle.len(),
        "agent_cores": mean, "rss_bytes": watched::largest(quiet, "/cost/rss_bytes"),
    }));
}
