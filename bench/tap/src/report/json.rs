//! The result for programs.

use serde_json::{Value, json};
use waggle_bench_frame::interval;

use super::{Outcome, verdict};
use crate::agent::Agent;
use crate::settings::Settings;
use crate::windows::Tried;

/// How it was measured.
pub(super) fn settings(settings: &Settings) -> Value {
    let Settings { texts, waits, seconds, within, blocks, threads, .. } = settings;
    json!({
        "texts": texts,
        "waits": waits,
        "seconds": seconds,
        "within_ns": within,
        "blocks": blocks,
        "threads": threads,
    })
}

/// All that was found.
pub(super) fn found(outcome: &Outcome) -> Value {
    json!({
        "server": { "version": outcome.server, "build": outcome.build },
        "verdicts": verdict::all(outcome),
        "refused": outcome.refused.iter().map(|one| {
            json!({ "arm": one.arm.name(), "why": one.why })
        }).collect::<Vec<_>>(),
        "prices": outcome.prices.iter().map(|one| json!({
            "arm": one.arm.name(),
            "load": one.load.name(),
            "prove": one.json,
        })).collect::<Vec<_>>(),
        "windows": outcome.tried.iter().map(tried).collect::<Vec<_>>(),
        "foreign": outcome.foreign.iter().map(|one| json!({
            "arm": one.arm.name(),
            "work": one.work.name(),
            "without_ns": one.without_ns,
            "added_ns": one.added_ns.as_ref().map(interval),
            "program_ns": one.program_ns,
        })).collect::<Vec<_>>(),
        "agent": outcome.agent.as_ref().map(agent),
    })
}

fn tried(tried: &Tried) -> Value {
    let found = &tried.switched;
    json!({
        "arm": tried.arm.name(),
        "load": tried.load.name(),
        "blocks": found.blocks,
        "base_ns": found.base_ns,
        "added_ns": found.added_ns.as_ref().map(interval),
        "floor_ns": found.floor_ns.as_ref().map(interval),
        "slower_percent": found.slower_percent.as_ref().map(interval),
        "is_unsound": found.is_unsound(),
        "rate_without": tried.rate_without(),
        "captured_share": tried.captured_share(),
        "lost": tried.lost,
    })
}

fn agent(agent: &Agent) -> Value {
    json!({
        "seconds": agent.seconds,
        "rate": agent.rate(),
        "cores_per_10k": agent.cores_per_10k(),
        "rss_bytes": agent.rss_bytes,
        "rss_peak_bytes": agent.rss_peak_bytes,
        "captured": agent.captured,
        "lost": agent.lost,
    })
}
