//! How a server ends that a signal ends: who sent it, and what each session ran when it came.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod skeleton;

use std::collections::{HashMap, HashSet, VecDeque};

use libbpf_rs::{Link, Object};
use waggle_model::{
    Command, Death, FatalSignal, Identity, Loss, Losses, RunningStatement, Sender, StatementKey,
};

use crate::carrier::{
    self, Carrier, CarrierError, Session, SessionData, Target, head_of, kernel_error, read_struct,
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

/// The programs of one layout, and their servers.
struct Loaded {
    _object: Object,
    _links: Vec<Link>,
    pids: HashSet<u32>,
}

/// A server that is watched, and what was seen of its end.
struct Watched {
    target: Target,
    /// What was sent to end it, the first first, with the session of the thread that sent it.
    signals: VecDeque<(u64, FatalSignal)>,
    /// The signal by which the kernel ended it: 0 where it ended itself, or none was told.
    number: u32,
    /// When its end reached the last thread; 0: not yet.
    at_ns: u64,
    /// What ran then, by session.
    ran: HashMap<u64, RunningStatement>,
    /// Bytes of their texts.
    text_bytes: u64,
    /// Whether something of it could not be kept.
    has_lost: bool,
}

/// What tells the ends of servers. Where it cannot be had, an end is known without its reason.
#[derive(Default)]
pub(crate) struct Probe {
    /// By the number of the programs that serve a server.
    loaded: HashMap<u32, Loaded>,
    /// Why it is not told how a server ends.
    refusal: HashMap<u32, String>,
    watched: HashMap<u32, Watched>,
    /// By server.
    lost: HashMap<u32, Losses>,
}

impl Probe {
    /// Begins with a server that another probe watches as `target`.
    pub(crate) fn attach(&mut self, carrier: &Carrier, target: &Target, pid: u32) {
        self.leave(pid);
        let target = target.with_room(SIZE as u32);
        self.refusal.remove(&pid);
        match self.loaded.get_mut(&target.program) {
            Some(loaded) => {
                loaded.pids.insert(pid);
            }
            None => match load(carrier, &target, pid) {
                Ok(loaded) => {
                    self.loaded.insert(target.program, loaded);
                }
                Err(error) => {
                    self.refusal.insert(pid, error.to_string());
                }
            },
        }
        self.watched.insert(pid, Watched::of(target));
    }

    /// One that reads the records of a server, as if its programs were there.
    #[cfg(test)]
    pub(crate) fn reading(pid: u32, target: &Target) -> Probe {
        let mut probe = Probe::default();
        probe.watched.insert(pid, Watched::of(target.with_room(SIZE as u32)));
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
        self.leave(pid);
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

    /// Programs that serve no other are unloaded.
    fn leave(&mut self, pid: u32) {
        self.loaded.retain(|_, loaded| {
            loaded.pids.remove(&pid);
            !loaded.pids.is_empty()
        });
    }

    /// What was seen of the end of a server that has ended, once. `untold` sessions could not be told by the kernel;
    /// `is_past` says whether a session was seen to go on after a statement: it has survived what it was sent.
    pub(crate) fn take(
        &mut self,
        pid: u32,
        untold: u32,
        is_past: impl Fn(StatementKey) -> bool,
    ) -> Death {
        let Some(watched) = self.watched.get_mut(&pid) else { return Death::default() };
        let mut ran = std::mem::take(&mut watched.ran);
        let past: Vec<u64> =
            ran.extract_if(|_, one| is_past(one.key())).map(|(session, _)| session).collect();
        watched.signals.retain(|(session, _)| !past.contains(session));
        let is_whole = watched.at_ns != 0 && untold == 0 && !watched.has_lost;
        Death {
            signal: watched.signal(),
            at_ns: watched.at_ns,
            ran: is_whole.then(|| ran.into_values().collect()),
        }
    }

    /// A signal was sent to a server.
    pub(crate) fn signal(&mut self, record: &[u8]) {
        let Some(raw) = read_struct::<types::fatal>(record) else { return };
        let Some(watched) = self.watched.get_mut(&raw.head.tgid) else { return };
        if watched.signals.len() == SIGNALS_MAX {
            watched.signals.pop_front();
        }
        watched.signals.push_back((raw.head.thd, signal_of(&raw)));
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
        let Some(watched) = self.watched.get_mut(&session.tgid) else { return };
        let Some(head) = head_of(record) else { return };
        watched.at_ns = watched.at_ns.max(head.end_ns);
        if session.thd == 0 {
            watched.number = head.result.cast_unsigned() & SIGNAL_OF_CODE;
        } else if let Some(data) = watched.target.read(record, &mut self.lost) {
            let running = running(&data, identity, start_ns);
            if is_of_server(&running) {
                return;
            }
            if let Some(lost) = watched.keep(running) {
                self.lost.entry(session.tgid).or_default().add(lost, 1);
            }
        }
    }
}

impl Watched {
    fn of(target: Target) -> Watched {
        Watched {
            target,
            signals: VecDeque::new(),
            number: 0,
            at_ns: 0,
            ran: HashMap::new(),
            text_bytes: 0,
            has_lost: false,
        }
    }

    /// The signal that began the end: a server that takes it, to write a report, sends itself others, or ends itself.
    fn signal(&self) -> Option<FatalSignal> {
        let is_kill = self.number == SIGKILL;
        let mut all = self.signals.iter().map(|(_, signal)| signal);
        all.find(|signal| (signal.number == SIGKILL) == is_kill).cloned()
    }

    /// Keeps what a session ran. Gives what was lost of it.
    fn keep(&mut self, mut running: RunningStatement) -> Option<Loss> {
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
        let before = self.ran.insert(running.thd, running);
        self.text_bytes -= before.and_then(|one| one.text).map_or(0, |text| text.len() as u64);
        is_too_long.then_some(Loss::UnreadableText)
    }
}

/// Whether a thread of the server itself has this session, or a login that has named no user.
fn is_of_server(running: &RunningStatement) -> bool {
    let names_nobody = running.command == Command::CONNECT && running.identity.user.is_none();
    running.connection_id == 0 || running.command == Command::DAEMON || names_nobody
}

fn load(carrier: &Carrier, target: &Target, pid: u32) -> Result<Loaded, CarrierError> {
    let mut open = carrier::open(skeleton::OBJECT, "the programs of ends")?;
    carrier.prepare(&mut open, &target.plan, target.program)?;
    let object = open.load().map_err(kernel_error("loading the programs of ends"))?;
    let attach =
        |(name, place)| carrier::program(&object, name)?.attach().map_err(kernel_error(place));
    let _links = PROGRAMS.into_iter().map(attach).collect::<Result<_, _>>()?;
    Ok(Loaded { _object: object, _links, pids: HashSet::from([pid]) })
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
    let database = raw.and_then(|raw| {
        let length = usize::try_from(raw.database_length).ok()?;
        Some(raw.database.get(..length)?.to_vec())
    });
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
}
