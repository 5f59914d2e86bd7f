//! How long the programs run in the kernel, by the kernel's own statistics. They cost time
//! themselves, so these windows are apart from those of `windows`.

use anyhow::{Context, Result};
use serde::Serialize;
use waggle_probes::carrier::RunTimeStatistics;
use waggle_stats::Random;

use crate::arms::{Arm, Arms};
use crate::load::Load;
use crate::meter::Meter;
use crate::settings::Settings;
use crate::windows::drain_for;

/// What the statistics say of one arm under one load.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RunTimeOf {
    #[serde(skip)]
    pub(crate) arm: Arm,
    #[serde(skip)]
    pub(crate) load: Load,
    /// Statements by the server's counter.
    pub(crate) statements: u64,
    /// Runs of the programs, for any process of the host: the load's own sends are among them.
    pub(crate) runs: u64,
    /// Time of all runs, nanoseconds.
    pub(crate) time_ns: u64,
}

impl RunTimeOf {
    /// Nanoseconds in the programs per statement, those for the load's own sends included.
    pub(crate) fn ns_per_statement(&self) -> f64 {
        self.time_ns as f64 / self.statements.max(1) as f64
    }

    /// Runs per statement: one for the server's reply, the others for sends of the load.
    pub(crate) fn runs_per_statement(&self) -> f64 {
        self.runs as f64 / self.statements.max(1) as f64
    }
}

/// Measures every arm under the load that is at work.
pub(crate) fn measure(
    arms: &mut Arms,
    meter: &mut Meter,
    load: Load,
    settings: &Settings,
    random: &mut Random,
) -> Result<Vec<RunTimeOf>> {
    let _statistics = RunTimeStatistics::enable()
        .context("the kernel's statistics of programs; run as root or with CAP_SYS_ADMIN")?;
    let usable = arms.usable().into_iter().filter(|arm| *arm != Arm::Nothing);
    let zero = |arm| RunTimeOf { arm, load, statements: 0, runs: 0, time_ns: 0 };
    let mut sums: Vec<RunTimeOf> = usable.map(zero).collect();
    for _ in 0..settings.statistics_windows() {
        random.shuffle(&mut sums);
        for sum in &mut sums {
            arms.attach(sum.arm)?;
            drain_for(arms, sum.arm, settings.settle())?;
            let before = (meter.read()?, arms.run_time(sum.arm));
            drain_for(arms, sum.arm, settings.window())?;
            let after = (meter.read()?, arms.run_time(sum.arm));
            arms.detach(sum.arm);
            sum.statements += after.0.questions - before.0.questions;
            sum.runs += after.1.0 - before.1.0;
            sum.time_ns += (after.1.1 - before.1.1).as_nanos() as u64;
        }
    }
    Ok(sums)
}
