//! The limits that the tap has to keep, and whether it kept them.

use serde_json::Value;
use waggle_bench_frame::{Limit, signed};
use waggle_probes::tap::Hook;
use waggle_stats::most_by_chance;

use super::Outcome;
use crate::agent::Agent;
use crate::arm::Arm;
use crate::coin::Priced;
use crate::load::Load;

/// The rung that waggle takes on a kernel of today.
const CHOSEN: Arm = Arm::Rung(Hook::Send);
/// What the tap adds, microseconds per statement.
const ADDED_MAX_US: f64 = 3.0;
/// The same as a share of what the pair of breakpoints adds.
const SHARE_MAX: f64 = 0.25;
/// Trials in windows are unsound with this chance where all is well, and a run with more of them than come together in
/// one of a hundred runs is not.
const UNSOUND: f64 = 0.01;
/// Cores of the agent per 10,000 statements per second.
const AGENT_MAX: f64 = 0.02;
const RSS_MAX_MIB: f64 = 40.0;
/// What waits add, microseconds per statement, by [`Load::OF_WAITS`].
const WAITS_MAX_US: [f64; 3] = [0.7, 1.2, 3.5];
/// What waits add to a switch of a process that is not watched, nanoseconds.
const SWITCH_MAX_NS: f64 = 60.0;
/// Statements per second from which on the memory is judged.
const RATE_MIN: f64 = 20_000.0;

/// Every limit of what is priced. Longer texts have none.
pub(super) fn all(outcome: &Outcome) -> Vec<Limit> {
    let settings = &outcome.settings;
    let mut limits = match (settings.texts, settings.waits) {
        (true, _) => return Vec::new(),
        (_, true) => waits(outcome),
        _ => vec![added(outcome), share(outcome), floor(outcome)],
    };
    limits.extend(agent(outcome));
    limits.push(lost(outcome));
    limits
}

/// Both ends of an interval, microseconds.
type Ends = [f64; 2];

/// Of a price of `waggle prove`.
fn ends_of(price: &Value) -> Option<Ends> {
    let (ns, half) = (price["ns"].as_f64()?, price["half_width_ns"].as_f64()?);
    Some([(ns - half) / 1e3, (ns + half) / 1e3])
}

/// The mean of the loads; `None` if one has nothing, or there are none.
fn mean(of_loads: impl Iterator<Item = Option<Ends>>) -> Option<Ends> {
    let each: Vec<Ends> = of_loads.collect::<Option<_>>()?;
    let mean = |end: usize| each.iter().map(|ends| ends[end]).sum::<f64>() / each.len() as f64;
    (!each.is_empty()).then(|| [mean(0), mean(1)])
}

/// `None` where the interval holds the limit: then nobody knows.
fn is_kept([low, high]: Ends, max: f64) -> Option<bool> {
    (high <= max || low > max).then_some(high <= max)
}

fn words([low, high]: Ends) -> String {
    format!("{low:.2} to {high:.2} µs")
}

/// What waggle adds: all that is collected, and the entry of its program at a send, which the coin leaves out.
fn ours(outcome: &Outcome) -> Option<Ends> {
    let added = |priced: &Priced| {
        let entry_us = priced.json["entry_ns"].as_f64()? / 1e3;
        Some(ends_of(&priced.json["total"])?.map(|end| end + entry_us))
    };
    mean(outcome.prices.iter().filter(|priced| priced.arm == CHOSEN).map(added))
}

fn added(outcome: &Outcome) -> Limit {
    let ours = ours(outcome);
    Limit {
        name: "added_us",
        limit: format!(
            "`{CHOSEN}` adds ≤ {ADDED_MAX_US} µs per statement, with waits and entry; mean of the loads"
        ),
        measured: ours.map(words),
        kept: ours.and_then(|ours| is_kept(ours, ADDED_MAX_US)),
    }
}

fn share(outcome: &Outcome) -> Limit {
    let pair = || outcome.tried.iter().filter(|tried| tried.arm == Arm::Pair);
    let is_sound = pair().all(|tried| !tried.switched.is_unsound());
    let theirs = mean(pair().map(|tried| {
        let added = tried.switched.added_ns?;
        Some([added.low / 1e3, added.high / 1e3])
    }));
    let both = ours(outcome).zip(theirs);
    // Ours at most against theirs at least, and the other way round.
    let kept = |(ours, theirs): (Ends, Ends)| {
        let [least, most] = theirs.map(|end| SHARE_MAX * end);
        (ours[1] <= least || ours[0] > most).then_some(ours[1] <= least)
    };
    Limit {
        name: "share_of_reference",
        limit: format!("that is ≤ {SHARE_MAX} of what the uprobe pair adds"),
        measured: both.map(|(_, theirs)| format!("the pair: {}", words(theirs))),
        kept: both.and_then(kept).filter(|_| is_sound),
    }
}

/// Where nothing is attached nothing should differ.
fn floor(outcome: &Outcome) -> Limit {
    let trials = outcome.tried.len();
    let unsound = outcome.tried.iter().filter(|tried| tried.switched.is_unsound()).count();
    let most = most_by_chance(trials, UNSOUND, UNSOUND).unwrap_or(0);
    Limit {
        name: "unsound",
        limit: format!("unsound trials in windows ≤ {most}"),
        measured: (trials > 0).then(|| format!("{unsound} of {trials}")),
        kept: (trials > 0).then_some(unsound <= most),
    }
}

fn waits(outcome: &Outcome) -> Vec<Limit> {
    let limit = |(load, max): (Load, f64)| {
        let priced = outcome.prices.iter().find(|priced| priced.load == load);
        let added = priced.and_then(|priced| ends_of(priced.step("waits")));
        Limit {
            name: load.limit_of_waits(),
            limit: format!("waits add ≤ {max} µs per statement of {load}"),
            measured: added.map(words),
            kept: added.and_then(|added| is_kept(added, max)),
        }
    };
    let mut limits: Vec<Limit> = Load::OF_WAITS.into_iter().zip(WAITS_MAX_US).map(limit).collect();
    let added = outcome.foreign.iter().find_map(|one| one.added_ns);
    limits.push(Limit {
        name: "switch_ns",
        limit: format!("a switch of a process that is not watched: ≤ {SWITCH_MAX_NS} ns"),
        measured: added.map(|added| format!("{} ns", signed(&added, 0))),
        kept: added.map(|added| added.value <= SWITCH_MAX_NS),
    });
    limits
}

/// In every part that was asked for.
fn lost(outcome: &Outcome) -> Limit {
    let tried = outcome.tried.iter().filter(|tried| tried.arm != Arm::Pair);
    let each = outcome.agent.iter().map(|agent| agent.lost).chain(tried.map(|tried| tried.lost));
    let each = each.chain(outcome.prices.iter().filter_map(|priced| priced.json["lost"].as_u64()));
    let lost = each.reduce(|sum, one| sum + one);
    Limit {
        name: "lost",
        limit: "statements lost by waggle: 0".to_owned(),
        measured: lost.map(|lost| lost.to_string()),
        kept: lost.map(|lost| lost == 0),
    }
}

fn agent(outcome: &Outcome) -> [Limit; 2] {
    let agent = outcome.agent.as_ref();
    let cores = agent.map(Agent::cores_per_10k);
    let memory = agent.map(|agent| (mib(agent.rss_peak_bytes), agent.rate()));
    [
        Limit {
            name: "agent_cores_per_10k",
            limit: format!("agent ≤ {AGENT_MAX} core per 10,000 statements/s"),
            measured: cores.map(|cores| format!("{cores:.4} core")),
            kept: cores.map(|cores| cores <= AGENT_MAX),
        },
        Limit {
            name: "rss_mib",
            limit: format!("agent's memory ≤ {RSS_MAX_MIB} MiB at ≥ {RATE_MIN:.0} statements/s"),
            measured: memory.map(|(mib, rate)| format!("{mib:.1} MiB at {rate:.0} statements/s")),
            // Too much is too much at any rate; little enough counts at a high one only.
            kept: memory.and_then(|(mib, rate)| match mib <= RSS_MAX_MIB {
                false => Some(false),
                true => (rate >= RATE_MIN).then_some(true),
            }),
        },
    ]
}

/// Of bytes.
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_holds_the_limit_does_not_judge() {
        let judged = [[1.0, 2.0], [3.1, 4.0], [2.0, 4.0]].map(|ends| is_kept(ends, 3.0));
        assert_eq!(judged, [Some(true), Some(false), None]);
    }

    #[test]
    fn a_load_without_a_price_leaves_no_mean() {
        assert_eq!(mean([Some([1.0, 3.0]), Some([2.0, 4.0])].into_iter()), Some([1.5, 3.5]));
        assert_eq!(mean([Some([1.0, 3.0]), None].into_iter()), None);
        assert_eq!(mean([].into_iter()), None);
    }
}
