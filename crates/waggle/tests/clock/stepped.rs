//! The wall clock, in which MySQL notes when a statement began, is stepped while statements run.
//!
//! One test at a time, because the clock is the host's: MySQL 8.0 aborts when it goes back while the
//! server starts (InnoDB asserts that no time is negative, `log0write.cc`).

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde_json::Value;
use waggle_testkit::{Server, Version, on_each_server};

use crate::watching::Waggle;
use crate::{alone, load, watched};

const NANOS: i64 = 1_000_000_000;
/// How long a lock is held.
const HELD: Duration = Duration::from_millis(600);

/// Steps the wall clock; dropping it puts the clock back to where it would be by now.
struct Stepped {
    begin: Instant,
    wall_ns: i64,
}

impl Stepped {
    fn begin() -> Stepped {
        let now = clock_gettime(ClockId::Realtime);
        Stepped { begin: Instant::now(), wall_ns: now.tv_sec * NANOS + now.tv_nsec }
    }

    /// Sets the clock `seconds` ahead of the truth.
    fn set(&self, seconds: i64) -> rustix::io::Result<()> {
        let passed = i64::try_from(self.begin.elapsed().as_nanos()).unwrap();
        let now = self.wall_ns + passed + seconds * NANOS;
        let time = Timespec { tv_sec: now / NANOS, tv_nsec: now % NANOS };
        clock_settime(ClockId::Realtime, time)
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        self.set(0).unwrap();
    }
}

/// Two statements that each wait for a lock as long as we hold it, since SLEEP itself follows the
/// wall clock on some servers: one while the clock is stepped, and one behind the step.
fn step_under_a_waiting_statement(server: &Server, stepped: &Stepped, ahead: i64) {
    for is_first in [true, false] {
        let (mut holder, mut waiting) = (load::session(server), load::session(server));
        holder.run("BEGIN").unwrap();
        holder.run("SELECT v FROM held WHERE id = 1 FOR UPDATE").unwrap();
        thread::scope(|scope| {
            let begin = Instant::now();
            let waited = scope.spawn(move || waiting.run("UPDATE held SET v = v + 1").unwrap());
            thread::sleep(HELD / 2);
            if is_first {
                stepped.set(ahead).unwrap();
            }
            thread::sleep(HELD.saturating_sub(begin.elapsed()));
            holder.run("COMMIT").unwrap();
            waited.join().unwrap();
        });
    }
}

fn a_step_changes_no_latency(version: Version) {
    let _alone = alone();
    let server = Server::start(version).unwrap();
    let mut client = load::session(&server);
    client.run("CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
    client.run("INSERT INTO held VALUES (1, 0)").unwrap();
    let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
    let begin = Instant::now();
    let stepped = Stepped::begin();
    for ahead in [10, 0, -10, 0] {
        step_under_a_waiting_statement(&server, &stepped, ahead);
    }
    drop(stepped);
    let all = begin.elapsed().as_secs_f64();
    waggle.wait_for_lines(2);
    let lines = waggle.interrupt().lines();
    assert_eq!(watched::calls(&lines, "UPDATE `held`"), 8, "{version}");
    let mut seen = Vec::new();
    for digest in watched::digests(&lines, "UPDATE `held`") {
        if digest["calls"] == 0 {
            continue;
        }
        for time in ["p50", "max"] {
            let us = digest["latency_us"][time].as_f64();
            seen.push(us.unwrap_or_else(|| panic!("{version}: {time} is unknown: {digest:#}")));
        }
    }
    // Each was held about so long, and all together no longer than the test ran: a step that gets
    // into a time adds ten seconds to it, or leaves nothing of it.
    let shortest = HELD.as_secs_f64() * 0.25e6;
    assert!(seen.iter().all(|us| (shortest..all * 1e6).contains(us)), "{version}: {seen:?}");
    let sum: f64 = watched::digests(&lines, "UPDATE `held`")
        .iter()
        .filter_map(|digest| digest["latency_us"]["sum"].as_f64())
        .sum();
    assert!(sum < all * 1e6, "{version}: {sum} µs in {all} s");
    assert_waited(&lines, sum);
    for line in &lines {
        let sessions = line["sessions"].as_array().unwrap().iter();
        let oldest = sessions.filter_map(|session| session["age_s"].as_f64()).fold(0.0, f64::max);
        assert!(oldest < all, "{version}: {line:#}");
        assert!(line["active_sessions"].as_f64().unwrap() < 3.0, "{version}: {line:#}");
    }
}

/// The time of the statements went where it went: what a step adds to it would be processor time, which is what no
/// wait took.
fn assert_waited(lines: &[Value], latency_us: f64) {
    let mut time_us = BTreeMap::<String, f64>::new();
    for digest in watched::digests(lines, "UPDATE `held`") {
        for (class, us) in digest["time_us"].as_object().into_iter().flatten() {
            *time_us.entry(class.clone()).or_default() += us.as_f64().unwrap();
        }
    }
    let whole: f64 = time_us.values().sum();
    assert!((whole - latency_us).abs() < 100.0, "{time_us:?} of {latency_us} µs");
    assert!(time_us["row_lock"] > 0.5 * latency_us, "{time_us:?}");
    assert!(time_us["cpu"] < 0.1 * latency_us, "{time_us:?}");
}

on_each_server!(
    a_step_changes_no_latency: mysql_5_7 Mysql57, mysql_9 Mysql9, mariadb_10_11 Mariadb1011
);
