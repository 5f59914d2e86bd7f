//! What was found, beside what was injected.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use waggle_bench_kept::{in_words, new_directory};
use waggle_lab::Window;
use waggle_lab::analysis::{Comparison, Metric, Verdict, analyse};
use waggle_lab::suite::Suite;

use crate::repetition::busy_ns;
use crate::settings::Settings;

/// The interval may reach so far to each side where something was injected, ns.
const HALF_WIDTH_MAX_NS: f64 = 1000.0;
/// So many intervals have to hold the truth.
const HOLDING_MIN: f64 = 0.9;
/// So often nothing may be called a cost, and 2 µs have to be.
const FALSE_MAX: f64 = 0.05;
const FOUND_MIN: f64 = 0.8;

/// What one arm came to in all repetitions.
#[derive(Clone, Debug, Serialize)]
struct Arm {
    /// What was injected, ns per statement.
    truth_ns: f64,
    repetitions: usize,
    /// Mean of the estimates, ns.
    mean_ns: f64,
    /// Largest half of an interval, and the one in the middle, ns.
    half_width_max_ns: f64,
    half_width_median_ns: f64,
    /// Share of the intervals that hold the truth.
    holding: f64,
    /// Share that was called a cost.
    costs: f64,
}

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Outcome {
    machine: Value,
    server: String,
    settings: String,
    seconds: f64,
    arms: Vec<Arm>,
    is_kept: bool,
    #[serde(skip)]
    windows: Vec<Vec<Window>>,
}

impl Outcome {
    pub(crate) fn of(
        suite: &Suite,
        settings: &Settings,
        machine: Value,
        windows: Vec<Vec<Window>>,
        time: Duration,
    ) -> Outcome {
        let found: Vec<Vec<Comparison>> =
            windows.iter().map(|windows| analyse(suite, windows).comparisons).collect();
        let others = suite.scenarios.iter().filter(|scenario| scenario.name != suite.baseline);
        let arms: Vec<Arm> = others.map(|scenario| Arm::of(&scenario.name, &found)).collect();
        let is_kept = arms.iter().all(Arm::is_kept);
        Outcome {
            machine,
            server: settings.server.to_string(),
            settings: format!("{settings:?}"),
            seconds: time.as_secs_f64(),
            arms,
            is_kept,
            windows,
        }
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "# The lab and costs of known size\n\n{}; server {}; {:.0} s.\n\n\
             | injected, µs | repetitions | found (mean), µs | half-width (median, largest), µs | holds \
             the truth | called a cost | |\n|---|---|---|---|---|---|---|\n",
            in_words(&self.machine),
            self.server,
            self.seconds
        );
        for arm in &self.arms {
            let kept = if arm.is_kept() { "kept" } else { "NOT KEPT" };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {:.0} | {} | {:.2} | {:.2}, {:.2} | {:.0} % | {:.0} % | {kept} |",
                arm.truth_ns / 1e3,
                arm.repetitions,
                arm.mean_ns / 1e3,
                arm.half_width_median_ns / 1e3,
                arm.half_width_max_ns / 1e3,
                arm.holding * 100.0,
                arm.costs * 100.0
            );
        }
        text
    }

    /// Writes everything, with every window; gives the directory, and whether the limits are kept.
    pub(crate) fn write(&self, settings: &Settings) -> Result<(PathBuf, bool)> {
        let directory = new_directory(&settings.output, &settings.name, &self.machine)?;
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        write("README.md", self.markdown())?;
        write("summary.json", serde_json::to_string_pretty(self)?)?;
        for (number, windows) in self.windows.iter().enumerate() {
            let lines: Result<Vec<String>, _> = windows.iter().map(serde_json::to_string).collect();
            write(&format!("windows-{number:02}.jsonl"), lines?.join("\n") + "\n")?;
        }
        Ok((directory, self.is_kept))
    }
}

impl Arm {
    fn of(name: &str, found: &[Vec<Comparison>]) -> Arm {
        let truth_ns = f64::from(busy_ns(name));
        let of_arm: Vec<&Comparison> = found
            .iter()
            .flatten()
            .filter(|one| one.arm == name && one.metric == Metric::CpuPerStatement)
            .collect();
        let count = of_arm.len().max(1) as f64;
        let half = |one: &&Comparison| (one.difference.high - one.difference.low) / 2.0;
        let mut halves: Vec<f64> = of_arm.iter().map(half).collect();
        halves.sort_by(f64::total_cmp);
        let share = |is: fn(&Comparison, f64) -> bool| {
            of_arm.iter().filter(|one| is(one, truth_ns)).count() as f64 / count
        };
        Arm {
            truth_ns,
            repetitions: of_arm.len(),
            mean_ns: of_arm.iter().map(|one| one.difference.value).sum::<f64>() / count,
            half_width_max_ns: halves.last().copied().unwrap_or(f64::NAN),
            half_width_median_ns: halves.get(halves.len() / 2).copied().unwrap_or(f64::NAN),
            holding: share(|one, truth| {
                one.difference.low <= truth && truth <= one.difference.high
            }),
            costs: share(|one, _| matches!(one.verdict, Verdict::Cost)),
        }
    }

    /// Whether what is asked of it holds.
    fn is_kept(&self) -> bool {
        let is_narrow = self.truth_ns < 2000.0 || self.half_width_max_ns <= HALF_WIDTH_MAX_NS;
        let is_judged = match self.truth_ns as u64 {
            0 => self.costs <= FALSE_MAX,
            2000 => self.costs >= FOUND_MIN,
            _ => true,
        };
        is_narrow && is_judged && self.holding >= HOLDING_MIN
    }
}
