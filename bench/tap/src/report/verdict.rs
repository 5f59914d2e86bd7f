//! The limits that the tap has to keep, and whether it kept them.

use waggle_bench_frame::{Limit, signed};
use waggle_probes::tap::Hook;

use super::Outcome;
use crate::agent::Agent;
use crate::arms::Arm;
use crate::load::Load;

/// The rung that waggle takes on a kernel of today.
const CHOSEN: Arm = Arm::Tap(Hook::Send);
/// Half the interval of the A/A arm, microseconds; above it the run shows nothing.
const FLOOR_MAX_US: f64 = 0.6;
/// Time in the program, nanoseconds per statement.
const PROGRAM_MAX_NS: f64 = 1600.0;
/// Upper end of the interval of what the tap adds, microseconds.
const ADDED_MAX_US: f64 = 3.0;
/// The same as a share of the lower end for the pair of breakpoints.
const SHARE_MAX: f64 = 0.25;
/// Cores of the agent per 10,000 statements per second.
const AGENT_MAX: f64 = 0.02;
const RSS_MAX_MIB: f64 = 40.0;
/// What waits add to the time in the kernel, microseconds per statement, by [`Load::OF_WAITS`].
const WAITS_MAX_US: [f64; 3] = [0.7, 1.2, 3.5];
/// What waits add to a switch of a process that is not watched, nanoseconds.
const SWITCH_MAX_NS: f64 = 60.0;
/// Statements per second from which on the memory is judged.
const RATE_MIN: f64 = 20_000.0;

/// Whether the run can tell anything: the two windows of a pair without any difference must not
/// differ by more than the floor allows.
pub(super) fn is_void(outcome: &Outcome) -> bool {
    outcome.price(Arm::Nothing, None).is_none_or(|price| price.added_us.half_width() > FLOOR_MAX_US)
}

/// Every limit.
pub(super) fn all(outcome: &Outcome) -> Vec<Limit> {
    let mut verdicts = vec![floor(outcome), program(outcome)];
    verdicts.extend(added(outcome));
    verdicts.extend(agent(outcome));
    verdicts.extend(waits(outcome));
    verdicts
}

fn floor(outcome: &Outcome) -> Limit {
    let half = outcome.price(Arm::Nothing, None).map(|price| price.added_us.half_width());
    Limit {
        name: "aa_half_width_us",
        limit: format!("A/A half-width ≤ {FLOOR_MAX_US} µs, else the run is void"),
        measured: half.map(|half| format!("{half:.2} µs")),
        kept: half.map(|half| half <= FLOOR_MAX_US),
    }
}

fn program(outcome: &Outcome) -> Limit {
    let own = outcome.own_run_time(CHOSEN);
    let all = outcome.run_time(CHOSEN);
    Limit {
        name: "program_ns_per_statement",
        limit: format!(
            "time in the kernel ≤ {:.1} µs per statement: the server's own sends, mean of the loads",
            PROGRAM_MAX_NS / 1e3
        ),
        measured: own.zip(all).map(|(own, all)| {
            let [own, dearest, all] = [own.0, own.1, all.0].map(|ns| ns / 1e3);
            format!(
                "{own:.2} µs, {dearest:.2} under the dearest load; {all:.2} with the load's sends"
            )
        }),
        kept: own.map(|(mean, _)| mean <= PROGRAM_MAX_NS),
    }
}

fn added(outcome: &Outcome) -> [Limit; 2] {
    let can_tell = !is_void(outcome);
    let ours = outcome.price(CHOSEN, None).map(|price| price.added_us);
    let theirs = outcome.price(Arm::Reference, None).map(|price| price.added_us);
    let high = ours.map(|ours| ours.high);
    let share = ours.zip(theirs).map(|(ours, theirs)| ours.high / theirs.low);
    let is_below = |share: f64| share <= SHARE_MAX && theirs.is_some_and(|other| other.low > 0.0);
    [
        Limit {
            name: "added_us_high",
            limit: format!("upper end of the added server CPU ≤ {ADDED_MAX_US} µs per statement"),
            measured: high.map(|high| format!("{high:.2} µs")),
            kept: high.map(|high| high <= ADDED_MAX_US).filter(|_| can_tell),
        },
        Limit {
            name: "share_of_reference",
            limit: format!("that end ≤ {SHARE_MAX} of the lower end of the uprobe pair"),
            measured: share.map(|share| format!("{share:.2}")),
            kept: share.map(is_below).filter(|_| can_tell),
        },
    ]
}

fn waits(outcome: &Outcome) -> Vec<Limit> {
    if !outcome.settings.waits {
        return Vec::new();
    }
    let limit = |(load, max): (Load, f64)| {
        let added = outcome.waits_us(load);
        Limit {
            name: load.limit_of_waits(),
            limit: format!("waits add ≤ {max} µs in the kernel per statement of {load}"),
            measured: added.map(|added| format!("{added:.2} µs")),
            kept: added.map(|added| added <= max),
        }
    };
    let mut limits: Vec<Limit> = Load::OF_WAITS.into_iter().zip(WAITS_MAX_US).map(limit).collect();
    let switch = outcome.foreign.iter().find(|one| one.arm == Arm::Waits);
    let added = switch.and_then(|switch| switch.added_ns);
    limits.push(Limit {
        name: "switch_ns",
        limit: format!("a switch of a process that is not watched: ≤ {SWITCH_MAX_NS} ns"),
        measured: added.map(|added| format!("{} ns", signed(&added, 0))),
        kept: added.map(|added| added.value <= SWITCH_MAX_NS),
    });
    limits
}

fn agent(outcome: &Outcome) -> [Limit; 3] {
    let agent = outcome.agent.as_ref();
    let prices = outcome.prices.iter().filter(|price| price.load.is_none());
    let ours = prices.filter(|price| matches!(price.arm, Arm::Tap(_)));
    let lost_in_windows: u64 = ours.map(|price| price.lost).sum();
    let lost = agent.map(|agent| agent.lost + lost_in_windows);
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
        Limit {
            name: "lost",
            limit: "lost 0".to_owned(),
            measured: lost.map(|lost| lost.to_string()),
            kept: lost.map(|lost| lost == 0),
        },
    ]
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
