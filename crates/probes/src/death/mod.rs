//! How a server ends that a signal ends: who sent it, and what each session ran when it came.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod skeleton;

use std::collections::{HashMap, VecDeque};

use libbpf_rs::{Link, Object};
use waggle_model::{
    Command, Death, FatalSignal, Identity, Loss, Losses, RunningStatement, Sender, StatementKey,
};

use crate::carrier::{
    self, Carrier, CarrierError, Programs, Session, SessionData, Target, head_of, kernel_error,
    name_of, read_struct,
};
use crate::servers::layout::Field;
use skeleton::types;

/// The programs of `mod.bpf.c`, and where they stand.
const PROGRAMS: [(&str, &str); 2] = [
    ("on_sent", "tracepoint signal:signal_generate"),
    ("on_taken", "tracepoint signal:signal_deliver"),
];
/// Number of the signal that nothing can take (signal(7)).
const SIGKILL: u32 = 9;
/// The signal in the exit code of a process (wait(2)).
const SIGNAL_OF_CODE: u32 = 0x7f;
/// Signals of a server that are kept.
const SIGNALS_MAX: usize = 64;
/// Bytes of what a record has at the end of its data.
const SIZE: usize = size_of::<types::dying>();
/// Sessions of a server whose ends are kept.
const SESSIONS_MAX: usize = 32 * 1024;
/// Bytes of what they ran.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// A server that is watched.
struct Watched {
    target: Target,
    end: End,
}

/// What was seen of the end of a server.
#[derive(Default)]
struct End {
    /// What was sent to end it, the first first, with the session of the thread that sent it.
    signals: VecDeque<(u64, FatalSignal)>,
    /// The signal by which the kernel ended it: 0 where it ended itself, or none was told.
    number: u32,
    /// When its end reached its main thread; `None`: not yet.
    at_ns: Option<u64>,
    /// What ran when it reached the others, by session.
    ran: HashMap<u64, Reached>,
    /// Bytes of their texts.
    text_bytes: u64,
    /// Whether something of it could not be kept.
    has_lost: bool,
}

/// A session that the end of its server reached.
struct Reached {
    at_ns: u64,
    running: RunningStatement,
}

/// What tells the ends of servers. Where it cannot be had, an end is known without its reason.
#[derive(Default)]
pub(crate) struct Probe {
    programs: Programs,
    /// Why it is not told how a server ends.
    refusal: HashMap<u32, String>,
    watched: HashMap<u32, Watched>,
    /// By server.
    lost: HashMap<u32, Losses>,
}

impl Probe {
    /// Begins with a server that another probe watches as `target`.
    pub(crate) fn attach(&mut self, carrier: &Carrier, target: &Target, pid: u32) {
        let watched = Watched::of(target);
        match self.programs.serve(pid, target.program, || load(carrier, &watched.target)) {
            Ok(()) => self.refusal.remove(&pid),
            Err(error) => self.refusal.insert(pid, error.to_string()),
        };
        self.watched.insert(pid, watched);
    }

    /// One that reads the records of a server, as if its programs were there.
    #[cfg(test)]
    pub(crate) fn reading(pid: u32, target: &Target) -> Probe {
        let mut probe = Probe::default();
        probe.watched.insert(pid, Watched::of(target));
        probe
    }

    /// Goes on with a layout that lost fields; the programs stay as they are.
    pub(crate) fn narrow(&mut self, pid: u32, target: &Target) {
        if let Some(watched) = self.watched.get_mut(&pid) {
            watched.target = target.with_room(SIZE as u32);
        }
    }

    /// Ends with a server, and says what was lost of it.
    pub(crate) fn detach(&mut self, pid: u32) -> Losses {
        self.programs.leave(pid);
        self.refusal.remove(&pid);
        self.watched.remove(&pid);
        self.lost.remove(&pid).unwrap_or_default()
    }

    /// Why it is not told how a server ends.
    pub(crate) fn refusal(&self, pid: u32) -> Option<&str> {
        self.refusal.get(&pid).map(String::as_str)
    }

    /// What has been lost on this side of a server that is watched.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        self.lost.get(&pid).copied().unwrap_or_default()
    }

    /// What was seen of the end of a server that has ended, once. `untold` sessions could not be told by the kernel;
    /// `is_past` says whether a session was seen to go on after a statement: it has survived what it was sent.
    pub(crate) fn take(
        &mut self,
        pid: u32,
        untold: u32,
        is_past: impl Fn(StatementKey) -> bool,
    ) -> Death {
        let watched = self.watched.get_mut(&pid);
        let end = watched.map(|watched| std::mem::take(&mut watched.end)).unwrap_or_default();
        end.death(untold, is_past)
    }

    /// A signal was sent to a server.
    pub(crate) fn signal(&mut self, record: &[u8]) {
        let Some(raw) = read_struct::<types::fatal>(record) else { return };
        let Some(Watched { end, .. }) = self.watched.get_mut(&raw.head.tgid) else { return };
        if end.signals.len() == SIGNALS_MAX {
            end.signals.pop_front();
        }
        end.signals.push_back((raw.head.thd, signal_of(&raw)));
    }

    /// It reached a thread. `identity` is who its session is; `start_ns` turns what a server notes as the start of a statement
    /// into nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) fn reached(
        &mut self,
        session: Session,
        record: &[u8],
        identity: &Identity,
        start_ns: impl Fn(u64, u64) -> Option<u64>,
    ) {
        let Some(Watched { target, end }) = self.watched.get_mut(&session.tgid) else { return };
        let Some(head) = head_of(record) else { return };
        if session.thd == 0 {
            end.at_ns = end.at_ns.max(Some(head.end_ns));
            end.number = head.result.cast_unsigned() & SIGNAL_OF_CODE;
        } else if let Some(data) = target.read(record, &mut self.lost) {
            let running = running(&data, identity, start_ns);
            if running.is_of_server() || running.is_nobodys() {
                return;
            }
            if let Some(lost) = end.keep(head.end_ns, running) {
                self.lost.entry(session.tgid).or_default().add(lost, 1);
            }
        }
    }
}

impl Watched {
    fn of(target: &Target) -> Watched {
        Watched { target: target.with_room(SIZE as u32), end: End::default() }
    }
}

impl End {
    /// The same in one piece. `untold` and `is_past` as for [`Probe::take`].
    fn death(self, untold: u32, is_past: impl Fn(StatementKey) -> bool) -> Death {
        let End { mut signals, mut ran, .. } = self;
        let past = ran.extract_if(|_, one| is_past(one.running.key()));
        let past: Vec<u64> = past.map(|(session, _)| session).collect();
        signals.retain(|(session, _)| !past.contains(session));
        let at_ns = ran.values().map(|one| Some(one.at_ns)).fold(self.at_ns, Ord::max);
        let is_whole = at_ns.is_some() && untold == 0 && !self.has_lost;
        let ran = ran.into_values().map(|one| one.running);
        let signal = first_of(&signals, self.number == SIGKILL);
        Death { signal, at_ns, ran: is_whole.then(|| ran.collect()) }
    }

    /// Keeps what a session ran. Gives what was lost of it.
    fn keep(&mut self, at_ns: u64, mut running: RunningStatement) -> Option<Loss> {
        if self.ran.len() >= SESSIONS_MAX && !self.ran.contains_key(&running.thd) {
            self.has_lost = true;
            return Some(Loss::UnreadableSession);
        }
        let bytes = running.text.as_ref().map_or(0, |text| text.len() as u64);
        let is_too_long = self.text_bytes + bytes > TEXT_BYTES_MAX;
        match is_too_long {
            true => running.text = None,
            false => self.text_bytes += bytes,
        }
        // Who takes a signal itself is reached again.
        let before = self.ran.insert(running.thd, Reached { at_ns, running });
        let text_before = before.and_then(|one| one.running.text);
        self.text_bytes -= text_before.map_or(0, |text| text.len() as u64);
        is_too_long.then_some(Loss::UnreadableText)
    }
}

/// The signal that began the end: a server that takes it, to write a report, sends itself others, or ends itself.
fn first_of(signals: &VecDeque<(u64, FatalSignal)>, is_kill: bool) -> Option<FatalSignal> {
    let mut all = signals.iter().map(|(_, signal)| signal);
    all.find(|signal| (signal.number == SIGKILL) == is_kill).cloned()
}

fn load(carrier: &Carrier, target: &Target) -> Result<(Object, Vec<Link>), CarrierError> {
    let mut open = carrier::open(skeleton::OBJECT, "the programs of ends")?;
    carrier.prepare(&mut open, &target.plan, target.program)?;
    let object = open.load().map_err(kernel_error("loading the programs of ends"))?;
    let attach =
        |(name, place)| carrier::program(&object, name)?.attach().map_err(kernel_error(place));
    let links = PROGRAMS.into_iter().map(attach).collect::<Result<_, _>>()?;
    Ok((object, links))
}

fn signal_of(raw: &types::fatal) -> FatalSignal {
    let is_of_kernel = raw.of_kernel != 0;
    let length = raw.sender_name.iter().position(|byte| *byte == 0);
    let name = &raw.sender_name[..length.unwrap_or(raw.sender_name.len())];
    let name = String::from_utf8_lossy(name).into_owned();
    let is_own = raw.sender == raw.head.tgid;
    // Whose thread asks for memory when there is none need not be who is ended for it.
    let sender = if is_own && !(is_of_kernel && raw.signal == SIGKILL) {
        Sender::Thread { connection_id: Some(raw.id).filter(|id| *id != 0), name }
    } else if is_of_kernel {
        Sender::Kernel
    } else {
        Sender::Process { pid: raw.sender, name }
    };
    FatalSignal { number: raw.signal, sender }
}

fn running(
    data: &SessionData<'_>,
    identity: &Identity,
    start_ns: impl Fn(u64, u64) -> Option<u64>,
) -> RunningStatement {
    let bytes = data.data();
    let raw =
        bytes.len().checked_sub(SIZE).and_then(|at| read_struct::<types::dying>(&bytes[at..]));
    let database = raw.and_then(|raw| name_of(&raw.database, raw.database_length));
    let key = data.statement_key();
    let noted_start_us = data.get(Field::StartTime);
    let text = data.statement_text();
    RunningStatement {
        thd: key.thd,
        connection_id: key.connection_id,
        command: Command(data.get(Field::Command).unwrap_or(0) as u8),
        noted_start_us,
        start_ns: noted_start_us.and_then(|us| start_ns(us, data.head.end_ns)),
        text: text.map(|text| text.bytes.to_vec()),
        text_length: text.map_or(0, |text| text.length),
        identity: Identity { database, ..identity.clone() },
        ..RunningStatement::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_of_the_program_has_its_name_in_the_model() {
        let source = include_str!("mod.bpf.c");
        let signals = source.lines().filter_map(|line| line.strip_prefix("#define SIG"));
        let mut count = 0;
        for (name, number) in signals.filter_map(|define| define.split_once(' ')) {
            let signal = FatalSignal { number: number.parse().unwrap(), sender: Sender::Kernel };
            assert_eq!(signal.name(), Some(&*format!("SIG{name}")));
            assert!(source.contains(&format!("signal == SIG{name}")), "{name} is looked for");
            count += 1;
        }
        assert_eq!(count, 7);
    }

    #[test]
    fn who_sent_a_signal_is_told_apart() {
        let sent = |sender, of_kernel, signal, thd| {
            let id = if thd == 0 { 0 } else { 8 };
            let mut raw = types::fatal { sender, of_kernel, signal, id, ..Default::default() };
            (raw.head.tgid, raw.head.thd) = (10, thd);
            raw.sender_name[..4].copy_from_slice(b"bash");
            signal_of(&raw).sender
        };
        let name = || "bash".to_owned();
        let own = |connection_id| Sender::Thread { connection_id, name: name() };
        assert_eq!(sent(10, 1, 11, 0x7f00), own(Some(8)), "the kernel, for what the thread did");
        assert_eq!(sent(10, 0, 6, 0x7f00), own(Some(8)), "abort()");
        assert_eq!(sent(10, 0, 6, 0), own(None));
        assert_eq!(sent(77, 0, 9, 0), Sender::Process { pid: 77, name: name() });
        assert_eq!(sent(77, 1, 9, 0), Sender::Kernel, "for the memory that another one asked for");
        assert_eq!(sent(10, 1, 9, 0x7f00), Sender::Kernel, "for its own");
    }

    #[test]
    fn a_signal_that_a_session_has_survived_is_not_the_end() {
        let reached = |at_ns, thd| Reached {
            at_ns,
            running: RunningStatement { thd, ..RunningStatement::default() },
        };
        let ended = |main_ns, sessions: &[(u64, u64)]| {
            let ran = sessions.iter().map(|(at, thd)| (*thd, reached(*at, *thd))).collect();
            let end = End { at_ns: main_ns, ran, ..End::default() };
            let death = end.death(0, |statement| statement.thd == 7);
            (death.at_ns, death.ran.map(|ran| ran.len()))
        };
        assert_eq!(ended(None, &[(50, 7)]), (None, None), "it goes on");
        assert_eq!(ended(Some(90), &[(50, 7)]), (Some(90), Some(0)));
        assert_eq!(ended(Some(90), &[(50, 7), (95, 8)]), (Some(95), Some(1)), "the last thread");
    }
}
