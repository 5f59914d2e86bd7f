//! What is kept of a run.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use serde_json::Value;
use serde_json::json;
use waggle_bench_kept::in_words;
use waggle_bench_kept::new_directory;
use waggle_stats::Estimate;

use crate::Settings;
use crate::rounds::CONFIDENCE;
use crate::rounds::Measured;
use crate::rounds::TOOL;
use crate::rounds::TRIM;
use crate::tool::Tool;

/// What the digest of MySQL 9 has to reach under the first load, millions of bytes per second.
const GOAL: f64 = 300.0;

/// Writes the result into a new directory; the page for people.
pub(crate) fn write(
    settings: &Settings,
    machine: &Value,
    results: &[Measured<'_>],
    allocations: &[Value],
) -> Result<PathBuf> {
    let directory = new_directory(&settings.output, &settings.name, machine)?;
    let version = Tool::version()?;
    let put = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string()).map(|()| path)
    };
    let all: Vec<Value> = results.iter().map(|one| value(one, allocations)).collect();
    let summary = json!({
        "machine": machine,
        "tool": version,
        "settings": {
            "rounds": settings.rounds,
            "kib": settings.kib,
            "seed": settings.seed,
            "quick": settings.quick,
            "confidence": CONFIDENCE,
            "trim": TRIM,
        },
        "goal_mb_per_s": GOAL,
        "results": all,
    });
    put("summary.json", format!("{summary:#}\n"))?;
    put("README.md", page(settings, machine, results, allocations, &version))
}

fn interval(estimate: &Estimate) -> Value {
    json!({
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "count": estimate.count,
    })
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

fn page(
    settings: &Settings,
    machine: &Value,
    results: &[Measured<'_>],
    allocations: &[Value],
    version: &str,
) -> String {
    let mut page = format!(
        "# Digests and fingerprints, {}\n\n{}; {version}; {} rounds; seed {}.\n\n",
        machine["date"].as_str().unwrap_or("unknown"),
        in_words(machine),
        settings.rounds,
        settings.seed,
    );
    if let Some(first) = results.first() {
        let kept = if first.rate.low >= GOAL { "kept" } else { "NOT KEPT" };
        page += &format!(
            "| limit | measured | verdict |\n|---|---|---|\n| {} under {} ≥ {GOAL} MB/s on one \
             processor, lower end of the interval | {} MB/s | {kept} |\n\n",
            first.times.subject,
            first.times.load.name(),
            span(&first.rate, 1),
        );
    }
    page += "| load | subject | MB/s | trimmed | ns per statement | time, digest = 1 | allocations \
             per statement | refused |\n|---|---|---|---|---|---|---|---|\n";
    for measured in results {
        let allocated = allocated(measured, allocations);
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} of {} |\n",
            measured.times.load.name(),
            measured.times.subject,
            span(&measured.rate, 1),
            span(&measured.trimmed, 1),
            span(&measured.ns_per_statement, 0),
            span(&measured.slower, 2),
            allocated.map_or_else(|| "not counted".to_owned(), |each| format!("{each:.2}")),
            measured.times.refused,
            measured.times.statements,
        );
    }
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

/// A value with its interval.
fn span(estimate: &Estimate, digits: usize) -> String {
    let Estimate { value, low, high, .. } = estimate;
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}
