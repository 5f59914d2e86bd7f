//! The windows: two pairs at a time, with and without an arm.
//!
//! A block is `off on on off` or `on off off on`, by the toss of a coin: each window with the arm
//! has one without beside it, and a drift that is even over the block cancels. What the server
//! spends per statement wanders slowly on a shared machine, so many short blocks tell more than a
//! few long ones: see `README.md`.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use waggle_bench_frame::rounds;
use waggle_calibration::rounds_max;
use waggle_host::HostTime;
use waggle_stats::Random;

use crate::arms::{Arm, Arms};
use crate::load::Load;
use crate::meter::Meter;
use crate::settings::Settings;

/// How often the rings are emptied, as in `waggle watch`.
pub(crate) const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// A window in which the hypervisor took more than this share of a processor is void, and its
/// block with it, whatever it shows. The counter has ticks of 10 ms, so one tick is always borne.
const STEAL_MAX: f64 = 0.05;

/// Windows of a block.
pub(crate) const BLOCK: usize = 4;

/// One window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Number of the block in the run.
    pub(crate) block: usize,
    pub(crate) arm: Arm,
    pub(crate) load: Load,
    /// Whether the arm was attached.
    pub(crate) on: bool,
    pub(crate) seconds: f64,
    /// By the server's own counter.
    pub(crate) statements: u64,
    /// By the arm.
    pub(crate) captured: u64,
    pub(crate) server_ns: u64,
    pub(crate) agent_ns: u64,
    pub(crate) lost: u64,
    pub(crate) steal_ticks: u64,
    /// The block is void.
    pub(crate) void: bool,
}

impl Window {
    fn is_stolen(&self) -> bool {
        let stolen_seconds = self.steal_ticks.saturating_sub(1) as f64 / HostTime::TICKS_PER_S;
        stolen_seconds > STEAL_MAX * self.seconds
    }
}

/// Measures the blocks of every arm under the load that is at work, as long as some that count are missing. `first` is
/// the number of the first block.
pub(crate) fn measure(
    arms: &mut Arms,
    meter: &mut Meter,
    load: Load,
    settings: &Settings,
    random: &mut Random,
    first: usize,
) -> Result<Vec<Window>> {
    let usable = arms.usable();
    let wanted = settings.blocks_per_load();
    let counting = |four: &&[Window; BLOCK]| !four[0].void;
    let wants = |_, fours: &[[Window; BLOCK]]| fours.iter().filter(counting).count() < wanted;
    let mut number = first;
    let fours = rounds(usable.len(), rounds_max(wanted), random, wants, |arm, random| {
        let mut block = Block { arms, meter, settings, arm: usable[arm], load, number };
        let mut four = block.measure(random.coin())?;
        // The small form shows that all is measured, not how much it is.
        let is_void = !settings.options.quick && four.iter().any(Window::is_stolen);
        four.iter_mut().for_each(|window| window.void = is_void);
        number += 1;
        anyhow::Ok(Some(four))
    })?;
    let mut windows: Vec<Window> = fours.into_iter().flatten().flatten().collect();
    windows.sort_by_key(|window| window.block);
    Ok(windows)
}

/// A block that is under way.
struct Block<'a> {
    arms: &'a mut Arms,
    meter: &'a mut Meter,
    settings: &'a Settings,
    arm: Arm,
    load: Load,
    number: usize,
}

impl Block<'_> {
    fn measure(&mut self, on_first: bool) -> Result<[Window; BLOCK]> {
        let [outer, inner] = [on_first, !on_first];
        self.switch(None, outer)?;
        let first = self.window(outer)?;
        self.switch(Some(outer), inner)?;
        let (second, third) = (self.window(inner)?, self.window(inner)?);
        self.switch(Some(inner), outer)?;
        let fourth = self.window(outer)?;
        if outer {
            self.arms.detach(self.arm);
        }
        Ok([first, second, third, fourth])
    }

    /// Attaches or detaches, and lets pass what does not count.
    fn switch(&mut self, from: Option<bool>, to: bool) -> Result<()> {
        let arm = self.arm;
        if to {
            let attached = self.arms.attach(arm);
            attached.with_context(|| format!("{arm} could not be attached again"))?;
        } else if from == Some(true) {
            self.arms.detach(arm);
        }
        drain_for(self.arms, arm, self.settings.settle())?;
        Ok(())
    }

    fn window(&mut self, on: bool) -> Result<Window> {
        let arm = self.arm;
        self.arms.drain(arm)?;
        let lost = self.arms.lost(arm);
        let before = self.meter.read()?;
        let captured = drain_for(self.arms, arm, self.settings.window())?;
        let after = self.meter.read()?;
        Ok(Window {
            block: self.number,
            arm,
            load: self.load,
            on,
            seconds: (after.at - before.at).as_secs_f64(),
            statements: after.questions - before.questions,
            captured,
            server_ns: after.server_ns - before.server_ns,
            agent_ns: after.agent_ns - before.agent_ns,
            lost: self.arms.lost(arm) - lost,
            steal_ticks: after.steal_ticks - before.steal_ticks,
            void: false,
        })
    }
}

/// Empties the rings on a timer, as `waggle watch` does. Without an arm the timer runs all the
/// same, so that only the arm differs.
pub(crate) fn drain_for(arms: &mut Arms, arm: Arm, time: Duration) -> Result<u64> {
    let end = Instant::now() + time;
    let mut captured = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(captured);
        }
        thread::sleep(left.min(DRAIN_EVERY));
        captured += arms.drain(arm)?;
    }
}
