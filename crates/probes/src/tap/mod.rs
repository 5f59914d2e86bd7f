//! The tap: every statement that a server ends, from a hook in the kernel.
//!
//! What it costs, what it needs and what it cannot see: `README.md` in this folder.

mod clock;
mod complaint;
mod fires;
mod fold;
mod hook;
mod plan;
mod program;
mod record;
mod ring;
mod skeleton;
mod statistics;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use thiserror::Error;
use waggle_model::{
    Command, Identity, Loss, Losses, Origin, RunningStatement, ServerStatus, Statement,
    StatementKey, Text,
};

pub use clock::Clocks;
pub use hook::Hook;
pub use statistics::RunTimeStatistics;

use crate::nested::{Coverage, Nested, Probes};
use crate::target::Instance;
use crate::target::layout::{Field, Layout};
use fold::{Fold, Session, Whole};
pub(crate) use plan::Plan;
pub(crate) use program::{Programs, add_lost, kernel_error, run_time_of_program};
use record::{Meaning, RECORD_IDENTITY, RECORD_NESTED, RECORD_STATEMENT};
pub(crate) use record::{Reply, read_struct};

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
    /// A map or the ring buffer failed.
    #[error("{what}: {why}")]
    Kernel {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said, with the remedy where one is known.
        why: String,
    },
}

fn reasons(tried: &[(Hook, String)]) -> String {
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
    /// Drops one statement in so many, to show that a loss is noticed. Only for tests.
    pub drop_one_in: Option<u64>,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self { hook: None, text_limit: 4096, nested: false, drop_one_in: None }
    }
}

/// A server that is watched.
struct Target {
    plan: Plan,
    /// The plan of the records of nested statements.
    nested_plan: Plan,
    meaning: Meaning,
    hook: Hook,
    /// What ran when its sessions were last looked at, and has not been seen to end since.
    running: HashSet<StatementKey>,
}

/// What the tap saw beside statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Result sets that were sent inside a statement that went on (a procedure's).
    pub inner_results: u64,
    /// Sends of a session thread that belong to no statement.
    pub foreign_sends: u64,
}

/// The programs in the kernel, and the reader of what they write.
pub struct Tap {
    options: TapOptions,
    programs: Programs,
    nested: Probes,
    targets: HashMap<u32, Target>,
    clocks: Clocks,
    fold: Fold,
    counts: TapCounts,
    lost_here: Losses,
    seen: u64,
}

impl Tap {
    /// A tap that watches nothing yet.
    ///
    /// # Errors
    ///
    /// Where the ring buffer cannot be made: no right to use BPF, or a kernel without it.
    pub fn new(options: TapOptions) -> Result<Tap, TapError> {
        Ok(Tap {
            programs: Programs::new()?,
            nested: Probes::default(),
            options,
            targets: HashMap::new(),
            clocks: Clocks::default(),
            fold: Fold::default(),
            counts: TapCounts::default(),
            lost_here: Losses::default(),
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
        let hook = self.programs.attach(&plan, instance.pid, self.options.hook)?;
        if self.options.nested {
            self.nested.attach(&self.programs, &plan, instance.pid);
        }
        let nested_plan = Nested::plan(&plan);
        let meaning = Meaning::of(layout);
        let target = Target { plan, nested_plan, meaning, hook, running: HashSet::new() };
        self.targets.insert(instance.pid, target);
        Ok(hook)
    }

    /// Ends the watch over a server. Nothing of it stays in the kernel.
    pub fn detach(&mut self, pid: u32) {
        self.nested.detach(pid);
        self.programs.detach(pid);
        self.targets.remove(&pid);
        self.fold.forget(pid);
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

    /// Reads both clocks. To be called at least as often as the ring is drained.
    fn read_clocks(&mut self) {
        let monotonic = nanoseconds(rustix::time::ClockId::Monotonic);
        let wall = nanoseconds(rustix::time::ClockId::Realtime);
        self.clocks.tick(monotonic, wall);
    }

    /// Hands every statement that ended since the last call to `consume`, at most `limit` records
    /// of the ring at a time, and returns the number of records taken.
    pub fn drain(&mut self, limit: usize, mut consume: impl FnMut(&Statement<'_>)) -> usize {
        self.read_clocks();
        let Tap { programs, targets, clocks, fold, counts, lost_here, seen, options, .. } = self;
        programs.drain(limit, &mut |record| {
            let Some(head) = record::head_of(record) else { return };
            let session = Session { tgid: head.tgid, thd: head.thd };
            if head.kind == RECORD_IDENTITY {
                if let Some((_, identity)) = record::identity_of(record) {
                    fold.identify(session, identity);
                }
                return;
            }
            let Some(target) = targets.get(&head.tgid) else { return };
            if head.kind == RECORD_NESTED {
                emit_nested(record, target, clocks, fold, &mut consume);
                return;
            }
            let Some(reply) = Reply::new(record, &target.plan) else { return };
            if head.kind != RECORD_STATEMENT || is_foreign(&reply, target) {
                counts.foreign_sends += 1;
                return;
            }
            let mut emit = |reply: &Reply<'_>, whole: Whole, identity: &Identity| {
                *seen += 1;
                if options.drop_one_in.is_some_and(|n| *seen % n == 0) {
                    lost_here.add(Loss::Injected, 1);
                    return;
                }
                consume(&statement_of(reply, whole, target, clocks, identity));
            };
            let (before, verdict, whole) =
                fold.judge(session, &reply, record, &target.meaning.codes);
            let mut ended = [None, None];
            if let Some((held, whole)) = before
                && let Some(reply) = Reply::new(&held.record, &target.plan)
            {
                emit(&reply, whole, &held.identity);
                ended[0] = Some(held.key);
            }
            if verdict == fold::Verdict::Ended {
                emit(&reply, whole, &fold.identity(session));
                ended[1] = Some(reply.statement_key());
            }
            // Here, since another connection can have the session of this one by the next look.
            if let Some(target) = targets.get_mut(&head.tgid).filter(|it| !it.running.is_empty()) {
                for statement in ended.into_iter().flatten() {
                    target.running.remove(&statement);
                }
            }
        })
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
        let Some(target) = self.targets.get_mut(&pid) else { return };
        let now: HashSet<StatementKey> = running.iter().map(RunningStatement::key).collect();
        let over = self.fold.release(|tgid, statement, end_ns| {
            tgid == pid && end_ns < looked_ns && !now.contains(&statement)
        });
        let unseen = target.running.difference(&now).filter(|gone| !self.fold.saw_end(pid, **gone));
        self.lost_here.add(Loss::EndedUnseen, unseen.count() as u64);
        // A statement can have ended between the look and now, which its reply has told already.
        target.running = running
            .iter()
            .filter(|running| running.command.is_statement())
            .map(RunningStatement::key)
            .filter(|statement| !self.fold.saw_end(pid, *statement))
            .collect();
        let (target, clocks) = (&*target, &self.clocks);
        for (held, whole) in over {
            let Some(reply) = Reply::new(&held.record, &target.plan) else { continue };
            self.seen += 1;
            consume(&statement_of(&reply, whole, target, clocks, &held.identity));
        }
    }

    /// What was lost since the tap was made.
    pub fn losses(&self) -> Losses {
        let mut losses = self.programs.losses();
        self.nested.add_losses(&mut losses);
        for kind in [Loss::Injected, Loss::EndedUnseen] {
            losses.add(kind, self.lost_here.get(kind));
        }
        losses
    }

    /// What was seen beside statements.
    pub fn counts(&self) -> TapCounts {
        TapCounts { inner_results: self.fold.inner_results, ..self.counts }
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

fn nanoseconds(clock: rustix::time::ClockId) -> i64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// A send after the reply of the statement, by something else in the same thread. At a breakpoint
/// after the reply it is the other way round: what was not sent ran inside another statement.
fn is_foreign(reply: &Reply<'_>, target: &Target) -> bool {
    let is_sent = reply.get(Field::IsSent) == Some(1);
    if target.hook == Hook::Uprobe { !is_sent && !target.meaning.logs_early } else { is_sent }
}

/// Hands out a statement that had no reply of its own.
fn emit_nested(
    record: &[u8],
    target: &Target,
    clocks: &Clocks,
    fold: &mut Fold,
    consume: &mut dyn FnMut(&Statement<'_>),
) {
    let Some(reply) = Reply::new(record, &target.nested_plan) else { return };
    let Some(nested) = Nested::of(&reply) else { return };
    let session = Session { tgid: reply.head.tgid, thd: reply.head.thd };
    if nested.is_applied() {
        fold.ended(session, reply.statement_key());
    }
    let identity = nested.identity(&fold.identity(session));
    let whole = statement_of(&reply, Whole::default(), target, clocks, &identity);
    if let Some(statement) = nested.statement(&reply, &target.meaning.codes, whole) {
        consume(&statement);
    }
}

fn statement_of<'a>(
    reply: &Reply<'a>,
    whole: Whole,
    target: &Target,
    clocks: &Clocks,
    identity: &'a Identity,
) -> Statement<'a> {
    let Meaning { clock, codes, .. } = &target.meaning;
    let end_ns = reply.head.end_ns;
    let start_ns = reply.get(Field::StartTime).and_then(|us| clocks.start_ns(*clock, us, end_ns));
    let since_start = |at: u64| start_ns.map(|start| at.saturating_sub(start));
    let status = reply.get(Field::DiagnosticsStatus).map(|status| status as u32);
    // The query cache answers without a status and counts no rows: what stands there is older. Only
    // its first send is recorded.
    let is_counted = status != Some(codes.empty);
    let counted = |field: Field| reply.get(field).filter(|_| is_counted);
    let only_if = |code: u32, field: Field| {
        if status == Some(code) { reply.get(field) } else { Some(0) }
    };
    Statement {
        pid: reply.head.tgid,
        thd: reply.head.thd,
        connection_id: reply.get(Field::ConnectionId),
        command: reply.get(Field::Command).map(|number| Command(number as u8)),
        origin: Origin::Client,
        noted_start_us: reply.get(Field::StartTime),
        end_ns,
        latency_ns: since_start(end_ns),
        first_byte_ns: since_start(whole.first_byte_ns),
        text: text_of(reply),
        identity,
        rows_sent: counted(Field::RowsSent),
        rows_examined: counted(Field::RowsExamined),
        rows_affected: only_if(codes.ok, Field::RowsAffected),
        lock_ns: record::lock_ns(reply, &target.meaning),
        error: only_if(codes.error, Field::ErrorNumber).map(|number| number as u32),
        server_status: counted(Field::ServerStatus).map(|bits| ServerStatus(bits as u32)),
        bytes_sent: (target.hook.knows_bytes() && is_counted).then_some(whole.bytes),
        client_gone: reply.head.result < 0,
    }
}

fn text_of<'a>(reply: &Reply<'a>) -> Option<Text<'a>> {
    let length = reply.get(Field::QueryLength)?;
    let is_there = reply.get(Field::QueryText)? != 0 && length > 0;
    let is_read = reply.head.text_unreadable == 0;
    (is_there && is_read).then_some(Text { bytes: reply.text, length })
}
