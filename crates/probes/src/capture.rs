//! Puts the probes together: one carrier, the tap, and the probes that are asked for beside it. No
//! probe knows another; what one must know of the other passes through here.

use std::collections::HashSet;

use waggle_host::monotonic_ns;
use waggle_model::{
    Death, Losses, ProcessorSample, RunningStatement, SessionSettings, Statement, StatementKey,
    Trial,
};

pub use crate::carrier::Amount;
use crate::carrier::{
    Carrier, Plan, RECORD_DYING, RECORD_FATAL, RECORD_IDENTITY, RECORD_LEFT, RECORD_NESTED,
    RECORD_READY, RECORD_RESTS, RECORD_SAMPLE, RECORD_STATEMENT, RECORD_WAIT, RunTime, Session,
    head_of,
};
use crate::coin::{self, Tosses};
use crate::death;
use crate::nested::{self, Coverage};
use crate::profile;
use crate::servers::Instance;
use crate::servers::layout::Layout;
use crate::servers::x_protocol::XEndpoint;
use crate::tap::{self, Clocks, Event, Hook, TapError};
use crate::waits::{self, Waits};

/// Bytes of text that are captured of a statement where nothing else is asked for. The bytes cost next
/// to nothing, and the digest of a text that is cut is not known: `tap/README.md` has the prices.
pub const TEXT_LIMIT: u32 = 16 * 1024;

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
    /// Whether it is told where the time of each statement went ([`crate::waits`]).
    pub waits: bool,
    /// Whether each wait in a statement is told with the stack of its thread, too ([`Event::Sampled`]). It is told only
    /// with the waits.
    pub wait_stacks: bool,
    /// How often per second it is looked what the threads of the servers do on each processor
    /// ([`crate::profile`]); `None`: never.
    pub profile_hz: Option<u32>,
    /// A trial of what each of this costs ([`crate::coin`]).
    pub trial: Option<Trial>,
    /// Drops every nth statement, to test that the loss is noticed. Only for tests.
    pub drop_one_in: Option<u64>,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self {
            hook: None,
            text_limit: TEXT_LIMIT,
            nested: false,
            ready: false,
            waits: false,
            wait_stacks: false,
            profile_hz: None,
            trial: None,
            drop_one_in: None,
        }
    }
}

/// The tap with the probes beside it: the programs in the kernel, and the reader of what they write.
pub struct Tap {
    options: TapOptions,
    /// It goes first: of several programs at one tracepoint the kernel takes the last one away at once. Where the first
    /// one goes, it waits until no processor runs it, which takes seconds on a busy host.
    coin: coin::Probe,
    carrier: Carrier,
    tap: tap::Probe,
    nested: nested::Probe,
    waits: waits::Probe,
    profile: profile::Probe,
    death: death::Probe,
}

impl Tap {
    /// A tap that watches nothing yet.
    ///
    /// # Errors
    ///
    /// If the rings cannot be made: no right to use BPF, or a kernel without it.
    pub fn new(options: TapOptions) -> Result<Tap, TapError> {
        Ok(Tap {
            carrier: Carrier::new()?,
            tap: tap::Probe::new(options.drop_one_in),
            nested: nested::Probe::default(),
            waits: waits::Probe::new(options.wait_stacks),
            profile: profile::Probe::new(options.profile_hz),
            coin: coin::Probe::new(options.trial.clone()),
            death: death::Probe::default(),
            options,
        })
    }

    /// Begins to watch a server, and says on which rung of the ladder.
    ///
    /// # Errors
    ///
    /// If the layout lacks every sign of the end of a statement, or no rung can be used.
    pub fn attach(&mut self, instance: &Instance, layout: &Layout) -> Result<Hook, TapError> {
        self.tap.read_clocks();
        let mut plan = Plan::new(layout, instance.current_thd, self.options.text_limit)?;
        if self.options.ready {
            plan = plan.with_ready();
        }
        let plan = self.coin.prepare(&mut self.carrier, plan)?;
        let hook = self.attach_tap(plan, instance, layout)?;
        if self.options.nested
            && let Some(target) = self.tap.target(instance.pid)
        {
            self.nested.attach(&self.carrier, target, instance);
        }
        if let Some(target) = self.tap.target(instance.pid) {
            self.profile.attach(&self.carrier, target, instance.pid);
            self.death.attach(&self.carrier, target, instance.pid);
        }
        self.coin.attach()?;
        Ok(hook)
    }

    /// Attaches the tap, with the waits where that is asked for and the kernel has what they need: they may cost no
    /// statement.
    fn attach_tap(
        &mut self,
        plan: Plan,
        instance: &Instance,
        layout: &Layout,
    ) -> Result<Hook, TapError> {
        let Tap { options, carrier, tap, waits, .. } = self;
        let (server, only) = ((instance, layout), options.hook);
        if !options.waits {
            return tap.attach(carrier, plan, server, only);
        }
        let with_parts = plan.clone().with_parts();
        waits.prepare(carrier, &with_parts, instance);
        match tap.attach(carrier, with_parts.clone(), server, only) {
            Ok(hook) => {
                waits.attach(carrier, &with_parts, instance);
                if waits.measures(instance.pid) {
                    tap.begin_parts(instance.pid);
                }
                Ok(hook)
            }
            Err(error) => {
                waits.refuse(instance.pid, &error.to_string());
                tap.attach(carrier, plan, server, only).inspect_err(|_| waits.detach(instance.pid))
            }
        }
    }

    /// Goes on with a layout that lost fields, for they did not fit: what they hold is not told any
    /// more. The program stays as it is, so that no statement is missed, unless it decides itself by
    /// what was lost: then another one takes over, and what the first one wrote last counts as lost.
    ///
    /// # Errors
    ///
    /// If every sign of the end of a statement is gone; the server is watched as before.
    pub fn narrow(&mut self, instance: &Instance, layout: &Layout) -> Result<(), TapError> {
        let pid = instance.pid;
        let Some(target) = self.tap.target(pid) else { return Ok(()) };
        let Some(target) = target.narrowed(layout) else {
            return self.attach(instance, layout).map(drop);
        };
        self.nested.narrow(pid, &target);
        self.death.narrow(pid, &target);
        self.tap.narrow(pid, target, layout);
        Ok(())
    }

    /// Says where a server that is watched accepts clients of the X protocol. A reply to one of them that becomes no
    /// statement is counted apart.
    pub fn expect_x_protocol(&mut self, pid: u32, endpoint: &XEndpoint) {
        self.carrier.expect_x_protocol(pid, endpoint);
    }

    /// The servers that are watched in every place in which the kernel looks for this process; none where it has or finds a
    /// free one.
    pub fn in_the_way(&self, pid: u32) -> Vec<u32> {
        self.carrier.in_the_way(pid)
    }

    /// Ends the watch over a server, and says what was lost of it since it was attached. Nothing of it stays in
    /// the kernel. What was not drained, and replies that are held back, are gone: call [`Tap::drain`] and
    /// [`Tap::settle`] before.
    pub fn detach(&mut self, pid: u32) -> Losses {
        let lost = self.nested.detach(pid).plus(&self.tap.detach(&mut self.carrier, pid));
        let lost = lost.plus(&self.waits.losses(pid)).plus(&self.death.detach(pid));
        self.waits.detach(pid);
        self.profile.detach(pid);
        lost
    }

    /// What the trial counts; `None` if none was asked for, or no server is attached yet.
    pub fn tosses(&self) -> Option<Tosses> {
        self.coin.tosses()
    }

    /// What is known of the waits of a server; `None` if they were not asked for.
    pub fn waits(&self, pid: u32) -> Option<&Waits> {
        self.waits.waits(pid)
    }

    /// Notes of each running statement of a server what it waits for. Where waits are not measured, nothing is known.
    /// Returns how many of them have a thread that [`Tap::note_threads`] has to note first.
    pub fn note_waits(&self, pid: u32, running: &mut [RunningStatement]) -> usize {
        if running.is_empty() {
            return 0;
        }
        let Some(now) = self.waits.look(pid) else { return 0 };
        let now_ns = monotonic_ns();
        for statement in running.iter_mut() {
            statement.waits = waits::wait_of(&now, statement, now_ns);
        }
        let is_unnoted = |one: &&RunningStatement| !waits::is_noted(&now, one);
        running.iter().filter(|one| one.command.is_statement()).filter(is_unnoted).count()
    }

    /// Notes what those threads of a server do that are not noted yet: they moved on while they were read.
    pub fn note_threads(&self, pid: u32) {
        self.waits.note_threads(pid);
    }

    /// Statements so far whose waits were longer than they themselves, by more than clocks differ. Their parts were cut.
    pub fn overdrawn(&self) -> u64 {
        self.tap.overdrawn()
    }

    /// How often the program of the waits ran, for every switch of the host, and how long.
    pub fn waits_run_time(&self) -> RunTime {
        self.waits.run_time()
    }

    /// Which statements without a reply of their own are captured of a server; `None` if that
    /// was not asked for.
    pub fn nested(&self, pid: u32) -> Option<&Coverage> {
        self.nested.coverage(pid)
    }

    /// What was seen of the end of a server that has ended, once. Its records are to be drained before.
    pub fn death(&mut self, pid: u32) -> Death {
        let Tap { carrier, tap, death, .. } = self;
        death.take(pid, carrier.untold(pid), |statement| tap.is_past(pid, statement))
    }

    /// Why it is not told how a server ends.
    pub fn death_refusal(&self, pid: u32) -> Option<&str> {
        self.death.refusal(pid)
    }

    /// Why the processor time of a server is not sampled, where that was asked for.
    pub fn profile_refusal(&self, pid: u32) -> Option<&str> {
        self.profile.refusal(pid)
    }

    /// The clocks, for those who read the server's memory themselves.
    pub fn clocks(&self) -> &Clocks {
        self.tap.clocks()
    }

    /// Hands the statements that ended since the last call to `consume`, and returns whether more are
    /// waiting than one turn takes.
    pub fn drain(&mut self, amount: Amount, mut consume: impl FnMut(&Statement<'_>)) -> bool {
        self.drain_events(amount, |event| {
            if let Event::Ended(statement) = event {
                consume(statement);
            }
        })
    }

    /// The same as [`Tap::drain`], with all that there is to tell.
    pub fn drain_events(&mut self, amount: Amount, mut consume: impl FnMut(Event<'_>)) -> bool {
        self.tap.read_clocks();
        let Tap { carrier, tap, nested, profile, waits, death, .. } = self;
        let mut stacks = waits.stacks.as_mut();
        let is_more =
            carrier.drain(amount, &mut |record| match head_of(record).map(|it| it.kind) {
                Some(RECORD_SAMPLE) => {
                    if let Some(sample) = profile.read(record) {
                        consume(Event::Sampled(&sample));
                    }
                }
                Some(kind @ (RECORD_LEFT | RECORD_RESTS)) => {
                    let Some(stacks) = stacks.as_mut() else { return };
                    let take = &mut |sample: &ProcessorSample| consume(Event::Sampled(sample));
                    if kind == RECORD_LEFT {
                        stacks.begins(record, take)
                    } else {
                        stacks.rests(record, take)
                    }
                }
                Some(RECORD_FATAL) => death.signal(record),
                Some(RECORD_DYING) => reached(death, tap, record),
                Some(RECORD_WAIT) => {
                    if let Some(news) = waits::told_of(record) {
                        consume(Event::Waits(&news));
                    }
                }
                _ => read(tap, nested, record, &mut consume),
            });
        if let Some(stacks) = stacks {
            stacks.go_on(monotonic_ns(), &mut |sample| consume(Event::Sampled(sample)));
        }
        is_more
    }

    /// How full the fullest ring was when it was last drained, 0 to 1: from 1 on records are lost.
    pub fn filled(&self) -> f64 {
        self.carrier.filled()
    }

    /// Hands out the statements whose end was not certain, now that every session was looked at:
    /// `running` are the statements that ran in process `pid` at `looked_ns`. Returns those of the look before that
    /// have ended unseen.
    pub fn settle(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        mut consume: impl FnMut(&Statement<'_>),
    ) -> HashSet<StatementKey> {
        self.tap.settle(pid, running, looked_ns, &mut |event| {
            if let Event::Ended(statement) = event {
                consume(statement);
            }
        })
    }

    /// What the session of a running statement has set; `None` if that is not known.
    pub fn settings(&mut self, pid: u32, running: &RunningStatement) -> Option<SessionSettings> {
        self.tap.settings(pid, running)
    }

    /// What was lost of a server since it was attached; nothing once it is watched no more.
    pub fn losses(&self, pid: u32) -> Losses {
        let on_this_side = self.tap.losses(pid).plus(&self.nested.losses(pid));
        let on_this_side = on_this_side.plus(&self.waits.losses(pid)).plus(&self.death.losses(pid));
        self.carrier.losses(pid).plus(&on_this_side)
    }

    /// How often the programs ran and how long, as far as the kernel keeps statistics.
    pub fn run_time(&self) -> RunTime {
        self.tap.run_time()
    }

    /// How often a nested statement was captured and how long the programs at both of its ends
    /// ran, as far as the kernel keeps statistics. The breakpoints themselves cost more.
    pub fn nested_run_time(&self) -> RunTime {
        self.nested.run_time()
    }
}

/// Hands over what a session runs that the end of its server has reached.
fn reached(death: &mut death::Probe, tap: &tap::Probe, record: &[u8]) {
    let Some(head) = head_of(record) else { return };
    let session = Session::of(&head);
    let identity = tap.identity(session);
    death.reached(session, record, &identity, |us, at_ns| tap.start_ns(head.tgid, us, at_ns));
}

/// Hands a record to the probe of its kind.
fn read(
    tap: &mut tap::Probe,
    nested: &mut nested::Probe,
    record: &[u8],
    consume: &mut dyn FnMut(Event<'_>),
) {
    let Some(head) = head_of(record) else { return };
    let session = Session::of(&head);
    match head.kind {
        RECORD_IDENTITY => tap.identify(session, record),
        RECORD_STATEMENT => tap.reply(session, record, consume),
        RECORD_READY => tap.ready(session, head.end_ns, consume),
        RECORD_NESTED => {
            let Some(ended) = nested.read(session, record) else { return };
            if ended.is_applied() {
                tap.ended(session, ended.key());
            }
            let identity = ended.identity(&tap.identity(session));
            if let Some(statement) = ended.statement(&identity) {
                consume(Event::Ended(&statement));
            }
        }
        // It was given up in the kernel.
        _ => {}
    }
}

#[cfg(test)]
mod fuzz;
