//! The tap: a kernel hook that reports every statement as it ends.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod clock;
mod fires;
mod fold;
mod hook;
mod program;
mod reader;
mod settings;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use thiserror::Error;
use waggle_host::{monotonic_ns, wall_ns};
use waggle_model::{
    Identity, LockWaitNews, Loss, Losses, ProcessorSample, RunningStatement, SessionSettings,
    Statement, StatementKey,
};

pub use clock::{Clocks, ServerClock};
pub use hook::Hook;

use crate::carrier::{Carrier, CarrierError, Meaning, Plan, RunTime, Session, Target};
use crate::servers::Instance;
use crate::servers::layout::{Field, Layout};
use fold::Fold;
use program::Programs;
use reader::Emitter;

/// Both clocks are read at once where that takes less, nanoseconds; so often is it tried.
const READINGS_APART_NS: u64 = 2_000;
const READINGS: usize = 5;

/// Why the tap cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TapError {
    /// No rung of the ladder, or not the one that was asked for, can be used.
    #[error("no hook can be used: {}", reasons(.0))]
    NoHook(Vec<(Hook, String)>),
    /// The layout lacks too much, or the kernel refuses.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
}

fn reasons(tried: &[(Hook, String)]) -> String {
    if let [(_, why), others @ ..] = tried
        && !others.is_empty()
        && others.iter().all(|(_, other)| other == why)
    {
        return why.clone();
    }
    tried.iter().map(|(hook, why)| format!("{hook}: {why}")).collect::<Vec<_>>().join("; ")
}

/// What the probes tell, in the order of time within a session.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A statement ended.
    Ended(&'a Statement<'a>),
    /// A session waits for its next request; only where [`crate::capture::TapOptions::ready`] asks
    /// for it.
    Ready(Ready),
    /// What a thread did at a moment; only where [`crate::capture::TapOptions::profile_hz`] asks for it.
    Sampled(&'a ProcessorSample),
    /// A statement begins to wait for a lock, or a long wait of it has ended; only where
    /// [`crate::capture::TapOptions::waits`] asks for it.
    Waits(&'a LockWaitNews),
}

/// A session that waits for its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its process.
    pub pid: u32,
    /// The statement that it ended last.
    pub statement: StatementKey,
    /// Since when, nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

/// A server that the tap watches.
struct Tapped {
    target: Target,
    hook: Hook,
    clock: ServerClock,
    /// A statement need not have a thread, so its parts are not known.
    is_pooled: bool,
    /// From when on the parts of statements are measured, nanoseconds of `CLOCK_MONOTONIC`; `None` if they are not.
    parts_since_ns: Option<u64>,
}

/// The tap of every server.
pub(crate) struct Probe {
    programs: Programs,
    targets: HashMap<u32, Tapped>,
    fold: Fold,
    emitter: Emitter,
}

impl Probe {
    /// Watches nothing yet. Drops every nth statement where `drop_one_in` says so.
    pub(crate) fn new(drop_one_in: Option<u64>) -> Probe {
        Probe {
            programs: Programs::default(),
            targets: HashMap::new(),
            fold: Fold::default(),
            emitter: Emitter::dropping(drop_one_in),
        }
    }

    /// One that reads the records of a server, as if its program were there.
    #[cfg(test)]
    pub(crate) fn reading(pid: u32, target: Target, hook: Hook, layout: &Layout) -> Probe {
        let mut probe = Probe::new(None);
        probe.emitter.settings.watch(pid, layout);
        let clock = ServerClock { clock: layout.clock, ahead_ns: Some(0) };
        let (is_pooled, parts_since_ns) = (false, None);
        let tapped = Tapped { target, hook, clock, is_pooled, parts_since_ns };
        probe.targets.insert(pid, tapped);
        probe
    }

    /// Attaches a program to a server on the first rung of the ladder that works, or on `only`.
    pub(crate) fn attach(
        &mut self,
        carrier: &mut Carrier,
        plan: Plan,
        (instance, layout): (&Instance, &Layout),
        only: Option<Hook>,
    ) -> Result<Hook, TapError> {
        let (hook, program) = self.programs.attach(carrier, &plan, instance, only)?;
        self.emitter.settings.watch(instance.pid, layout);
        let target = Target { program, plan, meaning: Meaning::of(layout) };
        let is_pooled = instance.waiting.is_pooled;
        let clock = ServerClock::of(layout, instance);
        let tapped = Tapped { target, hook, clock, is_pooled, parts_since_ns: None };
        self.targets.insert(instance.pid, tapped);
        Ok(hook)
    }

    /// From now on the parts of a server's statements are measured.
    pub(crate) fn begin_parts(&mut self, pid: u32) {
        if let Some(tapped) = self.targets.get_mut(&pid) {
            tapped.parts_since_ns = Some(waggle_host::monotonic_ns());
        }
    }

    /// How the records of a server are read, so that other probes write theirs alike.
    pub(crate) fn target(&self, pid: u32) -> Option<&Target> {
        self.targets.get(&pid).map(|tapped| &tapped.target)
    }

    /// Goes on with a layout that lost fields; the program stays as it is.
    pub(crate) fn narrow(&mut self, pid: u32, target: Target, layout: &Layout) {
        let Some(tapped) = self.targets.get_mut(&pid) else { return };
        tapped.target = target;
        tapped.clock.clock = layout.clock;
        self.fold.distrust(pid, |told| tapped.target.meaning.trusted(told));
        self.emitter.settings.watch(pid, layout);
    }

    /// Ends the watch over a server, and says what was lost of it; a program that serves no other is unloaded.
    pub(crate) fn detach(&mut self, carrier: &mut Carrier, pid: u32) -> Losses {
        let lost = carrier.dismiss(pid).plus(&self.losses(pid));
        self.programs.release(pid);
        self.targets.remove(&pid);
        self.emitter.running.remove(&pid);
        self.emitter.lost.remove(&pid);
        self.fold.forget(pid);
        self.emitter.settings.forget(pid);
        lost
    }

    /// The clocks as they were last read.
    pub(crate) fn clocks(&self) -> &Clocks {
        &self.emitter.clocks
    }

    /// Reads both clocks. To be called at least as often as the rings are drained.
    pub(crate) fn read_clocks(&mut self) {
        // Who loses the processor between two readings sees them far apart.
        for _ in 0..READINGS {
            let (before, wall, after) = (monotonic_ns(), wall_ns(), monotonic_ns());
            let apart = after.saturating_sub(before);
            if apart < READINGS_APART_NS {
                self.emitter.clocks.tick((before + apart / 2).cast_signed(), wall.cast_signed());
                return;
            }
        }
        self.emitter.clocks.tick(monotonic_ns().cast_signed(), wall_ns().cast_signed());
    }

    /// When a statement began for which a server noted this start and that was seen at `seen_ns`, as [`Clocks::start_ns`].
    pub(crate) fn start_ns(&self, pid: u32, noted_us: u64, seen_ns: u64) -> Option<u64> {
        self.clocks().start_ns(self.targets.get(&pid)?.clock, noted_us, seen_ns)
    }

    /// Who a session is; the default where it never said.
    pub(crate) fn identity(&self, session: Session) -> Arc<Identity> {
        self.fold.identity(session)
    }

    /// Whether a session was seen to go on after a statement.
    pub(crate) fn is_past(&self, pid: u32, statement: StatementKey) -> bool {
        self.fold.is_past(pid, statement)
    }

    /// Notes that a statement ended which sends no reply.
    pub(crate) fn ended(&mut self, session: Session, statement: StatementKey) {
        self.fold.ended(session, statement);
    }

    /// Hands out the statements whose end was not certain, now that every session was looked at:
    /// `running` are the statements that ran in process `pid` at `looked_ns`. Returns those of the look before that
    /// have ended unseen.
    pub(crate) fn settle(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        consume: &mut dyn FnMut(Event<'_>),
    ) -> HashSet<StatementKey> {
        let Probe { targets, fold, emitter, .. } = self;
        let Some(tapped) = targets.get(&pid) else { return HashSet::new() };
        let now: HashSet<StatementKey> = running.iter().map(RunningStatement::key).collect();
        let has_start = tapped.target.plan.at(Field::StartTime).is_some();
        let over = fold.release(|tgid, statement, end_ns| {
            // Without a start a session that runs anything may still run this.
            let noted_start_us = if has_start { statement.noted_start_us } else { 0 };
            let runs = now.contains(&StatementKey { noted_start_us, ..statement });
            tgid == pid && end_ns < looked_ns && !runs
        });
        let before = emitter.running.entry(pid).or_default();
        let unseen = before.difference(&now).filter(|gone| !fold.saw_end(pid, **gone));
        let unseen: HashSet<StatementKey> = unseen.copied().collect();
        // A statement can have ended between the look and now, which its reply has told already; another connection
        // can have its session by now.
        *before = running
            .iter()
            .filter(|running| running.command.is_statement())
            .map(RunningStatement::key)
            .filter(|statement| !fold.is_past(pid, *statement))
            .collect();
        emitter.lost.entry(pid).or_default().add(Loss::EndedUnseen, unseen.len() as u64);
        for (held, whole) in over {
            emitter.held(tapped, &held, whole, consume);
        }
        unseen
    }

    /// What the session of a running statement has set; `None` if that is not known.
    pub(crate) fn settings(
        &mut self,
        pid: u32,
        running: &RunningStatement,
    ) -> Option<SessionSettings> {
        let session = Session { tgid: pid, thd: running.thd };
        self.emitter.settings.of_session(session, running.connection_id)
    }

    /// What has been lost on this side of a server that is watched.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        let mut lost = self.emitter.lost.get(&pid).copied().unwrap_or_default();
        lost.add(Loss::SessionsFull, self.fold.forgotten(pid));
        lost
    }

    /// Statements so far whose parts were more than their latency.
    pub(crate) fn overdrawn(&self) -> u64 {
        self.emitter.overdrawn
    }

    /// How often the programs ran and how long.
    pub(crate) fn run_time(&self) -> RunTime {
        self.programs.run_time()
    }
}
