//! The parts of every statement of a load are its latency.

use std::thread;
use std::time::Duration;

use serde_json::json;
use waggle_model::{Command, Parts, TimeClass, Usage};
use waggle_probes::urgent::Urgent;
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Server, Version, on_each_server};

use super::{shown, text, told, watching};
use crate::capture::{Capture, Seen};
use crate::size;

/// A script of sysbench, and how many run it.
type Load = (&'static str, u32);

const SHORT: [Load; 4] = [
    ("oltp_point_select", 2),
    ("oltp_point_select", 16),
    ("oltp_read_write", 8),
    ("oltp_write_only", 8),
];
const LONG: [Load; 6] = [
    ("oltp_point_select", 2),
    ("oltp_point_select", 16),
    ("oltp_read_write", 2),
    ("oltp_read_write", 16),
    ("oltp_write_only", 2),
    ("oltp_write_only", 16),
];

/// Statements of one of its events.
fn per_event(script: &str) -> u64 {
    match script {
        "oltp_read_write" => 20,
        "oltp_write_only" => 6,
        _ => 1,
    }
}

/// Statements of a load. A server has six of them in a soak: each runs a tenth of what is asked for.
fn statements() -> u64 {
    size::statements().map_or(1_500, |all| all / 10)
}

/// What a load was made of.
#[derive(Default)]
struct Sums {
    parts: Parts,
    usage: Usage,
    statements: u64,
    wrong: Vec<String>,
}

impl Sums {
    fn add(&mut self, seen: Seen) {
        let Some(latency) = seen.latency_ns else { return };
        self.statements += 1;
        match seen.parts {
            Some(parts) if parts.total() == latency => {
                self.parts.merge(&parts);
                self.usage.merge(&seen.usage.unwrap());
            }
            // The login of a thread that was not known before.
            None if seen.command == Command::CONNECT => self.statements -= 1,
            parts => self.wrong.push(format!("{}: {parts:?} of {latency}", text(&seen))),
        }
    }

    /// The share of the whole that a class has.
    fn share(&self, class: TimeClass) -> f64 {
        let whole = self.parts.total().max(1);
        (self.parts.get(class) as f64 / whole as f64 * 1e5).round() / 1e5
    }
}

/// All that sysbench runs until it ends.
fn sums_of(
    server: &Server,
    capture: &mut Capture,
    (script, threads): Load,
    statements: u64,
) -> Sums {
    let length = Length::Events(statements.div_ceil(per_event(script)));
    let load = Sysbench { threads, length, ..Sysbench::new(script) }.start(server).unwrap();
    let waiting = thread::spawn(move || load.wait().unwrap());
    let mut sums = Sums::default();
    {
        // As waggle does, so that no ring is full while others have the processors.
        let _urgent = Urgent::begin().unwrap();
        while !waiting.is_finished() {
            capture.drain();
            std::mem::take(&mut capture.seen).into_iter().for_each(|seen| sums.add(seen));
            thread::sleep(Duration::from_millis(10));
        }
    }
    waiting.join().unwrap();
    capture.at_rest().into_iter().for_each(|seen| sums.add(seen));
    sums
}

fn parts_sum_to_the_latency(version: Version) {
    let server = Server::builder(version)
        .binlog(true)
        .arg("--sync-binlog=1")
        .arg("--innodb-flush-log-at-trx-commit=1")
        .start()
        .unwrap();
    Sysbench::new("oltp_read_write").prepare(&server).unwrap();
    let mut capture = watching(&server);
    capture.attach();
    let mut of_all = Parts::default();
    for load in size::choose(&SHORT[..], &LONG[..]) {
        let overdrawn_before = capture.tap.overdrawn();
        let sums = sums_of(&server, &mut capture, *load, statements());
        let (script, threads) = *load;
        let overdrawn = capture.tap.overdrawn() - overdrawn_before;
        size::keep(&json!({
            "test": "waits_sum", "server": server.version_string(), "load": script,
            "threads": threads, "statements": sums.statements, "wrong": sums.wrong.len(),
            "waits_exceed_wall": overdrawn, "wall_us": sums.parts.total() / 1000,
            "time_us": told(&sums.parts), "share_of_other": sums.share(TimeClass::Other),
            "share_of_latch": sums.share(TimeClass::Latch),
            "queue_before_start_us": sums.usage.queue_before_start_ns / 1000,
            "voluntary_switches": sums.usage.voluntary_switches,
            "involuntary_switches": sums.usage.involuntary_switches,
        }));
        assert!(sums.wrong.is_empty(), "{script}: {:?}", &sums.wrong[..sums.wrong.len().min(5)]);
        assert!(sums.statements >= statements(), "{script}: {}", sums.statements);
        assert_eq!(overdrawn, 0, "{script}, {threads} threads: of {}", sums.statements);
        assert!(sums.parts.get(TimeClass::Cpu) > 0);
        let is_written = script != "oltp_point_select";
        assert!(!is_written || sums.usage.voluntary_switches > 0, "{:?}", sums.usage);
        of_all.merge(&sums.parts);
    }
    let other = of_all.get(TimeClass::Other);
    assert!(other * 100 <= of_all.total() * 3, "{}", shown(&of_all));
    let losses = capture.losses();
    assert_eq!(losses.statements(), 0, "{losses:?}");
}

on_each_server!(parts_sum_to_the_latency);
