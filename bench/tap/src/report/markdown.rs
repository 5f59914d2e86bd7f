//! The result for people.

use waggle_bench_frame::{Run, limits, price, rounded, signed, table};
use waggle_stats::Estimate;

use super::Outcome;
use super::verdict::{self, mib};
use crate::coin::Priced;
use crate::load::Load;
use crate::windows::Tried;

/// The whole page.
pub(super) fn page(outcome: &Outcome, run: &Run) -> String {
    let mut page = run.head(
        &format!("The price of the tap on {}", outcome.server),
        &format!(
            "build {}; {} threads of sysbench over the unix socket",
            outcome.build, outcome.settings.threads
        ),
    );
    let verdicts = verdict::all(outcome);
    if !verdicts.is_empty() {
        page += &limits(&verdicts);
    }
    for one in &outcome.refused {
        page += &format!("\n{} is refused: {}\n", one.arm, one.why);
    }
    let parts = [prices(outcome), windows(outcome), foreign(outcome), agent(outcome)];
    page + &parts.concat()
}

fn prices(outcome: &Outcome) -> String {
    let row = |one: &Priced| {
        let Priced { arm, load, json } = one;
        let total = &json["total"];
        let steps = ["statements", "long texts", "waits"].map(|name| match one.step(name) {
            step if step.is_null() => "-".to_owned(),
            step => price(step),
        });
        format!(
            "{load} | {arm} | {} | {} | {} | {} % | {} | {} | {} | {}",
            rounded(&total["base_ns"], 0),
            steps.join(" | "),
            price(total),
            rounded(&total["percent"], 1),
            price(&json["carried_over"]),
            rounded(&json["entry_ns"], 0),
            rounded(&json["own_ns_per_statement"], 0),
            rounded(&json["lost"], 0),
        )
    };
    if outcome.prices.is_empty() {
        return String::new();
    }
    let head = "load | what | without | statements | long texts | waits | together | of it | carried over | entry | reader | lost";
    format!(
        "\n## What waggle adds to a statement\n\nBy `waggle prove`: for each statement a coin decides what is collected of it. \
         Processor time of the server, ns per statement, with 95 % intervals. *Entry* is what each send pays besides, and \
         *reader* what waggle's own process takes for a statement that it captures.\n\n{}",
        table(head, outcome.prices.iter().map(row))
    )
}

fn windows(outcome: &Outcome) -> String {
    let interval = |estimate: &Option<Estimate>, digits| match estimate {
        Some(one) => format!("{:+.digits$} ± {:.digits$}", one.value, one.half_width()),
        None => "not measured".to_owned(),
    };
    let row = |tried: &Tried| {
        let found = &tried.switched;
        let added = match found.is_unsound() {
            true => "unsound".to_owned(),
            false => interval(&found.added_ns, 0),
        };
        format!(
            "{} | {} | {} | {added} | {} | {:.0} | {} | {:.1} % | {} | {}",
            tried.load,
            tried.arm,
            found.base_ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")),
            interval(&found.floor_ns, 0),
            tried.rate_without(),
            interval(&found.slower_percent, 1),
            100.0 * tried.captured_share(),
            tried.lost,
            found.blocks,
        )
    };
    if outcome.tried.is_empty() {
        return String::new();
    }
    let head = "load | what | without, ns | added, ns | noise floor, ns | statements/s without | fewer with it, % | captured | \
                lost | blocks";
    format!(
        "\n## In windows\n\nNo coin can switch a breakpoint. It is attached in one of the three windows of a block, and the \
         other two tell what differs by chance: the noise floor, with an interval of 99 %. Where that leaves out 0, the trial is unsound. What is \
         captured is read some moments after it is counted. The uprobe pair writes latency, command and up to 512 bytes of text, with no \
         wake-ups, and no field more.\n\n{}",
        table(head, outcome.tried.iter().map(row))
    )
}

fn foreign(outcome: &Outcome) -> String {
    let rows = outcome.foreign.iter().map(|one| {
        let added = one.added_ns.map_or("-".to_owned(), |added| signed(&added, 0));
        let (arm, work, without) = (one.arm, one.work.name(), one.without_ns);
        format!("{arm} | {work} | {without:.0} | {added} | {:.0}", one.program_ns)
    });
    if outcome.foreign.is_empty() {
        return String::new();
    }
    let head = "what | what it does | CPU without, ns | added, ns | in the kernel, ns";
    format!(
        "\n## Processes that are not watched\n\nA send: one byte over a socket pair, sent and received. A switch: one of two \
         threads on one processor leaves it for the other. A breakpoint costs them nothing.\n\n{}",
        table(head, rows)
    )
}

fn agent(outcome: &Outcome) -> String {
    let Some(agent) = &outcome.agent else { return String::new() };
    format!(
        "\n## The agent\n\n`waggle watch --json` for {:.0} s under {}: {:.0} statements/s, {:.4} core per 10,000 of them, {:.1} \
         MiB resident ({:.1} at most), {} captured in its whole life, {} lost.\n",
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
