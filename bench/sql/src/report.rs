//! What is kept of a run.

use anyhow::Result;
use serde_json::{Value, json};
use waggle_bench_frame::{CONFIDENCE, Limit, Run, interval, limits, span, table};

use crate::Settings;
use crate::rounds::{Measured, TOOL, TRIM};
use crate::tool::Tool;

/// What the digest of MySQL 9 has to reach under the first load, millions of bytes per second.
const GOAL: f64 = 300.0;

/// Keeps what was found.
pub(crate) fn keep(
    run: &Run,
    settings: &Settings,
    results: &[Measured<'_>],
    allocations: &[Value],
) -> Result<()> {
    let version = Tool::version()?;
    let all: Vec<Value> = results.iter().map(|one| value(one, allocations)).collect();
    let found = json!({ "tool": version, "goal_mb_per_s": GOAL, "results": all });
    let asked = json!({ "rounds": settings.rounds, "kib": settings.kib, "trim": TRIM });
    let head =
        run.head("Digests and fingerprints", &format!("{version}; {} rounds", settings.rounds));
    run.keep(asked, found, &(head + &page(settings, results, allocations)))
}

/// Allocations per statement; nobody counts those of the tool.
fn allocated(measured: &Measured<'_>, allocations: &[Value]) -> Option<f64> {
    let load = measured.times.load.name();
    let one = allocations
        .iter()
        .find(|one| one["load"] == load && one["subject"] == measured.times.subject)?;
    Some(one["allocations"].as_f64()? / one["statements"].as_f64()?)
}

fn value(measured: &Measured<'_>, allocations: &[Value]) -> Value {
    let times = measured.times;
    json!({
        "load": times.load.name(),
        "subject": times.subject,
        "statements": times.statements,
        "bytes": times.bytes,
        "refused": times.refused,
        "mb_per_s": interval(&measured.rate),
        "mb_per_s_trimmed": interval(&measured.trimmed),
        "ns_per_statement": interval(&measured.ns_per_statement),
        "times_the_digest": interval(&measured.slower),
        "allocations_per_statement": allocated(measured, allocations),
        "seconds": times.seconds,
    })
}

fn page(settings: &Settings, results: &[Measured<'_>], allocations: &[Value]) -> String {
    let limit = results.first().map(|first| Limit {
        name: "digest",
        limit: format!(
            "{} under {} ≥ {GOAL} MB/s on one processor, lower end of the interval",
            first.times.subject,
            first.times.load.name(),
        ),
        measured: Some(format!("{} MB/s", span(&first.rate, 1))),
        kept: Some(first.rate.low >= GOAL),
    });
    let rows = results.iter().map(|measured| {
        let allocated = allocated(measured, allocations);
        format!(
            "{} | {} | {} | {} | {} | {} | {} | {} of {}",
            measured.times.load.name(),
            measured.times.subject,
            span(&measured.rate, 1),
            span(&measured.trimmed, 1),
            span(&measured.ns_per_statement, 0),
            span(&measured.slower, 2),
            allocated.map_or_else(|| "not counted".to_owned(), |each| format!("{each:.2}")),
            measured.times.refused,
            measured.times.statements,
        )
    });
    let head = "load | subject | MB/s | trimmed | ns per statement | time, digest = 1 | allocations \
                per statement | refused";
    let mut page = format!("{}\n{}", limits(&limit), table(head, rows));
    page += &format!(
        "\n## How it was measured\n\n`read write` are the statements of sysbench's `oltp_read_write`, \
         `fill` its inserts of many rows. In each round every subject works once over the same \
         {} KiB of statements, in a random order, after a first round that does not count. Time is \
         the CPU time of its one thread; that of {TOOL}, whose own Perl module runs in a process \
         that stays, is the CPU time of that process. Intervals are {:.0} %, Student's t over the \
         rounds; the trimmed mean leaves out {:.0} % on each side. Allocations were counted in a \
         program of their own, after one round. sqlparser does more than a digest needs: it makes a \
         tree.\n",
        settings.kib,
        100.0 * CONFIDENCE,
        100.0 * TRIM,
    );
    page
}
