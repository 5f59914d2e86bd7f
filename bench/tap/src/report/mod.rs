//! What is kept of a run.

mod json;
mod markdown;
mod raw;
mod verdict;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use waggle_bench_kept::new_directory;

use crate::agent::Agent;
use crate::arms::Arm;
use crate::estimate::Price;
use crate::foreign::Foreign;
use crate::load::Load;
use crate::run_time::RunTimeOf;
use crate::settings::Settings;
use crate::windows::Window;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) seed: u64,
    pub(crate) machine: Value,
    pub(crate) server: String,
    pub(crate) build: String,
    pub(crate) refused: Vec<(Arm, String)>,
    pub(crate) windows: Vec<Window>,
    pub(crate) prices: Vec<Price>,
    pub(crate) run_times: Vec<RunTimeOf>,
    pub(crate) foreign: Vec<Foreign>,
    /// `None` where no arm of waggle was wanted or could be used.
    pub(crate) agent: Option<Agent>,
    pub(crate) seconds: f64,
}

impl Outcome {
    /// The price of an arm under a load, or under all of them.
    fn price(&self, arm: Arm, load: Option<Load>) -> Option<&Price> {
        self.prices.iter().find(|price| price.arm == arm && price.load == load)
    }

    /// What the kernel's statistics say of an arm: the mean of the loads and the highest of them,
    /// nanoseconds per statement, with the sends of the load itself.
    fn run_time(&self, arm: Arm) -> Option<(f64, f64)> {
        self.run_time_by(arm, RunTimeOf::ns_per_statement)
    }

    /// The same of the server's own sends: without those of the load, at the price of a send of a
    /// process that is not watched.
    fn own_run_time(&self, arm: Arm) -> Option<(f64, f64)> {
        let foreign = self.foreign.iter().find(|one| one.arm == arm)?.program_ns;
        self.run_time_by(arm, |one| {
            one.ns_per_statement() - foreign * (one.runs_per_statement() - 1.0).max(0.0)
        })
    }

    fn run_time_by(&self, arm: Arm, ns: impl Fn(&RunTimeOf) -> f64) -> Option<(f64, f64)> {
        let each: Vec<f64> = self.run_times.iter().filter(|one| one.arm == arm).map(ns).collect();
        let highest = each.iter().copied().reduce(f64::max)?;
        Some((each.iter().sum::<f64>() / each.len() as f64, highest))
    }

    /// Writes the result into a new directory and returns it.
    ///
    /// # Errors
    ///
    /// Where the directory cannot be made or written.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        let Settings { output, name, .. } = &self.settings;
        let directory = new_directory(output, name, &self.machine)?;
        let put = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| path.display().to_string())
        };
        put("README.md", markdown::page(self))?;
        put("summary.json", format!("{:#}\n", json::summary(self)))?;
        put("windows.csv", raw::table(&self.windows))?;
        Ok(directory)
    }
}
