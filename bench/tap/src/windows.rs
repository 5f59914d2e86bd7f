//! Windows: what no coin can switch is attached in one of the three windows of a block and not in the others.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::coin::Tosses;
use waggle_probes::servers::recognise::Recognised;
use waggle_prove::{Block, Blocks, Phase, Switched, Window};
use waggle_stats::Random;

use crate::arm::Arm;
use crate::load::Load;
use crate::settings::Settings;
use crate::subject::Subject;

/// After a switch: statements that began before it are over.
const SETTLE: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(100);
/// How often the rings are emptied, as in `waggle watch`.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// What the windows have shown of an arm under a load.
pub(crate) struct Tried {
    pub(crate) arm: Arm,
    pub(crate) load: Load,
    pub(crate) switched: Switched,
    /// Statements that it captured and lost in the windows in which it was attached.
    pub(crate) captured: u64,
    pub(crate) lost: u64,
}

impl Tried {
    /// Captured per statement that came.
    pub(crate) fn captured_share(&self) -> f64 {
        let [.., on] = &self.switched.sums;
        self.captured as f64 / on.statements.max(1) as f64
    }

    /// Statements per second without it.
    pub(crate) fn rate_without(&self) -> f64 {
        let [off, off_again, _] = &self.switched.sums;
        f64::midpoint(off.rate(), off_again.rate())
    }
}

/// Tries those of the arms that are tried in windows, under the load that is at work. A tap that collects nothing stays
/// attached: it counts the statements of each window.
pub(crate) fn measure(
    target: &Recognised,
    arms: &[Arm],
    load: Load,
    settings: &Settings,
    random: &mut Random,
) -> Result<Vec<Tried>> {
    let trial = Some(Phase::trial());
    let mut counting = Tap::new(TapOptions { trial, ..TapOptions::default() })?;
    counting.attach(&target.instance, &target.layout)?;
    let tosses = counting.tosses().context("no trial has begun")?;
    tosses.start();
    let arms = arms.iter().filter(|arm| arm.is_in_windows());
    arms.map(|arm| {
        let subject = Subject::load(target, *arm)?;
        let trial = Trial { subject, tosses: &tosses, is_on: false, captured: 0, lost: 0 };
        trial.take(*arm, load, settings.blocks, random).with_context(|| arm.name())
    })
    .collect()
}

/// A trial of one arm.
struct Trial<'a> {
    subject: Subject<'a>,
    tosses: &'a Tosses,
    is_on: bool,
    captured: u64,
    lost: u64,
}

impl Trial<'_> {
    fn take(mut self, arm: Arm, load: Load, count: usize, random: &mut Random) -> Result<Tried> {
        // The first time takes longer.
        self.turn(true)?;
        let mut blocks = Blocks::default();
        for _ in 0..count {
            blocks.add(&self.block(random)?);
        }
        self.turn(false)?;
        let Trial { captured, lost, .. } = self;
        Ok(Tried { arm, load, switched: blocks.found(), captured, lost })
    }

    fn block(&mut self, random: &mut Random) -> Result<Block> {
        let mut order = Phase::OF_BLOCK;
        random.shuffle(&mut order);
        let mut block = Block::default();
        for phase in order {
            self.turn(phase.is_on())?;
            let window = self.window(phase)?;
            if let Some(of_block) = block.window_mut(phase) {
                *of_block = window;
            }
        }
        Ok(block)
    }

    fn turn(&mut self, on: bool) -> Result<()> {
        match (self.is_on, on) {
            (false, true) => self.subject.attach()?,
            (true, false) => self.subject.detach(),
            _ => {}
        }
        self.is_on = on;
        Ok(())
    }

    fn window(&mut self, phase: Phase) -> Result<Window> {
        self.drain_for(SETTLE)?;
        let lost = self.subject.lost();
        let begun = Instant::now();
        self.tosses.choose(phase.arm());
        let captured = self.drain_for(WINDOW)?;
        self.tosses.choose(Phase::Between.arm());
        let length = begun.elapsed();
        if phase.is_on() {
            self.captured += captured;
            self.lost += self.subject.lost() - lost;
        }
        Ok(Window { length, times: self.tosses.take(phase.arm()) })
    }

    /// Empties the rings on a timer, also where nothing is attached, so that nothing else differs. Returns the statements.
    fn drain_for(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        let mut captured = 0;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(captured);
            }
            thread::sleep(left.min(DRAIN_EVERY));
            captured += self.subject.drain()?;
        }
    }
}
