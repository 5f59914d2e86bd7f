//! The wall clock, in which MySQL notes when a statement began, is stepped while statements run.
//!
//! Apart from the other tests, because the clock is the host's: MySQL 8.0 aborts when it goes back
//! while the server starts (InnoDB asserts that no time is negative, `log0write.cc`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy sees tests in #[test] functions only"
)]
#![allow(dead_code, reason = "the other tests use all of what they share")]

#[path = "it/load.rs"]
mod load;
#[path = "it/watched.rs"]
mod watched;
#[path = "it/watching.rs"]
mod watching;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::time::ClockId;
use rustix::time::Timespec;
use rustix::time::clock_gettime;
use rustix::time::clock_settime;
use waggle_testkit::Server;
use waggle_testkit::Version;

use watching::Waggle;

/// Held by the test that sets the clock.
static CLOCK: Mutex<()> = Mutex::new(());
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
    let _alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
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
    for line in &lines {
        let sessions = line["sessions"].as_array().unwrap().iter();
        let oldest = sessions.filter_map(|session| session["age_s"].as_f64()).fold(0.0, f64::max);
        assert!(oldest < all, "{version}: {line:#}");
        assert!(line["active_sessions"].as_f64().unwrap() < 3.0, "{version}: {line:#}");
    }
}

#[test]
fn a_step_of_the_clock_changes_no_latency_of_mysql_5_7() {
    a_step_changes_no_latency(Version::Mysql57);
}

#[test]
fn a_step_of_the_clock_changes_no_latency_of_mysql_9() {
    a_step_changes_no_latency(Version::Mysql9);
}

#[test]
fn a_step_of_the_clock_changes_no_latency_of_mariadb() {
    a_step_changes_no_latency(Version::Mariadb1011);
}
