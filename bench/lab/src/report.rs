//! What was found, beside what was injected.

use serde::Serialize;
use serde_json::Value;
use waggle_bench_frame::{in_words, kept, table};
use waggle_lab::analysis::{Comparison, Interval, Verdict, analyse_all};
use waggle_lab::suite::Suite;
use waggle_lab::{Metric, Window};

use crate::kept::Repetition;
use crate::repetition::{ByArm, busy_ns};
use crate::settings::Settings;

/// Half the length of an interval may be so much where something was injected, ns.
const HALF_WIDTH_MAX_NS: f64 = 1000.0;
/// So many intervals have to hold the truth.
const HOLDING_MIN: f64 = 0.9;
/// So often nothing may be called a cost, and 2 µs have to be.
const FALSE_MAX: f64 = 0.05;
const FOUND_MIN: f64 = 0.8;
/// Such a share of the windows may be void.
const VOID_MAX: f64 = 0.05;

/// What one arm came to in all repetitions.
#[derive(Clone, Debug, Serialize)]
struct Arm {
    /// What was asked for, ns per statement.
    asked_ns: f64,
    /// What was injected, ns per statement, mean: how long the program was busy by its own clock, beyond how long
    /// it was where no cost was asked for. This is the truth, in each repetition its own.
    injected_ns: f64,
    repetitions: usize,
    /// Mean of the estimates, ns; of a repetition in which too few windows count there is none.
    mean_ns: f64,
    /// Largest half of an interval, and the one in the middle, ns.
    half_width_max_ns: f64,
    half_width_median_ns: f64,
    /// Intervals that hold the truth, of as many as there are repetitions, and their share.
    held: usize,
    held_share: f64,
    /// How often it was called a cost, likewise.
    called_cost: usize,
    called_cost_share: f64,
}

/// The repetitions that one process made.
#[derive(Serialize)]
struct Part {
    /// The first and the last of them, from 1.
    repetitions: [u32; 2],
    /// On what, and when it began.
    machine: Value,
}

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Outcome {
    parts: Vec<Part>,
    settings: Settings,
    /// How long all repetitions took, s.
    seconds: f64,
    arms: Vec<Arm>,
    /// Windows that were made, those of them that do not count, and their share.
    windows_made: usize,
    windows_void: usize,
    void_share: f64,
    /// Turns that were made anew, since the hypervisor took too much of them; one may have been more than once.
    turns_anew: usize,
    /// Whether all limits are kept.
    pub(crate) is_kept: bool,
}

impl Outcome {
    pub(crate) fn of(suite: &Suite, settings: &Settings, repetitions: &[Repetition]) -> Outcome {
        let found: Vec<Vec<Comparison>> =
            repetitions.iter().map(|one| analyse_all(suite, &one.windows).comparisons).collect();
        let injected: Vec<ByArm> =
            repetitions.iter().map(|one| injected(suite, &one.busy_ns)).collect();
        let others = suite.scenarios.iter().filter(|scenario| scenario.name != suite.baseline);
        let arms: Vec<Arm> =
            others.map(|scenario| Arm::of(&scenario.name, &found, &injected)).collect();
        let windows: Vec<&Window> = repetitions.iter().flat_map(|one| &one.windows).collect();
        let windows_made = windows.len();
        let windows_void = windows.iter().filter(|window| window.counted().is_none()).count();
        let void_share = windows_void as f64 / windows_made.max(1) as f64;
        let turns_anew = windows.iter().map(|window| window.stolen.len()).sum();
        Outcome {
            parts: Part::all(repetitions),
            settings: settings.clone(),
            seconds: repetitions.iter().map(|one| one.seconds).sum(),
            is_kept: arms.iter().all(Arm::is_kept) && void_share <= VOID_MAX,
            arms,
            windows_made,
            windows_void,
            void_share,
            turns_anew,
        }
    }

    pub(crate) fn markdown(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::in_words).collect();
        let Settings {
            server, blocks, turns, turn_ms, settle_ms, always_us, always_load_us, ..
        } = &self.settings;
        let mut text = format!(
            "# The lab and costs of known size\n\n{}. Server {server}; {:.0} s.\n\n\
             In every arm the server is busy for {always_us} µs and the load for {always_load_us} µs before they send. The \
             cost comes on top in the server, and what is left of the largest one in the load, so that a statement takes \
             as long in every arm. One session; server and load share one processor. {blocks} blocks in a repetition, {turns} turns of \
             {turn_ms} ms in a window, {settle_ms} ms under load before each.\n\n",
            parts.join(". "),
            self.seconds
        );
        let rows = self.arms.iter().map(|arm| {
            format!(
                "{:.0} | {:.2} | {:.2} | {:.2}, {:.2} | {} | {} | {}",
                arm.asked_ns / 1e3,
                micros(arm.injected_ns),
                micros(arm.mean_ns),
                arm.half_width_median_ns / 1e3,
                arm.half_width_max_ns / 1e3,
                out_of(arm.held, arm.repetitions),
                out_of(arm.called_cost, arm.repetitions),
                kept(arm.is_kept())
            )
        });
        let head = "asked for, µs | injected (mean), µs | found (mean), µs | half-width (median, largest), µs | \
                    holds the truth | called a cost | limits";
        text += &table(head, rows);
        text += &format!(
            "\nVoid windows: {}; at most {:.0} % may be: {}. Each is kept with its reason. Turns made anew, since the \
             hypervisor took too much of them, by what it says or by the length of loops: {}.\n",
            out_of(self.windows_void, self.windows_made),
            VOID_MAX * 100.0,
            kept(self.void_share <= VOID_MAX),
            out_of(self.turns_anew, self.windows_made * self.settings.turns() as usize)
        );
        text
    }
}

impl Part {
    fn all(repetitions: &[Repetition]) -> Vec<Part> {
        let parts = repetitions.chunk_by(|one, other| one.machine == other.machine);
        parts
            .filter_map(|of_part| {
                let (first, last) = (of_part.first()?, of_part.last()?);
                let repetitions = [first.number + 1, last.number + 1];
                Some(Part { repetitions, machine: first.machine.clone() })
            })
            .collect()
    }

    fn in_words(&self) -> String {
        let [first, last] = self.repetitions;
        format!("Repetitions {first} to {last}: {}", in_words(&self.machine))
    }
}

/// A part of a number, with the share.
fn out_of(count: usize, all: usize) -> String {
    format!("{count} of {all} ({:.1} %)", 100.0 * count as f64 / all.max(1) as f64)
}

/// What was injected in a repetition, of how long the program was busy by its own clock in each arm: what it was busy
/// in the baseline is no injection, ns per statement.
fn injected(suite: &Suite, busy_ns: &ByArm) -> ByArm {
    let of_baseline = busy_ns.get(&suite.baseline).copied().unwrap_or(f64::NAN);
    busy_ns.iter().map(|(arm, ns)| (arm.clone(), ns - of_baseline)).collect()
}

/// In µs with two places, without a sign where that is 0.
fn micros(ns: f64) -> f64 {
    (ns / 10.0).round() / 100.0 + 0.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Arm {
    /// `found` and `injected` have an item for each repetition.
    fn of(name: &str, found: &[Vec<Comparison>], injected: &[ByArm]) -> Arm {
        let is_asked = |one: &&Comparison| one.arm == name && one.metric == Metric::CpuPerStatement;
        let truths = injected.iter().map(|truth| truth.get(name).copied().unwrap_or(f64::NAN));
        let of_arm: Vec<(&Comparison, f64)> = found
            .iter()
            .zip(truths)
            .flat_map(|(all, truth)| {
                all.iter().filter(is_asked).map(move |comparison| (comparison, truth))
            })
            .collect();
        let known: Vec<(Interval, f64)> = of_arm
            .iter()
            .map(|(comparison, truth)| (comparison.difference, *truth))
            .filter(|(interval, _)| interval.is_known())
            .collect();
        let mut halves: Vec<f64> =
            known.iter().map(|(interval, _)| interval.half_width()).collect();
        halves.sort_by(f64::total_cmp);
        let values: Vec<f64> = known.iter().map(|(interval, _)| interval.value).collect();
        let truths: Vec<f64> = of_arm.iter().map(|(_, truth)| *truth).collect();
        let held = known.iter().filter(|(interval, truth)| interval.holds(*truth)).count();
        let called_cost =
            of_arm.iter().filter(|(comparison, _)| comparison.verdict == Verdict::Cost).count();
        let share = |count: usize| count as f64 / of_arm.len().max(1) as f64;
        Arm {
            asked_ns: f64::from(busy_ns(name)),
            injected_ns: mean(&truths),
            repetitions: of_arm.len(),
            mean_ns: mean(&values),
            half_width_max_ns: halves.last().copied().unwrap_or(f64::NAN),
            half_width_median_ns: halves.get(halves.len() / 2).copied().unwrap_or(f64::NAN),
            held,
            held_share: share(held),
            called_cost,
            called_cost_share: share(called_cost),
        }
    }

    /// Whether what is asked of it holds.
    fn is_kept(&self) -> bool {
        let is_narrow = self.asked_ns < 2000.0 || self.half_width_max_ns <= HALF_WIDTH_MAX_NS;
        let is_judged = match self.asked_ns as u64 {
            0 => self.called_cost_share <= FALSE_MAX,
            2000 => self.called_cost_share >= FOUND_MIN,
            _ => true,
        };
        is_narrow && is_judged && self.held_share >= HOLDING_MIN
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use waggle_lab::Measured;

    use super::*;
    use crate::settings::Arguments;

    /// Blocks of each repetition.
    const BLOCKS: u32 = 8;
    /// Noise of the processor time of a statement, ns. Over the blocks, what it adds to the difference of
    /// two arms is nothing, and no arm has that of the baseline.
    const NOISE_NS: [i64; 4] = [40, -40, -40, 40];

    fn truth() -> Suite {
        Suite::parse("truth", crate::TRUTH).unwrap()
    }

    fn injected(arm: &str) -> i64 {
        i64::from(busy_ns(arm))
    }

    /// A repetition in which arms cost this many ns more than a statement without a cost.
    fn repetition(suite: &Suite, cost_ns: impl Fn(&str) -> i64) -> Vec<Window> {
        let cells = suite.cells();
        let mut windows = Vec::new();
        for block in 0..BLOCKS {
            for (at, arm) in suite.scenarios.iter().enumerate() {
                let noise_ns = NOISE_NS[(block as usize + at + at / 4) % NOISE_NS.len()];
                let cpu_ns = u64::try_from(20_000 + cost_ns(&arm.name) + noise_ns).unwrap();
                windows.push(Window {
                    number: windows.len() as u32,
                    block,
                    cell: cells[0].clone(),
                    arm: arm.name.clone(),
                    measured: Some(Measured {
                        server_cpu_ns: Some(1000 * cpu_ns),
                        load_cpu_ns: Some(5_000_000),
                        ..Measured::of(0.25, 1000, None, None)
                    }),
                    ..Window::default()
                });
            }
        }
        windows
    }

    /// What is found in repetitions with these windows, of which the first two have one machine and the others
    /// another one.
    fn outcome(suite: &Suite, windows: Vec<Vec<Window>>) -> Outcome {
        let settings = Arguments::parse_from(["bench"]).settings;
        let repetition = |(number, windows): (u32, Vec<Window>)| {
            let processors = if number < 2 { 2 } else { 8 };
            let machine = json!({ "processors": processors });
            // Two looks at the clock, and a loop that is too long by a thousandth.
            let clock = |arm: &str| (arm.to_owned(), 25.0 + 1.001 * f64::from(busy_ns(arm)));
            let busy_ns = suite.scenarios.iter().map(|arm| clock(&arm.name)).collect();
            Repetition { number, machine, seconds: 2.0, busy_ns, windows }
        };
        let repetitions: Vec<Repetition> = (0..).zip(windows).map(repetition).collect();
        Outcome::of(suite, &settings, &repetitions)
    }

    #[test]
    fn what_was_made_on_another_machine_is_told_apart() {
        let suite = truth();
        let text = outcome(&suite, vec![repetition(&suite, injected); 3]).markdown();
        let first = "Repetitions 1 to 2: machine with 2 × unknown";
        let second = ". Repetitions 3 to 3: machine with 8 × unknown";
        assert!(text.contains(first) && text.contains(second), "{text}");
        assert!(text.contains(". Server mysql-9; 6 s."), "{text}");
    }

    #[test]
    fn an_arm_says_in_how_many_of_how_many_repetitions_the_truth_was_held() {
        let suite = truth();
        let right = repetition(&suite, injected);
        let wrong = repetition(&suite, |arm| if arm == "2us" { 4000 } else { injected(arm) });
        let both = outcome(&suite, vec![right.clone(), wrong]);
        let counts: Vec<[usize; 3]> =
            both.arms.iter().map(|arm| [arm.held, arm.called_cost, arm.repetitions]).collect();
        assert_eq!(counts, [[2, 0, 2], [2, 2, 2], [1, 2, 2], [2, 2, 2], [2, 2, 2]]);
        assert!((both.arms[2].mean_ns - 3000.0).abs() < 0.1, "{:?}", both.arms[2]);
        let row = "| 1 of 2 (50.0 %) | 2 of 2 (100.0 %) | NOT KEPT |";
        assert!(!both.is_kept && both.markdown().contains(row), "{}", both.markdown());
        assert!(both.markdown().contains("| 10 | 10.01 | 10.00 |"), "{}", both.markdown());
        assert!(outcome(&suite, vec![right]).is_kept);
    }

    #[test]
    fn a_repetition_without_an_interval_held_nothing() {
        let suite = truth();
        let mut without = repetition(&suite, injected);
        for window in without.iter_mut().filter(|window| window.arm == "5us") {
            window.void = Some("steal".to_owned());
        }
        let both = outcome(&suite, vec![repetition(&suite, injected), without]);
        let arm = &both.arms[3];
        assert_eq!((arm.held, arm.called_cost, arm.repetitions), (1, 1, 2));
        assert!((arm.mean_ns - 5000.0).abs() < 0.1, "{arm:?}");
    }

    #[test]
    fn more_than_one_void_window_in_twenty_is_too_many() {
        let suite = truth();
        let is_kept = |void: usize| {
            let mut windows = repetition(&suite, injected);
            for window in &mut windows[..void] {
                window.void = Some("steal".to_owned());
            }
            let outcome = outcome(&suite, vec![windows]);
            assert_eq!((outcome.windows_void, outcome.windows_made), (void, 48));
            let said = format!("Void windows: {void} of 48 (");
            assert!(outcome.markdown().contains(&said), "{}", outcome.markdown());
            outcome.is_kept
        };
        assert!(is_kept(0) && is_kept(2) && !is_kept(3));
    }
}
