//! `waggle prove pfs` and its kin: the price of what can only be switched for the whole server, tried in windows.

mod json;
pub(in super::super) mod keeper;
mod program;
mod settings;
mod text;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use waggle_host::monotonic_ns;
use waggle_instrumentation::cost::proven::Method;
use waggle_model::Server;
use waggle_mysql::Connection;
use waggle_observe::Capture;
use waggle_probes::coin::Tosses;
use waggle_prove::{Block, Blocks, GiveUp, Phase, Slower, Switched, Window};
use waggle_stats::Random;

use super::super::watch::CaptureArgs;
use super::super::{Failure, Outcome, print, some_time};
use super::{keep, the_server};
use crate::own_server;
use crate::progress::Line;

pub(super) use program::{ProgramArgs, run_program};
pub(super) use settings::{InnodbArgs, PfsArgs, VariableArgs, run_innodb, run_pfs, run_variable};

/// After a switch: statements that began before it are over.
const SETTLE: Duration = Duration::from_millis(20);
/// A window lasts as long as a switch or as this many statements, whichever is longer.
const STATEMENTS: f64 = 200.0;
/// It is never shorter or longer than these.
const WINDOW_MIN: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_secs(2);
/// How often a signal is looked for in a window.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// In the first blocks it is counted what the switch does, to show that it works. While nothing was seen of it, that goes on.
const WITNESSED: usize = 3;

/// How long, and when it ends earlier.
#[derive(Debug, clap::Args)]
pub(super) struct WindowArgs {
    /// Try for this time; a block that has begun then comes to its end. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = some_time)]
    duration: Duration,
    /// Stop and undo when throughput or p99 are worse by more than this while it is on: after two blocks where the server
    /// nearly stands still, else after about ten.
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = super::super::pfs::hold::percent)]
    give_up: f64,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// Only the server with this process id.
    #[arg(long, value_parser = super::super::pid)]
    pid: Option<u32>,
}

/// What is turned on and off.
trait Switch {
    /// Why it cannot be.
    type Error;

    /// Turns it on or off. It is off at first.
    fn turn(&mut self, on: bool) -> Result<(), Self::Error>;

    /// What counts that it works; `None` where nothing does.
    fn count(&mut self) -> Result<Option<Count>, Self::Error>;

    /// What shows that it is on where nothing counts that; `None` where it is not: the server did not take all of it.
    fn shown_by(&self) -> Option<&'static str>;
}

/// What a server has counted so far: a number for each of its counters, always in the same order.
#[derive(Clone, Debug, Default)]
struct Count {
    /// Of what only counts while it is on.
    when_on: Vec<u64>,
    /// Of what only counts while it is off.
    when_off: Vec<u64>,
}

/// By how much counters have grown. Some are no counts but levels, and fall.
fn grown(before: &[u64], after: &[u64]) -> u64 {
    let grown = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before));
    grown.fold(0, u64::saturating_add)
}

/// What was counted in windows that were on and in as many that were off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Witness {
    /// Of what should have counted.
    wanted: u64,
    /// Of what should not.
    unwanted: u64,
}

impl Witness {
    fn add(&mut self, is_on: bool, before: &Count, after: &Count) {
        let on = grown(&before.when_on, &after.when_on);
        let off = grown(&before.when_off, &after.when_off);
        let (wanted, unwanted) = if is_on { (on, off) } else { (off, on) };
        self.wanted += wanted;
        self.unwanted += unwanted;
    }

    /// Whether it does what was set. What had begun before a switch counts after it.
    fn is_switched(self) -> bool {
        self.wanted > 0 && self.wanted >= 2 * self.unwanted
    }
}

/// What was found, and how.
struct Report {
    server: Server,
    /// What was switched.
    what: String,
    switched: Switched,
    length: Duration,
    window: Duration,
    /// How long it takes to turn it on or off.
    switch: Duration,
    /// By a signal.
    is_stopped: bool,
    /// No statement came, so that nothing was switched.
    is_idle: bool,
    witness: Option<Witness>,
    /// As [`Switch::shown_by`].
    shown_by: Option<&'static str>,
    /// With what it is compared.
    without: String,
    /// What became slower, so that the trial ended.
    gave_up: Option<Slower>,
}

impl Report {
    /// Whether the server took it, and it was seen that it does something where something counts that.
    fn is_switched(&self) -> bool {
        self.shown_by.is_some() && self.witness.is_none_or(Witness::is_switched)
    }

    /// Whether the trial came to its end and found a price. Who ends it when he likes what he sees has no interval.
    fn is_answer(&self) -> bool {
        self.switched.added_ns.is_some()
            && !self.switched.is_unsound()
            && self.is_switched()
            && self.gave_up.is_none()
            && !self.is_stopped
    }
}

/// A trial that is under way.
struct Trial<'a, S> {
    tosses: Tosses,
    switch: &'a mut S,
    stop: &'a AtomicBool,
    random: Random,
    is_on: bool,
    witness: Option<Witness>,
}

impl<S: Switch> Trial<'_, S> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn turn(&mut self, on: bool) -> Result<(), S::Error> {
        if self.is_on != on {
            self.switch.turn(on)?;
            self.is_on = on;
        }
        Ok(())
    }

    /// Waits, or until it is stopped.
    fn wait(&self, time: Duration) {
        let begun = Instant::now();
        while !self.is_stopped() && begun.elapsed() < time {
            std::thread::sleep((time.saturating_sub(begun.elapsed())).min(LOOK_EVERY));
        }
    }

    /// Whether a statement comes before this time is over. Nothing is switched until then.
    fn has_statements(&mut self, time: Duration, line: &mut Line) -> bool {
        let begun = Instant::now();
        while !self.is_stopped() && begun.elapsed() < time {
            if self.window(Phase::Off, WINDOW_MIN).times.requests > 0 {
                return true;
            }
            line.tell("waits for a statement before anything is switched");
        }
        false
    }

    /// One window of a phase.
    fn window(&mut self, phase: Phase, length: Duration) -> Window {
        self.wait(SETTLE);
        let begun = Instant::now();
        self.tosses.choose(phase.arm());
        self.wait(length);
        self.tosses.choose(Phase::Between.arm());
        let length = begun.elapsed();
        Window { length, times: self.tosses.take(phase.arm()) }
    }

    /// The windows of a block, in random order; `None` if it was stopped before its end.
    fn block(&mut self, length: Duration, is_witnessed: bool) -> Result<Option<Block>, S::Error> {
        let mut order = Phase::OF_BLOCK;
        self.random.shuffle(&mut order);
        let mut block = Block::default();
        for phase in order {
            self.turn(phase.is_on())?;
            let is_witnessed = is_witnessed && phase != Phase::OffAgain;
            let before = if is_witnessed { self.switch.count()? } else { None };
            let window = self.window(phase, length);
            if let Some(before) = before
                && let Some(after) = self.switch.count()?
            {
                let witness = self.witness.get_or_insert_default();
                witness.add(phase.is_on(), &before, &after);
            }
            if self.is_stopped() {
                return Ok(None);
            }
            if let Some(of_block) = block.window_mut(phase) {
                *of_block = window;
            }
        }
        Ok(Some(block))
    }

    /// How long windows are to be, by what a switch takes and how many statements come; `None` if it was stopped.
    fn length(&mut self, switch: &mut Duration) -> Result<Option<Duration>, S::Error> {
        // The first time takes longer.
        for _ in 0..2 {
            let begun = Instant::now();
            for on in [true, false] {
                self.turn(on)?;
                if self.is_stopped() {
                    return Ok(None);
                }
            }
            *switch = begun.elapsed() / 2;
        }
        let seen = self.window(Phase::Off, WINDOW_MIN);
        let statements = seen.times.requests.max(1) as f64;
        let enough = seen.length.mul_f64((STATEMENTS / statements).min(100.0));
        Ok(Some((*switch).max(enough).clamp(WINDOW_MIN, WINDOW_MAX)))
    }

    /// Whether it is still to be counted what was seen of the switch.
    fn is_witnessed(&self, blocks: usize) -> bool {
        blocks < WITNESSED || self.witness.is_some_and(|witness| witness.wanted == 0)
    }
}

/// What a trial needs.
struct Asked<'a> {
    server: Server,
    what: String,
    without: String,
    tosses: Tosses,
    args: &'a WindowArgs,
}

/// Tries until the time is over. What failed in the end is told beside what was found until then. Afterwards it may be on.
fn take<S: Switch>(
    asked: Asked<'_>,
    switch: &mut S,
    stop: &AtomicBool,
) -> (Report, Result<(), S::Error>) {
    let Asked { server, what, without, tosses, args } = asked;
    let random = Random::seeded(monotonic_ns());
    let mut trial = Trial { tosses, switch, stop, random, is_on: false, witness: None };
    let (mut blocks, mut gave_up) = (Blocks::default(), None);
    let (mut window, mut turning) = (WINDOW_MIN, Duration::ZERO);
    let mut is_idle = true;
    let begun = Instant::now();
    trial.tosses.start();
    let mut go = || -> Result<(), S::Error> {
        let mut line = Line::new();
        let mut allowed = GiveUp::new(args.give_up);
        is_idle = !trial.has_statements(args.duration, &mut line);
        if is_idle {
            return Ok(());
        }
        let Some(length) = trial.length(&mut turning)? else { return Ok(()) };
        window = length;
        while begun.elapsed() < args.duration && gave_up.is_none() {
            let is_witnessed = trial.is_witnessed(blocks.count());
            let Some(block) = trial.block(window, is_witnessed)? else { break };
            gave_up = allowed.as_mut().and_then(|allowed| allowed.heed(&block));
            blocks.add(&block);
            line.tell(&text::progress(begun.elapsed(), args.duration, &blocks));
        }
        line.end();
        Ok(())
    };
    let ended = go();
    trial.tosses.end();
    let report = Report {
        server,
        what,
        switched: blocks.found(),
        length: begun.elapsed(),
        window,
        switch: turning,
        is_stopped: trial.is_stopped(),
        is_idle,
        witness: trial.witness,
        shown_by: trial.switch.shown_by(),
        without,
        gave_up,
    };
    (report, ended)
}

/// The server to which a connection leads, watched so that a trial in windows can begin.
fn watch(
    args: &WindowArgs,
    connection: &mut Connection,
    stop: &AtomicBool,
) -> Result<(Capture, Server, Tosses), Failure> {
    // In a trial no statement is collected, so that ours would not be met.
    let mut capture = CaptureArgs::of(args.pid).attach(false, false, stop)?;
    let (pid, _) = own_server::found(&mut capture, connection).map_err(Failure::Config)?;
    drop(capture);
    in_trial(CaptureArgs::of(Some(pid)), stop)
}

/// The only server, watched so that a trial in windows can begin.
fn in_trial(
    mut args: CaptureArgs,
    stop: &AtomicBool,
) -> Result<(Capture, Server, Tosses), Failure> {
    args.trial = Some(Phase::trial());
    let capture = args.attach(false, false, stop)?;
    let server = the_server(&capture)?;
    let tosses =
        capture.tosses().ok_or_else(|| anyhow!("no trial has begun")).map_err(Failure::Cannot)?;
    Ok((capture, server, tosses))
}

/// Prints what was found, and keeps it.
fn show(report: &Report, is_json: bool) -> Result<Outcome, Failure> {
    print(is_json, &json::of(report), || text::of(report))?;
    let Switched { added_ns, base_ns, .. } = &report.switched;
    match added_ns.zip(*base_ns).filter(|_| report.is_answer()) {
        Some((added, base_ns)) => {
            let span = [added.value, added.low, added.high];
            keep(&report.server, &report.what, Method::Windows, span, base_ns)?;
            Ok(Outcome::Done)
        }
        None => Ok(Outcome::No),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_it_should_is_switched() {
        // Beside each counter stands a level that falls.
        let count = |when_on, when_off| Count {
            when_on: vec![when_on, 9_000 - when_on],
            when_off: vec![9_000 - when_off, when_off],
        };
        let mut witness = Witness::default();
        assert!(!witness.is_switched(), "nothing was seen");
        witness.add(true, &count(5, 5), &count(105, 6));
        witness.add(false, &count(105, 6), &count(107, 56));
        assert_eq!(witness, Witness { wanted: 150, unwanted: 3 });
        assert!(witness.is_switched());
        let mut still = Witness::default();
        still.add(true, &count(0, 0), &count(100, 0));
        still.add(false, &count(100, 0), &count(200, 0));
        assert!(!still.is_switched(), "{still:?}");
    }
}
