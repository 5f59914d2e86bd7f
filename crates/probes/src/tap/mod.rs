//! The tap: every statement that a server ends, from a hook in the kernel.
//!
//! What it costs, what it needs and what it cannot see: `README.md` in this folder.

mod clock;
mod complaint;
mod fires;
mod fold;
mod hook;
mod mapped;
mod plan;
mod program;
mod reader;
mod record;
mod ring;
mod settings;
mod skeleton;
mod statistics;
mod targets;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use thiserror::Error;
use waggle_model::{Loss, Losses, RunningStatement, SessionSettings, Statement, StatementKey};

pub use clock::Clocks;
pub use hook::Hook;
pub use statistics::RunTimeStatistics;

use crate::nested::{Coverage, Nested, Probes};
use crate::target::Instance;
use crate::target::layout::Layout;
use fold::{Fold, Session};
pub(crate) use plan::Plan;
pub(crate) use program::{Programs, kernel_error, run_time_of_program};
use reader::{Emitter, Reader};
use record::Meaning;
pub(crate) use record::{Reply, read_struct};
use settings::Settings;

/// Why the tap cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TapError {
    /// The layout lacks what nothing works without.
    #[error("build {build}: the field {field} is not known: {why}; see `waggle doctor`")]
    Layout {
        /// The build.
        build: String,
        /// The field.
        field: &'static str,
        /// Why it is not known.
        why: String,
    },
    /// No rung of the ladder, or not the one that was asked for, can be used.
    #[error("no hook can be used: {}", reasons(.0))]
    NoHook(Vec<(Hook, String)>),
    /// A map failed.
    #[error("{what}: {why}")]
    Kernel {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said, with the remedy where one is known.
        why: String,
    },
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

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct TapOptions {
    /// The only rung to try; `None` tries the ladder.
    pub hook: Option<Hook>,
    /// Bytes of text that are captured of a statement, 256 to 65,536.
    pub text_limit: u32,
    /// Whether statements without a reply of their own are captured as well ([`crate::nested`]).
    pub nested: bool,
    /// Whether sessions tell when they wait for their next request ([`Event::Ready`]), to compare
    /// with the server's own times. It adds a look at every receive, and needs Linux 6.3.
    pub ready: bool,
    /// Drops one statement in so many, to show that a loss is noticed. Only for tests.
    pub drop_one_in: Option<u64>,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self { hook: None, text_limit: 4096, nested: false, ready: false, drop_one_in: None }
    }
}

/// A server that is watched.
struct Target {
    /// The number of the program that serves it.
    program: u32,
    plan: Plan,
    /// The plan of the records of nested statements.
    nested_plan: Plan,
    meaning: Meaning,
    hook: Hook,
}

/// What the tap tells, in the order of time within a session.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A statement ended.
    Ended(&'a Statement<'a>),
    /// A session waits for its next request; only where [`TapOptions::ready`] asks for it.
    Ready(Ready),
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

/// The programs in the kernel, and the reader of what they write.
pub struct Tap {
    options: TapOptions,
    programs: Programs,
    nested: Probes,
    targets: HashMap<u32, Target>,
    /// What ran in each when its sessions were last looked at, and has not been seen to end since.
    running: HashMap<u32, HashSet<StatementKey>>,
    clocks: Clocks,
    fold: Fold,
    settings: Settings,
    /// What was lost of each server on this side.
    lost_here: HashMap<u32, Losses>,
    seen: u64,
}

impl Tap {
    /// A tap that watches nothing yet.
    ///
    /// # Errors
    ///
    /// Where the rings cannot be made: no right to use BPF, or a kernel without it.
    pub fn new(options: TapOptions) -> Result<Tap, TapError> {
        Ok(Tap {
            programs: Programs::new(options.ready)?,
            nested: Probes::default(),
            options,
            targets: HashMap::new(),
            running: HashMap::new(),
            clocks: Clocks::default(),
            fold: Fold::default(),
            settings: Settings::default(),
            lost_here: HashMap::new(),
            seen: 0,
        })
    }

    /// Begins to watch a server, and says on which rung of the ladder.
    ///
    /// # Errors
    ///
    /// Where the layout lacks what nothing works without, or no rung can be used.
    pub fn attach(&mut self, instance: &Instance, layout: &Layout) -> Result<Hook, TapError> {
        self.read_clocks();
        let plan = Plan::new(layout, instance.current_thd, self.options.text_limit)?;
        let (hook, program) = self.programs.attach(&plan, instance.pid, self.options.hook)?;
        if self.options.nested {
            self.nested.attach(&self.programs, &plan, instance.pid, program);
        }
        self.settings.watch(instance.pid, layout);
        let nested_plan = Nested::plan(&plan);
        let meaning = Meaning::of(layout);
        self.targets.insert(instance.pid, Target { program, plan, nested_plan, meaning, hook });
        Ok(hook)
    }

    /// Goes on with a layout that lost fields, for they did not fit: what they hold is not told any
    /// more. The programs stay as they are, so that no statement is missed.
    ///
    /// # Errors
    ///
    /// Where a field is gone that nothing works without; the server is watched as before.
    pub fn narrow(&mut self, pid: u32, layout: &Layout) -> Result<(), TapError> {
        let Some(target) = self.targets.get_mut(&pid) else { return Ok(()) };
        target.plan = target.plan.narrowed(layout)?;
        target.nested_plan = Nested::plan(&target.plan);
        target.meaning = Meaning::of(layout);
        self.fold.distrust(pid, |told| target.meaning.trusted(told));
        self.settings.watch(pid, layout);
        Ok(())
    }

    /// Ends the watch over a server. Nothing of it stays in the kernel. What was not drained, and
    /// replies that are held back, are gone: call [`Tap::drain`] and [`Tap::settle`] before.
    pub fn detach(&mut self, pid: u32) {
        self.nested.detach(pid);
        self.programs.detach(pid);
        self.targets.remove(&pid);
        self.running.remove(&pid);
        self.fold.forget(pid);
        self.settings.forget(pid);
    }

    /// Which statements without a reply of their own are captured of a server; `None` where that
    /// was not asked for.
    pub fn nested(&self, pid: u32) -> Option<&Coverage> {
        self.nested.coverage(pid)
    }

    /// The clocks, for those who read the server's memory themselves.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Reads both clocks. To be called at least as often as the rings are drained.
    fn read_clocks(&mut self) {
        let monotonic = nanoseconds(rustix::time::ClockId::Monotonic);
        let wall = nanoseconds(rustix::time::ClockId::Realtime);
        self.clocks.tick(monotonic, wall);
    }

    /// Hands every statement that ended since the last call to `consume`, at most `limit` records
    /// of the rings at a time, and returns the number of records taken.
    pub fn drain(&mut self, limit: usize, mut consume: impl FnMut(&Statement<'_>)) -> usize {
        self.drain_events(limit, |event| {
            if let Event::Ended(statement) = event {
                consume(statement);
            }
        })
    }

    /// The same as [`Tap::drain`], with all that there is to tell.
    pub fn drain_events(&mut self, limit: usize, mut consume: impl FnMut(Event<'_>)) -> usize {
        self.read_clocks();
        let Tap { programs, targets, running, clocks, fold, settings, lost_here, seen, .. } = self;
        let drop_one_in = self.options.drop_one_in;
        let emitter = Emitter { clocks, running, settings, seen, drop_one_in, lost: lost_here };
        let mut reader = Reader { targets, fold, emitter };
        programs.drain(limit, &mut |record| reader.read(record, &mut consume))
    }

    /// Hands out the statements whose end was not certain, now that every session was looked at:
    /// `running` are the statements that ran in process `pid` at `looked_ns`.
    pub fn settle(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        mut consume: impl FnMut(&Statement<'_>),
    ) {
        let Tap { targets, running: before, fold, lost_here, .. } = self;
        let Some(target) = targets.get(&pid) else { return };
        let now: HashSet<StatementKey> = running.iter().map(RunningStatement::key).collect();
        let over = fold.release(|tgid, statement, end_ns| {
            tgid == pid && end_ns < looked_ns && !now.contains(&statement)
        });
        let before = before.entry(pid).or_default();
        let unseen = before.difference(&now).filter(|gone| !fold.saw_end(pid, **gone));
        lost_here.entry(pid).or_default().add(Loss::EndedUnseen, unseen.count() as u64);
        // A statement can have ended between the look and now, which its reply has told already.
        *before = running
            .iter()
            .filter(|running| running.command.is_statement())
            .map(RunningStatement::key)
            .filter(|statement| !fold.saw_end(pid, *statement))
            .collect();
        let Tap { running, clocks, settings, lost_here, seen, .. } = self;
        let drop_one_in = self.options.drop_one_in;
        let mut emitter = Emitter { clocks, running, settings, seen, drop_one_in, lost: lost_here };
        for (held, whole) in over {
            emitter.held(target, &held, whole, &mut |event| {
                if let Event::Ended(statement) = event {
                    consume(statement);
                }
            });
        }
    }

    /// What the session of a running statement has set; `None` where that is not known.
    pub fn settings(&mut self, pid: u32, running: &RunningStatement) -> Option<SessionSettings> {
        let session = Session { tgid: pid, thd: running.thd };
        self.settings.of_session(session, running.connection_id)
    }

    /// What was lost of a server since it was first watched, also when it is watched no more.
    pub fn losses(&self, pid: u32) -> Losses {
        let mut here = self.lost_here.get(&pid).copied().unwrap_or_default();
        here.add(Loss::SessionsFull, self.fold.forgotten(pid));
        self.programs.losses(pid).plus(&here)
    }

    /// How often the programs ran and how long, as far as the kernel keeps statistics.
    pub fn run_time(&self) -> RunTime {
        self.programs.run_time()
    }

    /// How often a nested statement was captured and how long the programs at both of its ends
    /// ran, as far as the kernel keeps statistics. The breakpoints themselves cost more.
    pub fn nested_run_time(&self) -> RunTime {
        self.nested.run_time()
    }
}

/// The kernel's statistics of the programs (`run_cnt` and `run_time_ns` of `bpf_prog_info`). They
/// only grow while `BPF_ENABLE_STATS` is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    /// How often a program ran, for any process of the host.
    pub runs: u64,
    /// How long they ran in all.
    pub time: Duration,
}

fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::ClockId::Monotonic).unsigned_abs()
}

fn nanoseconds(clock: rustix::time::ClockId) -> i64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
