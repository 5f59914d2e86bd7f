//! Turns the records of the tap into events.

use std::collections::{HashMap, HashSet};

use waggle_model::{Command, Identity, Loss, Losses, Parts, Statement, StatementKey, TimeClass};

use super::clock::Clocks;
use super::fold::{Held, Verdict, Whole};
use super::hook::Hook;
use super::settings::Settings;
use super::{Event, Probe, Ready, Tapped};
use crate::carrier::{Session, SessionData, identity_of, split_of};
use crate::servers::layout::Field;

/// What handing out statements needs.
#[derive(Default)]
pub(super) struct Emitter {
    pub(super) clocks: Clocks,
    /// What ran in each server when its sessions were last looked at, and has not been seen to end
    /// since.
    pub(super) running: HashMap<u32, HashSet<StatementKey>>,
    pub(super) settings: Settings,
    /// Statements so far.
    seen: u64,
    /// Drops every nth statement.
    drop_one_in: Option<u64>,
    /// By server.
    pub(super) lost: HashMap<u32, Losses>,
    /// Statements whose parts were more than their latency, and were cut.
    pub(super) overdrawn: u64,
}

impl Probe {
    /// A session tells who it is.
    pub(crate) fn identify(&mut self, session: Session, record: &[u8]) {
        let Some(tapped) = self.targets.get(&session.tgid) else { return };
        if let Some(identity) = identity_of(record) {
            self.fold.identify(session, tapped.target.meaning.trusted(identity));
        }
    }

    /// A session sent a reply.
    pub(crate) fn reply(
        &mut self,
        session: Session,
        record: &[u8],
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(tapped) = self.targets.get(&session.tgid) else { return };
        let Some(reply) = tapped.target.read(record, &mut self.emitter.lost) else { return };
        if is_foreign(&reply, tapped) {
            let is_known = self.fold.knows(session, reply.statement_key());
            if !is_known && tapped.hook != Hook::Uprobe {
                self.emitter.left_out(&reply);
            }
            return;
        }
        let codes = &tapped.target.meaning.codes;
        let (before, verdict, whole) = self.fold.judge(session, &reply, record, codes);
        if let Some((held, whole)) = before {
            self.emitter.held(tapped, &held, whole, consume);
        }
        match verdict {
            Verdict::Ended => {
                let identity = self.fold.identity(session);
                self.emitter.emit(tapped, &reply, whole, &identity, consume);
            }
            Verdict::Repeated | Verdict::Disabled => self.emitter.left_out(&reply),
            Verdict::GoesOn | Verdict::Held => {}
        }
    }

    /// The session waits for its next request, so what was held back is over.
    pub(crate) fn ready(
        &mut self,
        session: Session,
        at_ns: u64,
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(tapped) = self.targets.get(&session.tgid) else { return };
        if let Some((held, whole)) = self.fold.release_of(session) {
            self.emitter.held(tapped, &held, whole, consume);
        }
        if let Some(statement) = self.fold.last_of(session) {
            consume(Event::Ready(Ready { pid: session.tgid, statement, at_ns }));
        }
    }
}

impl Emitter {
    /// One that drops every nth statement.
    pub(super) fn dropping(drop_one_in: Option<u64>) -> Emitter {
        Emitter { drop_one_in, ..Emitter::default() }
    }

    /// Hands out a statement whose reply was held back.
    pub(super) fn held(
        &mut self,
        tapped: &Tapped,
        held: &Held,
        whole: Whole,
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        // Another program may have taken over since.
        if let Some(reply) = tapped.target.read(&held.record, &mut self.lost) {
            self.emit(tapped, &reply, whole, &held.identity, consume);
        }
    }

    /// A reply became no statement: counts it, where its command runs one.
    fn left_out(&mut self, reply: &SessionData<'_>) {
        if runs_one(reply) {
            self.lost.entry(reply.head.tgid).or_default().add(Loss::NoStatement, 1);
        }
    }

    fn emit(
        &mut self,
        tapped: &Tapped,
        reply: &SessionData<'_>,
        whole: Whole,
        identity: &Identity,
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        // Here, since another connection can have the session of this one by the next look.
        if let Some(running) = self.running.get_mut(&reply.head.tgid) {
            running.remove(&reply.statement_key());
        }
        self.seen += 1;
        if self.drop_one_in.is_some_and(|n| self.seen.is_multiple_of(n)) {
            self.lost.entry(reply.head.tgid).or_default().add(Loss::Injected, 1);
            return;
        }
        let settings = self.settings.of(reply);
        let plan = &tapped.target.plan;
        if plan.at(Field::Command).is_none() && plan.config.has_text == 1 {
            // Whose command is not known and who has no text is most likely a ping or a login.
            if reply.text.is_empty() {
                return;
            }
        }
        let mut statement = statement_of(reply, whole, tapped, &self.clocks, identity);
        let split = statement.latency_ns.and_then(|latency_ns| split_of(reply, latency_ns));
        if let Some(split) = split.filter(|_| !tapped.is_pooled) {
            statement.parts = Some(split.parts);
            statement.usage = Some(split.usage);
            statement.after_reply_before_ns = split.after_reply_before_ns;
            self.overdrawn += u64::from(split.is_overdrawn);
        } else if tapped.parts_since_ns.is_some_and(|since| statement.end_ns <= since) {
            statement.parts = statement.latency_ns.map(all_before);
        }
        let shows_text = plan.config.has_text == 1 && reply.head.text_unreadable == 0;
        if shows_text && contradicts_itself(&statement) {
            self.lost.entry(statement.pid).or_default().add(Loss::NoStatement, 1);
        }
        consume(Event::Ended(&Statement { settings, ..statement }));
    }
}

/// Whether the command runs a statement; where that is not known, whether there is a text.
fn runs_one(reply: &SessionData<'_>) -> bool {
    match reply.get(Field::Command) {
        Some(number) => Command(number as u8).is_statement(),
        None => !reply.text.is_empty(),
    }
}

/// The parts of a statement that ended before parts were measured.
fn all_before(latency_ns: u64) -> Parts {
    let mut parts = Parts::default();
    parts.add(TimeClass::BeforeAttach, latency_ns);
    parts
}

/// Whether a reply says that all went well, and has a text that its command cannot have, or lacks one
/// that it must have.
fn contradicts_itself(statement: &Statement<'_>) -> bool {
    let expected = statement.command.and_then(Command::has_text);
    statement.error == Some(0)
        && expected.is_some_and(|has_one| has_one != statement.text.is_some())
}

/// A send after the reply of the statement, by something else in the same thread. At a breakpoint
/// after the reply it is the other way round: what was not sent ran inside another statement.
fn is_foreign(reply: &SessionData<'_>, tapped: &Tapped) -> bool {
    let Some(is_sent) = reply.get(Field::IsSent).map(|sent| sent == 1) else { return false };
    if tapped.hook == Hook::Uprobe {
        !is_sent && !tapped.target.meaning.logs_early
    } else {
        is_sent
    }
}

fn statement_of<'a>(
    reply: &SessionData<'a>,
    whole: Whole,
    tapped: &Tapped,
    clocks: &Clocks,
    identity: &'a Identity,
) -> Statement<'a> {
    let Tapped { target, hook, clock, .. } = tapped;
    let end_ns = reply.head.end_ns;
    let start_ns = match reply.get(Field::StartTime) {
        Some(us) => clocks.start_ns(*clock, us, end_ns),
        None => Some(whole.request_ns).filter(|at| *at != 0),
    };
    let since_start = |at: u64| start_ns.map(|start| at.saturating_sub(start));
    // The query cache answers without a status, and only its first send is recorded.
    let is_whole = reply.status() != Some(target.meaning.codes.empty);
    Statement {
        latency_ns: since_start(end_ns),
        first_byte_ns: since_start(whole.first_byte_ns),
        bytes_sent: (hook.knows_bytes() && is_whole).then_some(whole.bytes),
        ..target.statement(reply, identity)
    }
}
