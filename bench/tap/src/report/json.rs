//! The result for programs.

use serde_json::{Value, json};
use waggle_bench_frame::interval;

use super::{Outcome, verdict};
use crate::estimate::{Price, TRIM};
use crate::settings::Settings;

fn price(price: &Price) -> Value {
    json!({
        "arm": price.arm.name(),
        "load": price.load.map(|load| load.name()),
        "pairs": 2 * price.added_us.count,
        "blocks": price.added_us.count,
        "void_blocks": price.void,
        "server_us_without": price.without_us,
        "added_us": interval(&price.added_us),
        "added_us_block_mean": interval(&price.block_mean_us),
        "added_us_trimmed": interval(&price.trimmed_us),
        "added_us_bootstrap": price.bootstrap_us,
        "p_sign_flip": price.p,
        "lag_one": price.lag_one,
        "rate_percent": interval(&price.rate_percent),
        "rate_without": price.rate_without,
        "agent_cores_per_10k": price.agent_cores_per_10k,
        "captured_share": price.captured_share,
        "lost": price.lost,
    })
}

/// How it was measured.
pub(super) fn settings(settings: &Settings) -> Value {
    json!({
        "pairs": settings.pairs,
        "window_ms": settings.window_ms,
        "settle_ms": settings.settle_ms,
        "threads": settings.threads,
        "placement": settings.placement.name(),
        "trim": TRIM,
    })
}

/// Everything but the windows.
pub(super) fn found(outcome: &Outcome) -> Value {
    json!({
        "void": verdict::is_void(outcome),
        "server": { "version": outcome.server, "build": outcome.build },
        "verdicts": verdict::all(outcome),
        "prices": outcome.prices.iter().map(price).collect::<Vec<_>>(),
        "refused": outcome.refused.iter().map(|(arm, why)| {
            json!({ "arm": arm.name(), "why": why })
        }).collect::<Vec<_>>(),
        "run_times": outcome.run_times.iter().map(|one| json!({
            "arm": one.arm.name(),
            "load": one.load.name(),
            "ns_per_statement": one.ns_per_statement(),
            "statements": one.statements,
            "runs": one.runs,
            "time_ns": one.time_ns,
        })).collect::<Vec<_>>(),
        "foreign": outcome.foreign.iter().map(|one| json!({
            "arm": one.arm.name(),
            "work": one.work.name(),
            "without_ns": one.without_ns,
            "added_ns": one.added_ns.as_ref().map(interval),
            "program_ns": one.program_ns,
        })).collect::<Vec<_>>(),
        "agent": outcome.agent.as_ref().map(|agent| json!({
            "seconds": agent.seconds,
            "rate": agent.rate(),
            "cores_per_10k": agent.cores_per_10k(),
            "rss_bytes": agent.rss_bytes,
            "rss_peak_bytes": agent.rss_peak_bytes,
            "captured": agent.captured,
            "lost": agent.lost,
        })),
    })
}
