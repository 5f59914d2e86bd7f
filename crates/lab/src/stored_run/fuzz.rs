//! Files of a run with other values and other bytes, through their readers, the analysis, and every form of the report.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, run};

use super::*;
use crate::analysis::compare_runs;
use crate::run_dir::{PACKED_WINDOWS, RUN, WINDOWS};

const SUITE: &str = include_str!("suite.toml");
const BLOCKS: u32 = 6;
/// Bytes of a file at most.
const LONGEST: usize = 256 * 1024;

const PIECES: &[&[u8]] = &[
    b"\n",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"]",
    b"null",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"-1",
    b"0",
    b"1e400",
    b"18446744073709551616",
    b"threads = 4294967295\n",
    b"[[scenarios]]\n",
    b",",
    b":",
    b"\xff",
];
const NUMBERS: &[f64] = &[0.0, -0.0, -1.0, 0.5, 5e-324, 1e-300, 1e17, 1e300, f64::MAX, f64::MIN];
const TEXTS: &[&str] = &[
    "",
    "on",
    "off",
    "reads",
    "baseline again",
    "alone on a server",
    "closed",
    "\u{1b}[2J<script>|\"'\r\n",
    "a name without end ",
];

const TIMES: &[&str] = &[
    "2026-11-22T10:00:00Z",
    "9999-12-30T22:00:00Z",
    "-009999-01-02T01:59:59Z",
    "1970-01-01T00:00:00Z",
];

struct Runs {
    directory: TempDir,
    run: Vec<u8>,
    windows: Vec<u8>,
    is_packed: bool,
}

impl Runs {
    fn new() -> Runs {
        // In memory: a disk would take most of the time.
        let directory = TempDir::new_in("/dev/shm").unwrap();
        Runs { directory, run: Vec::new(), windows: Vec::new(), is_packed: false }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn cells() -> [Value; 2] {
    let open = json!({"open": {"share": 0.3}});
    [json!("closed"), open].map(|load| json!({"workload": "reads", "threads": 8, "load": load}))
}

fn asked(suite: &str) -> Value {
    let host = json!({
        "name": "one", "system": null, "kernel": "6.1.0", "cpu_model": "a processor", "processors": 2,
        "memory_bytes": 1024, "hypervisor": null, "pinned": {"server": [0], "load": [1]},
    });
    let info = json!({
        "run": {
            "command": "waggle lab run mine", "waggle_version": "0.1.0", "begin": "2026-11-22T10:00:00Z",
            "end": null, "seed": 7, "scale": "tiny", "budget_s": 60.0, "only": ["reads"], "blocks": BLOCKS,
            "windows_planned": 36, "window_s": 0.4, "settle_s": 0.3, "steal_limit": 0.05, "resumed": 1,
        },
        "host": host,
        "taken_up": [{"part": 1, "host": host, "waggle_version": "0.2.0"}],
        "server": {
            "version": "9.3.0", "program": "mysqld", "options": ["--a=1"], "is_foreign": false,
            "data_bytes": 1000, "buffer_pool_bytes": 2000,
        },
        "load": {"sysbench_version": "1.0.20", "tables": 10, "rows_per_table": 10_000},
        "not_run": [{"cell": cells()[1], "scenario": "on", "why": "budget"}],
        "caveats": ["a sentence"],
    });
    let length = |ms: u64| json!({"secs": 0, "nanos": ms * 1_000_000});
    json!({
        "suite": "mine", "suite_text": suite, "scenarios": ["off", "on"], "profiles": {"basic": "question = 1"},
        "scale": "tiny",
        "lengths": {"window": length(400), "settle": length(300), "warm_up": length(900)},
        "cells": cells(), "blocks": BLOCKS, "seed": 7, "server": "mysql-9", "settings": ["--a=1"],
        "pinned": [[0], [1]], "facts": info,
    })
}

fn window(number: usize, block: u32, cell: &Value, arm: &str, random: &mut Random) -> Value {
    let mut around = |value: f64| value * (1.0 + random.below(100) as f64 / 1000.0);
    let time = around(2e6);
    json!({
        "number": number, "block": block, "cell": cell, "arm": arm, "server_start": block, "part": block / 4,
        "rate": 100.0, "stolen": [0.1], "unsteady": block == 1,
        "begin": "2026-11-22T10:00:00Z", "end": "2026-11-22T10:00:01Z",
        "measured": {
            "seconds": around(0.4), "transactions": 100, "statements": around(2000.0) as u64, "retries": 0,
            "latency": {
                "mean_ns": time, "p50_ns": time, "p95_ns": 2.0 * time, "p99_ns": 3.0 * time,
                "max_ns": 4.0 * time, "shape": [[1_000_000, 3], [2_000_000, 90], [3_000_000, 7]],
            },
            "server_cpu_ns": around(4e8) as u64, "load_cpu_ns": 100_000_000, "server_share": 0.9,
            "host_share": 0.95, "steal_share": 0.0, "context_switches": 500, "read_bytes": 0,
            "written_bytes": 1000, "rss_bytes": 1_000_000, "performance_schema_bytes": 1000,
            "behind_s": [0.0, 0.1],
        },
        "void": null,
    })
}

/// Puts another value of the same kind in the place of a value; sometimes one of another kind, one more, or none.
fn change(value: &mut Value, random: &mut Random) {
    match value {
        _ if random.below(60) == 0 => *value = any(random),
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(random.below(map.len())).cloned().unwrap_or_default();
            match random.below(40) {
                0 => drop(map.remove(&key)),
                _ => change(&mut map[&key], random),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(10) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change(&mut items[at], random),
            }
        }
        Value::Number(number) if number.is_f64() => *value = json!(random.pick(NUMBERS)),
        // Most are of four bytes.
        Value::Number(_) => {
            let bits = *random.pick(&[0, 32, 32, 32, 32, 32, 48, 60]);
            *value = json!(edge(random) >> bits);
        }
        Value::String(it) if it.ends_with('Z') => *value = json!(random.pick(TIMES)),
        Value::String(_) => *value = text(random),
        Value::Bool(is_so) => *is_so = !*is_so,
        _ => *value = any(random),
    }
}

fn text(random: &mut Random) -> Value {
    let times = if random.below(10) == 0 { 100 } else { 1 };
    json!(random.pick(TEXTS).repeat(times))
}

fn any(random: &mut Random) -> Value {
    match random.below(7) {
        0 => Value::Null,
        1 => json!(random.coin()),
        2 => json!([]),
        3 => json!({}),
        4 => json!(edge(random)),
        5 => json!(random.pick(NUMBERS)),
        _ => text(random),
    }
}

impl Fuzzer for Runs {
    const SUBJECT: &'static str = "run";
    /// Each that is read takes 40 ms.
    const INPUTS: u64 = 150;
    /// The files, the windows, and every form of the report.
    const MEMORY_MAX: u64 = 64 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        let mut suite = SUITE.as_bytes().to_vec();
        if random.below(12) == 0 {
            mutate(&mut suite, random, PIECES, &[], LONGEST);
        }
        let mut asked = asked(&String::from_utf8_lossy(&suite));
        let arms = ["off", "on", Window::AGAIN];
        let mut windows = Vec::new();
        for block in 0..BLOCKS {
            for cell in cells() {
                for arm in arms {
                    windows.push(window(windows.len(), block, &cell, arm, random));
                }
            }
        }
        for _ in 0..random.below(3) {
            change(&mut asked, random);
        }
        for _ in 0..[0, 1, 3, 12][random.below(4)] {
            let at = random.below(windows.len());
            change(&mut windows[at], random);
        }
        self.run = asked.to_string().into_bytes();
        self.windows.clear();
        for window in windows {
            let _ = writeln!(self.windows, "{window}");
        }
        for file in [&mut self.run, &mut self.windows] {
            if random.below(12) == 0 {
                mutate(file, random, PIECES, &[], LONGEST);
            }
        }
        self.is_packed = random.below(8) == 0;
        if self.is_packed {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(&self.windows).unwrap();
            self.windows = packer.finish().unwrap();
            if random.coin() {
                mutate(&mut self.windows, random, &[], &[], LONGEST);
            }
        }
        self.run.len() + self.windows.len()
    }

    fn check(&mut self, counts: &mut Counts) {
        let (file, other) = match self.is_packed {
            true => (PACKED_WINDOWS, WINDOWS),
            false => (WINDOWS, PACKED_WINDOWS),
        };
        // There may be none.
        let _ = fs::remove_file(self.file(other));
        fs::write(self.file(file), &self.windows).unwrap();
        fs::write(self.file(RUN), &self.run).unwrap();
        let stored = match StoredRun::read(self.directory.path()) {
            Ok(stored) => stored,
            Err(error) => {
                counts.met("refused");
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        counts.met("read");
        let report = stored.report();
        let forms = [report.html(), report.markdown(), report.csv(), report.windows_csv()];
        assert!(forms.iter().all(|form| !form.is_empty()));
        assert!(serde_json::from_str::<Value>(&report.json()).is_ok());
        assert!(!report.summary().is_empty());
        report.effects();
        report.charts();
        let differences =
            compare_runs([&stored.suite, &stored.suite], &stored.windows, &stored.windows);
        counts.add_to("compared", u64::from(!differences.found.is_empty()));
    }
}

#[test]
fn no_file_of_a_run_makes_anything_panic_hang_or_grow() {
    let Some((inputs, counts)) = run(Runs::new) else { return };
    for (what, at_least) in [("read", 4), ("refused", 8), ("compared", 8)] {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}
