//! The result for people.

use waggle_bench_frame::{Run, limits, signed, table};

use super::{Outcome, verdict};
use crate::arms::Arm;
use crate::load::Load;
use crate::meter::Placement;

/// The whole page.
pub(super) fn page(outcome: &Outcome, run: &Run) -> String {
    let mut page = run.head(
        &format!("The price of the tap on {}", outcome.server),
        &format!("build {}", outcome.build),
    );
    if verdict::is_void(outcome) {
        page += "**This run is void**: the A/A arm is too noisy to tell what the others cost.\n\n";
    }
    page += &limits(&verdict::all(outcome));
    page += &arms(outcome);
    page += &loads(outcome);
    page += &foreign(outcome);
    page += &agent(outcome);
    page += &method(outcome);
    page
}

fn arms(outcome: &Outcome) -> String {
    let row = |arm: Arm| {
        if let Some((_, why)) = outcome.refused.iter().find(|(refused, _)| *refused == arm) {
            let why = why.replace('|', "/");
            return Some(format!("{arm} | refused: {why} | | | | | | | | | |"));
        }
        let price = outcome.price(arm, None)?;
        let bootstrap = price
            .bootstrap_us
            .map_or(String::new(), |(low, high)| format!("{low:+.2} to {high:+.2}"));
        let run_time =
            outcome.run_time(arm).map_or(String::new(), |(mean, _)| format!("{mean:.0}"));
        let only_arm = |text: String| if arm == Arm::Nothing { String::new() } else { text };
        Some(format!(
            "{arm} | {} | {} | {} | {bootstrap} | {:.4} | {} | {run_time} | {} | {} | {} | {} + {} void",
            signed(&price.added_us, 2),
            signed(&price.block_mean_us, 2),
            signed(&price.trimmed_us, 2),
            price.p,
            signed(&price.rate_percent, 1),
            only_arm(format!("{:.4}", price.agent_cores_per_10k)),
            only_arm(format!("{:.2} %", 100.0 * price.captured_share)),
            only_arm(price.lost.to_string()),
            2 * price.added_us.count,
            2 * price.void,
        ))
    };
    let head = "arm | added server CPU per statement, µs | mean of the blocks | trimmed | bootstrap | p | QPS, % | \
                in the kernel, ns | reader, core per 10k/s | captured | lost | pairs";
    format!("\n## All loads together\n\n{}", table(head, Arm::ALL.into_iter().filter_map(row)))
}

fn loads(outcome: &Outcome) -> String {
    let row = |(load, arm): (Load, Arm)| {
        let price = outcome.price(arm, Some(load))?;
        let run_time = outcome.run_times.iter().find(|one| one.arm == arm && one.load == load);
        let run_time = run_time.map_or(String::new(), |one| {
            format!("{:.0} ({:.2})", one.ns_per_statement(), one.runs_per_statement())
        });
        Some(format!(
            "{load} | {arm} | {:.2} | {} | {} | {:.0} | {} | {run_time}",
            price.without_us,
            signed(&price.added_us, 2),
            signed(&price.trimmed_us, 2),
            price.rate_without,
            signed(&price.rate_percent, 1),
        ))
    };
    let each = Load::ALL.into_iter().flat_map(|load| Arm::ALL.map(|arm| (load, arm)));
    let head = "load | arm | server CPU without, µs | added, µs | trimmed | statements/s without | QPS, % | \
                in the kernel, ns (runs per statement)";
    format!("\n## By load\n\n{}", table(head, each.filter_map(row)))
}

fn foreign(outcome: &Outcome) -> String {
    let rows = outcome.foreign.iter().map(|one| {
        let added = one.added_ns.map_or(String::new(), |added| signed(&added, 0));
        let (arm, work, without) = (one.arm, one.work.name(), one.without_ns);
        format!("{arm} | {work} | {without:.0} | {added} | {:.0}", one.program_ns)
    });
    let head = "arm | what it does | CPU without, ns | added, ns | in the kernel, ns";
    format!(
        "\n## Processes that are not watched\n\nA send: one byte over a socket pair, sent and \
         received. A switch: one of two threads on one processor leaves it for the other. A \
         breakpoint costs them nothing.\n\n{}",
        table(head, rows)
    )
}

fn agent(outcome: &Outcome) -> String {
    let Some(agent) = &outcome.agent else { return String::new() };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "\n## The agent\n\n`waggle watch --json` for {:.0} s under {}: {:.0} statements/s, {:.4} \
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

fn method(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    let placement = match settings.placement {
        Placement::Split => "server alone on processor 0, load and reader on the others",
        Placement::Free => "threads wherever the kernel puts them",
    };
    format!(
        "\n## How it was measured\n\nOne live server; {} threads of sysbench over the unix \
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
         bytes of text, with no wake-ups, and no field more. For programs: `summary.json`.\n",
        settings.threads, settings.window_ms, settings.settle_ms
    )
}
