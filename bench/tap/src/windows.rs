//! The windows: pairs with and without an arm, in random order.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use waggle_stats::Random;

use crate::arms::{Arm, Arms};
use crate::load::Load;
use crate::meter::{Meter, Reading};
use crate::settings::Settings;

/// How often the ring is emptied, as in `waggle watch`.
pub(crate) const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// A window in which the hypervisor took more than this share of all processors is void, and its
/// pair with it, whatever it shows. The counter has ticks of 10 ms, so one tick is always borne.
const STEAL_MAX: f64 = 0.05;
/// Most void pairs that are repeated, as a share of those wanted.
const REPEATS_MAX: f64 = 0.5;

/// One window.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Window {
    /// Number of the pair in the run.
    pub(crate) pair: usize,
    #[serde(skip)]
    pub(crate) arm: Arm,
    #[serde(skip)]
    pub(crate) load: Load,
    /// Whether the arm was attached.
    pub(crate) on: bool,
    /// Whether it was the first of its pair.
    pub(crate) first: bool,
    pub(crate) seconds: f64,
    /// By the server's own counter.
    pub(crate) statements: u64,
    /// By the arm.
    pub(crate) captured: u64,
    pub(crate) server_ns: u64,
    pub(crate) agent_ns: u64,
    pub(crate) lost: u64,
    pub(crate) steal_ticks: u64,
    /// How long attaching and detaching took.
    pub(crate) switch_seconds: f64,
    /// The pair is void.
    pub(crate) void: bool,
}

impl Window {
    /// CPU of the server per statement in microseconds.
    pub(crate) fn server_us(&self) -> f64 {
        self.server_ns as f64 / 1e3 / self.statements.max(1) as f64
    }

    /// Statements per second.
    pub(crate) fn rate(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    fn is_stolen(&self) -> bool {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let stolen_seconds = self.steal_ticks.saturating_sub(1) as f64 / ticks_per_second;
        stolen_seconds > STEAL_MAX * self.seconds
    }
}

/// Measures the pairs of every arm under the load that is at work, in blocks: one pair of each arm
/// in random order, each pair in random order. `first_pair` is the number of the first one.
pub(crate) fn measure(
    arms: &mut Arms,
    meter: &mut Meter,
    load: Load,
    settings: &Settings,
    random: &mut Random,
    first_pair: usize,
) -> Result<Vec<Window>> {
    let mut windows = Vec::new();
    let mut pair = first_pair;
    let wanted = settings.pairs_per_load(Load::ALL.len());
    let most = (wanted as f64 * (1.0 + REPEATS_MAX)).ceil() as usize;
    let mut missing: Vec<(Arm, usize)> =
        arms.usable().into_iter().map(|arm| (arm, wanted)).collect();
    for _ in 0..most {
        random.shuffle(&mut missing);
        for (arm, left) in &mut missing {
            let mut both = measure_pair(arms, meter, (*arm, load), settings, random, pair)?;
            pair += 1;
            let is_void = both.iter().any(Window::is_stolen);
            both.iter_mut().for_each(|window| window.void = is_void);
            *left -= usize::from(!is_void);
            windows.extend(both);
        }
        missing.retain(|(_, left)| *left > 0);
    }
    Ok(windows)
}

fn measure_pair(
    arms: &mut Arms,
    meter: &mut Meter,
    (arm, load): (Arm, Load),
    settings: &Settings,
    random: &mut Random,
    pair: usize,
) -> Result<[Window; 2]> {
    let on_first = random.coin();
    let mut one = |on: bool| -> Result<Window> {
        let mut switching = Instant::now();
        if on {
            arms.attach(arm).with_context(|| format!("{arm} could not be attached again"))?;
        }
        let attached = switching.elapsed();
        drain_for(arms, arm, settings.settle())?;
        let measured = measure_window(arms, meter, arm, settings.window());
        switching = Instant::now();
        if on {
            arms.detach(arm);
        }
        let switch_seconds = (attached + switching.elapsed()).as_secs_f64();
        let (before, after, captured, lost) = measured?;
        Ok(Window {
            pair,
            arm,
            load,
            on,
            first: on == on_first,
            seconds: (after.at - before.at).as_secs_f64(),
            statements: after.questions - before.questions,
            captured,
            server_ns: after.server_ns - before.server_ns,
            agent_ns: after.agent_ns - before.agent_ns,
            lost,
            steal_ticks: after.steal_ticks - before.steal_ticks,
            switch_seconds,
            void: false,
        })
    };
    Ok([one(on_first)?, one(!on_first)?])
}

/// Measures one window of what is attached now: the readings at both ends, the statements captured
/// and those lost.
fn measure_window(
    arms: &mut Arms,
    meter: &mut Meter,
    arm: Arm,
    length: Duration,
) -> Result<(Reading, Reading, u64, u64)> {
    arms.drain(arm)?;
    let lost = arms.lost(arm);
    let before = meter.read()?;
    let captured = drain_for(arms, arm, length)?;
    let after = meter.read()?;
    Ok((before, after, captured, arms.lost(arm) - lost))
}

/// Empties the ring on a timer, as `waggle watch` does. Without an arm the timer runs all the
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
