//! From a record of the rings to what is told.

use std::collections::{HashMap, HashSet};

use waggle_model::{
    Command, Identity, Loss, Losses, Origin, ServerStatus, Statement, StatementKey, Text,
};

use super::clock::Clocks;
use super::fold::{Fold, Held, Session, Verdict, Whole};
use super::hook::Hook;
use super::record::{
    self, Meaning, RECORD_IDENTITY, RECORD_NESTED, RECORD_READY, RECORD_STATEMENT, Reply,
};
use super::settings::Settings;
use super::{Event, Ready, Target};
use crate::nested::Nested;
use crate::target::layout::Field;

/// What reading records needs of the tap.
pub(super) struct Reader<'t> {
    pub(super) targets: &'t HashMap<u32, Target>,
    pub(super) fold: &'t mut Fold,
    pub(super) emitter: Emitter<'t>,
}

/// What handing out statements needs.
pub(super) struct Emitter<'t> {
    pub(super) clocks: &'t Clocks,
    /// What ran in each server when its sessions were last looked at, and has not ended since.
    pub(super) running: &'t mut HashMap<u32, HashSet<StatementKey>>,
    pub(super) settings: &'t mut Settings,
    /// Statements so far.
    pub(super) seen: &'t mut u64,
    pub(super) drop_one_in: Option<u64>,
    /// By server.
    pub(super) lost: &'t mut HashMap<u32, Losses>,
}

impl Reader<'_> {
    /// Takes one record, and tells what it shows.
    pub(super) fn read(&mut self, record: &[u8], consume: &mut dyn FnMut(Event<'_>)) {
        let Some(head) = record::head_of(record) else { return };
        let session = Session { tgid: head.tgid, thd: head.thd };
        match head.kind {
            RECORD_IDENTITY => {
                let Some(target) = self.targets.get(&session.tgid) else { return };
                if let Some(identity) = record::identity_of(record) {
                    self.fold.identify(session, target.meaning.trusted(identity));
                }
            }
            RECORD_STATEMENT => self.reply(session, record, consume),
            RECORD_READY => self.ready(session, head.end_ns, consume),
            RECORD_NESTED => self.nested(session, record, consume),
            // It was given up in the kernel.
            _ => {}
        }
    }

    fn reply(&mut self, session: Session, record: &[u8], consume: &mut dyn FnMut(Event<'_>)) {
        let Some(target) = self.targets.get(&session.tgid) else { return };
        let Some(reply) = Reply::new(record, &target.plan) else { return };
        if !self.emitter.understands(&reply, target) {
            return;
        }
        if is_foreign(&reply, target) {
            return;
        }
        let codes = &target.meaning.codes;
        let (before, verdict, whole) = self.fold.judge(session, &reply, record, codes);
        if let Some((held, whole)) = before {
            self.emitter.held(target, &held, whole, consume);
        }
        if verdict == Verdict::Ended {
            let identity = self.fold.identity(session);
            self.emitter.emit(target, &reply, whole, &identity, consume);
        }
    }

    /// The session waits for its next request, so what was held back is over.
    fn ready(&mut self, session: Session, at_ns: u64, consume: &mut dyn FnMut(Event<'_>)) {
        let Some(target) = self.targets.get(&session.tgid) else { return };
        if let Some((held, whole)) = self.fold.release_of(session) {
            self.emitter.held(target, &held, whole, consume);
        }
        if let Some(statement) = self.fold.last_of(session) {
            consume(Event::Ready(Ready { pid: session.tgid, statement, at_ns }));
        }
    }

    /// A statement that had no reply of its own.
    fn nested(&mut self, session: Session, record: &[u8], consume: &mut dyn FnMut(Event<'_>)) {
        let Some(target) = self.targets.get(&session.tgid) else { return };
        let Some(reply) = Reply::new(record, &target.nested_plan) else { return };
        if !self.emitter.understands(&reply, target) {
            return;
        }
        let Some(nested) = Nested::of(&reply) else { return };
        if nested.is_applied() {
            self.fold.ended(session, reply.statement_key());
        }
        let identity = nested.identity(&self.fold.identity(session));
        let clocks = self.emitter.clocks;
        let whole = statement_of(&reply, Whole::default(), target, clocks, &identity);
        if let Some(statement) = nested.statement(&reply, &target.meaning.codes, whole) {
            consume(Event::Ended(&statement));
        }
    }
}

impl Emitter<'_> {
    fn lose(&mut self, pid: u32, kind: Loss) {
        self.lost.entry(pid).or_default().add(kind, 1);
    }

    /// Whether a record has the layout of its server; nobody knows what one says that was written by
    /// the layout before, and it is lost.
    fn understands(&mut self, reply: &Reply<'_>, target: &Target) -> bool {
        let is_known = reply.head.program == target.program;
        if !is_known {
            self.lose(reply.head.tgid, Loss::UnreadableSession);
        }
        is_known
    }

    /// Hands out a statement whose reply was held back.
    pub(super) fn held(
        &mut self,
        target: &Target,
        held: &Held,
        whole: Whole,
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        if let Some(reply) = Reply::new(&held.record, &target.plan) {
            self.emit(target, &reply, whole, &held.identity, consume);
        }
    }

    fn emit(
        &mut self,
        target: &Target,
        reply: &Reply<'_>,
        whole: Whole,
        identity: &Identity,
        consume: &mut dyn FnMut(Event<'_>),
    ) {
        // Here, since another connection can have the session of this one by the next look.
        if let Some(running) = self.running.get_mut(&reply.head.tgid) {
            running.remove(&reply.statement_key());
        }
        *self.seen += 1;
        if self.drop_one_in.is_some_and(|n| self.seen.is_multiple_of(n)) {
            self.lose(reply.head.tgid, Loss::Injected);
            return;
        }
        let statement = statement_of(reply, whole, target, self.clocks, identity);
        let settings = self.settings.of(reply);
        consume(Event::Ended(&Statement { settings, ..statement }));
    }
}

/// A send after the reply of the statement, by something else in the same thread. At a breakpoint
/// after the reply it is the other way round: what was not sent ran inside another statement.
fn is_foreign(reply: &Reply<'_>, target: &Target) -> bool {
    let is_sent = reply.get(Field::IsSent) == Some(1);
    if target.hook == Hook::Uprobe { !is_sent && !target.meaning.logs_early } else { is_sent }
}

pub(super) fn statement_of<'a>(
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
        // What a stored program runs is read by the settings under which it was made.
        settings: None,
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
