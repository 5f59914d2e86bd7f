//! The result for people.

use std::fmt::Write;

use waggle_bench_kept::in_words;
use waggle_stats::Estimate;

use super::{Outcome, verdict};
use crate::arms::Arm;
use crate::load::Load;
use crate::meter::Placement;

/// The whole page.
pub(super) fn page(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut text, outcome)
        .and_then(|()| verdicts(&mut text, outcome))
        .and_then(|()| arms(&mut text, outcome))
        .and_then(|()| loads(&mut text, outcome))
        .and_then(|()| foreign(&mut text, outcome))
        .and_then(|()| agent(&mut text, outcome))
        .and_then(|()| method(&mut text, outcome));
    text
}

fn interval(estimate: &Estimate, decimals: usize) -> String {
    let Estimate { value, low, high, .. } = estimate;
    format!("{value:+.decimals$} ({low:+.decimals$} to {high:+.decimals$})")
}

fn head(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let machine = &outcome.machine;
    let date = machine["date"].as_str().unwrap_or("unknown");
    writeln!(out, "# The price of the tap on {}, {date}\n", outcome.server)?;
    if verdict::is_void(outcome) {
        writeln!(
            out,
            "**This run is void**: the A/A arm is too noisy to tell what the others cost.\n"
        )?;
    }
    writeln!(
        out,
        "{}; {:.0} s in all; seed {}.\n",
        in_words(machine),
        outcome.seconds,
        outcome.seed
    )
}

fn verdicts(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    writeln!(out, "| limit | measured | verdict |\n|---|---|---|")?;
    for verdict in verdict::all(outcome) {
        writeln!(out, "| {} | {} | {} |", verdict.limit, verdict.measured, verdict.word())?;
    }
    writeln!(out)
}

fn arms(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    writeln!(
        out,
        "## All loads together\n\n| arm | added server CPU per statement, µs | mean of the blocks \
         | trimmed | bootstrap | p | QPS, % | in the kernel, ns | reader, core per 10k/s | captured | lost | pairs |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for arm in Arm::ALL {
        if let Some((_, why)) = outcome.refused.iter().find(|(refused, _)| *refused == arm) {
            writeln!(out, "| {arm} | refused: {} | | | | | | | | | | |", why.replace('|', "/"))?;
        }
        let Some(price) = outcome.price(arm, None) else { continue };
        let bootstrap = price
            .bootstrap_us
            .map_or("".to_owned(), |(low, high)| format!("{low:+.2} to {high:+.2}"));
        let run_time =
            outcome.run_time(arm).map_or("".to_owned(), |(mean, _)| format!("{mean:.0}"));
        let is_nothing = arm == Arm::Nothing;
        let only_arm = |text: String| if is_nothing { String::new() } else { text };
        writeln!(
            out,
            "| {arm} | {} | {} | {} | {bootstrap} | {:.4} | {} | {run_time} | {} | {} | {} | {} + {} \
             void |",
            interval(&price.added_us, 2),
            interval(&price.block_mean_us, 2),
            interval(&price.trimmed_us, 2),
            price.p,
            interval(&price.rate_percent, 1),
            only_arm(format!("{:.4}", price.agent_cores_per_10k)),
            only_arm(format!("{:.2} %", 100.0 * price.captured_share)),
            only_arm(price.lost.to_string()),
            2 * price.added_us.count,
            2 * price.void,
        )?;
    }
    writeln!(out)
}

fn loads(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    writeln!(
        out,
        "## By load\n\n| load | arm | server CPU without, µs | added, µs | trimmed | \
         statements/s without | QPS, % | in the kernel, ns (runs per statement) |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for load in Load::ALL {
        for arm in Arm::ALL {
            let Some(price) = outcome.price(arm, Some(load)) else { continue };
            let run_time = outcome.run_times.iter().find(|one| one.arm == arm && one.load == load);
            let run_time = run_time.map_or(String::new(), |one| {
                let runs = one.runs as f64 / one.statements.max(1) as f64;
                format!("{:.0} ({runs:.2})", one.ns_per_statement())
            });
            writeln!(
                out,
                "| {load} | {arm} | {:.2} | {} | {} | {:.0} | {} | {run_time} |",
                price.without_us,
                interval(&price.added_us, 2),
                interval(&price.trimmed_us, 2),
                price.rate_without,
                interval(&price.rate_percent, 1),
            )?;
        }
    }
    writeln!(out)
}

fn foreign(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    writeln!(
        out,
        "## Sends of processes that are not watched\n\nOne byte over a socket pair, sent and \
         received; a breakpoint costs them nothing.\n\n| arm | send and receive without, ns | \
         added, ns | in the kernel per send, ns |\n|---|---|---|---|"
    )?;
    for one in &outcome.foreign {
        let added = one.added_ns.map_or("".to_owned(), |added| interval(&added, 0));
        writeln!(out, "| {} | {:.0} | {added} | {:.0} |", one.arm, one.without_ns, one.program_ns)?;
    }
    writeln!(out)
}

fn agent(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let Some(agent) = &outcome.agent else { return Ok(()) };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    writeln!(
        out,
        "## The agent\n\n`waggle watch --json` for {:.0} s under {}: {:.0} statements/s, {:.4} \
         core per 10,000 of them, {:.1} MiB resident ({:.1} at most), {} captured in its whole \
         life, {} lost.\n",
        agent.seconds,
        Load::DENSEST,
        agent.rate(),
        agent.cores_per_10k(),
        mib(agent.rss_bytes),
        mib(agent.rss_peak_bytes),
        agent.captured,
        agent.lost
    )
}

fn method(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let settings = &outcome.settings;
    let placement = match settings.placement {
        Placement::Split => "server alone on processor 0, load and reader on the others",
        Placement::Free => "threads wherever the kernel puts them",
    };
    writeln!(
        out,
        "## How it was measured\n\nOne live server, build {}; {} threads of sysbench over the unix \
         socket; {placement}. A block is four windows of {} ms, \
         `off on on off` or `on off off on` by chance: two pairs, in which an even drift cancels; \
         after each switch {} ms do not count. The blocks of all arms are interleaved in random \
         rounds, load after load. Server CPU is the CPU clock of its process (`sum_exec_runtime` \
         of all its threads, nanoseconds), statements are its own `Questions` (by COM_STATISTICS, \
         which is not counted itself), the same for every arm. A block with a window in which the \
         hypervisor took more than 5 % of a processor beyond one tick of its counter is void and \
         repeated. What is added is all CPU over all statements with the arm less the same \
         without it, with the jackknife over the blocks; beside it the differences within the \
         blocks: their mean (Student's t), a mean that leaves out 10 % on each side, the BCa \
         bootstrap, and p by flipping signs. Intervals are 95 %; each load has the same weight. Time in the kernel is from the kernel's own statistics in \
         windows of their own (they cost about 0.1 µs per run, which is included), with the sends \
         of the load itself, since it runs on the same host. The reader digests and counts every \
         statement as `waggle watch` does. The uprobe pair writes latency, command and up to 512 \
         bytes of text, with no wake-ups, and no field more. Raw: `windows.csv`, `summary.json`.",
        outcome.build, settings.threads, settings.window_ms, settings.settle_ms
    )
}
