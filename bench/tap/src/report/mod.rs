//! What is kept of a run.

mod json;
mod markdown;
mod raw;
mod verdict;

use std::fs;

use anyhow::{Context, Result};
use waggle_bench_frame::Run;
use waggle_probes::tap::Hook;

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
    pub(crate) server: String,
    pub(crate) build: String,
    pub(crate) refused: Vec<(Arm, String)>,
    pub(crate) windows: Vec<Window>,
    pub(crate) prices: Vec<Price>,
    pub(crate) run_times: Vec<RunTimeOf>,
    pub(crate) foreign: Vec<Foreign>,
    /// `None` where no arm of waggle was wanted or could be used.
    pub(crate) agent: Option<Agent>,
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

    /// What waits add to the time in the kernel, microseconds per statement.
    fn waits_us(&self, load: Load) -> Option<f64> {
        let ns = |arm| self.run_times.iter().find(|one| one.arm == arm && one.load == load);
        let [with, without] = [ns(Arm::Waits)?, ns(Arm::Tap(Hook::Send))?];
        Some((with.ns_per_statement() - without.ns_per_statement()) / 1e3)
    }

    fn run_time_by(&self, arm: Arm, ns: impl Fn(&RunTimeOf) -> f64) -> Option<(f64, f64)> {
        let each: Vec<f64> = self.run_times.iter().filter(|one| one.arm == arm).map(ns).collect();
        let highest = each.iter().copied().reduce(f64::max)?;
        Some((each.iter().sum::<f64>() / each.len() as f64, highest))
    }

    /// Keeps the result, and every window beside the raw data of other runs.
    ///
    /// # Errors
    ///
    /// Where something cannot be written.
    pub(crate) fn keep(&self, run: &Run) -> Result<()> {
        let page = markdown::page(self, run);
        let raw = run.keep(json::settings(&self.settings), json::found(self), &page)?;
        let written = fs::create_dir_all(&raw)
            .and_then(|()| fs::write(raw.join("windows.csv"), raw::table(&self.windows)));
        written.with_context(|| raw.display().to_string())
    }
}
