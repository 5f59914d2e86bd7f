//! Reads the sessions of several threads, in as few system calls as their pointers allow: the
//! session pointers, the sessions' fields, what those point to, the clients' names, and the fields
//! again, because a session goes on while waggle reads it.

use waggle_host::monotonic_ns;
use waggle_model::{Age, Command, Identity, RunningStatement};

use super::head::{Client, Head, Spans, StringAt};
use super::threads::Thread;
use super::{Limits, SessionsError, texts};
use crate::servers::layout::{ContextStrings, Field, Layout};
use crate::servers::{Batch, CurrentThdAt, MemoryError, Place, ProcessMemory};

/// Longest name that is read: 64 characters of 4 bytes for a database, 255 bytes for a host.
const NAME_LIMIT: u32 = 256;
/// Longest state text that is read; the longest in the servers' sources are shorter.
const STATE_LIMIT: u32 = 128;
/// The state in which every server makes a session, and leaves it until its client is in.
const LOGIN_STATE: &[u8] = b"login";

/// What a thread was doing.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// It serves no session, or a thread of the server itself.
    Nothing,
    /// Its session waits for its client.
    Idle {
        /// Address of the security context.
        context: Option<u64>,
    },
    /// Its session runs a command.
    Running(Box<RunningStatement>),
    /// Its client has connected and is not in yet.
    LoggingIn(Login),
    /// A client logs in, or the thread keeps the session of one that left: which of them is not known.
    MayLogIn,
    /// It could not be read whole: not known.
    Unknown,
}

/// A login under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Login {
    /// Its connection.
    pub(super) connection_id: u64,
    /// Its start as the server notes it, microseconds of the family's clock.
    pub(super) noted_start_us: Option<u64>,
    /// The same, nanoseconds of `CLOCK_MONOTONIC`; `None` where that makes no sense.
    pub(super) start_ns: Option<u64>,
    /// The first look that saw it, nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) seen_ns: u64,
}

/// A thread and the session it serves.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) thread: Thread,
    /// Address of the session; 0 if there is none.
    pub(super) thd: u64,
    pub(super) doing: Doing,
    /// The session went on while it was read: nothing of it may be kept.
    pub(super) changed: bool,
}

/// What one build needs to be read, and the buffers for it.
#[derive(Debug)]
pub(super) struct Reader {
    head: Spans,
    client: Spans,
    strings: ContextStrings,
    /// Without it, nothing is concluded from the lack of a user.
    knows_user: bool,
    knows_state: bool,
    batch: Batch,
}

/// A session that runs a command, while it is being read.
struct Runner {
    /// Its number in the list of threads.
    at: usize,
    head: Head,
    text: Option<Wanted>,
    database: Option<Wanted>,
    state: Option<Wanted>,
    client: Option<usize>,
    user: Option<Wanted>,
    host: Option<Wanted>,
    statement: RunningStatement,
}

/// A string that was asked for: its number in the batch.
#[derive(Clone, Copy)]
enum Wanted {
    Counted(usize),
    ZeroEnded(usize),
}

impl Wanted {
    fn add_to(batch: &mut Batch, string: StringAt, longest: u32) -> Self {
        match string {
            StringAt::Counted(address, length) => {
                Wanted::Counted(batch.add(Place::new(address, length.min(longest.into()))))
            }
            StringAt::ZeroEnded(address) => {
                let [first, second] = Place::zero_ended(address, longest);
                let number = batch.add(first);
                batch.add(second);
                Wanted::ZeroEnded(number)
            }
        }
    }

    fn bytes(self, batch: &Batch) -> Option<Vec<u8>> {
        match self {
            Wanted::Counted(number) => batch.get(number).map(<[u8]>::to_vec),
            Wanted::ZeroEnded(number) => batch.zero_ended(number).map(<[u8]>::to_vec),
        }
    }
}

impl Reader {
    pub(super) fn of(layout: &Layout) -> Self {
        Self {
            head: Head::spans(layout),
            client: Client::spans(layout),
            strings: layout.context_strings,
            knows_user: layout.offset(Field::User).is_some(),
            knows_state: layout.offset(Field::State).is_some(),
            batch: Batch::default(),
        }
    }

    /// Whether a thread in the thread cache of this server keeps the session of the client that left: in MariaDB.
    pub(super) fn keeps_sessions(&self) -> bool {
        self.knows_user && self.strings == ContextStrings::ZeroEnded
    }

    /// Whether a login can be told from what else connects.
    pub(super) fn knows_logins(&self) -> bool {
        self.knows_user && self.knows_state
    }

    /// What each of the threads is doing. `kept` is what others were seen to do at an earlier look: all texts share one
    /// budget.
    pub(super) fn read(
        &mut self,
        memory: &mut ProcessMemory,
        current_thd: CurrentThdAt,
        threads: Vec<Thread>,
        kept: &mut [Seen],
        limits: &Limits<'_>,
    ) -> Result<Vec<Seen>, SessionsError> {
        if threads.is_empty() {
            return Ok(Vec::new());
        }
        let mut seen = self.sessions_of(memory, current_thd, threads)?;
        let mut runners = self.heads_of(memory, &mut seen, limits)?;
        if self.keeps_sessions() {
            self.leave_out_waiting_threads(memory, &mut seen)?;
        }
        if !runners.is_empty() {
            let wanted = |runner: &Runner| Some(runner.text_length()?.min(limits.text.into()));
            let lengths = texts::lengths(kept).chain(runners.iter().filter_map(wanted));
            let longest = texts::longest(lengths.collect(), limits.texts);
            texts::cut(kept, longest);
            let longest = u32::try_from(longest).unwrap_or(u32::MAX).min(limits.text);
            self.strings_of(memory, &mut runners, longest)?;
            self.clients_of(memory, &mut runners)?;
            self.check(memory, &mut seen, runners)?;
        }
        Ok(seen)
    }

    fn sessions_of(
        &mut self,
        memory: &mut ProcessMemory,
        current_thd: CurrentThdAt,
        threads: Vec<Thread>,
    ) -> Result<Vec<Seen>, MemoryError> {
        let mut from: Vec<u64> = threads.iter().map(|thread| thread.pointer).collect();
        let found = match current_thd {
            CurrentThdAt::ThreadLocal { offset } => self.pointers(memory, &from, offset)?,
            CurrentThdAt::PthreadKey { block_pointer_offset, slot_offset } => {
                let blocks = self.pointers(memory, &from, block_pointer_offset as i64)?;
                for (from, block) in from.iter_mut().zip(&blocks) {
                    *from = block.unwrap_or(0);
                }
                self.pointers(memory, &from, slot_offset as i64)?
            }
        };
        // A thread that has no value under any key has no block of keys either.
        let seen = |(thread, thd): (Thread, Option<u64>)| Seen {
            thread,
            thd: thd.unwrap_or(0),
            doing: Doing::Nothing,
            changed: false,
        };
        Ok(threads.into_iter().zip(found).map(seen).collect())
    }

    /// The pointers at a distance from some addresses; none at distances from 0.
    fn pointers(
        &mut self,
        memory: &mut ProcessMemory,
        from: &[u64],
        distance: i64,
    ) -> Result<Vec<Option<u64>>, MemoryError> {
        self.batch.clear();
        for address in from {
            let length = if *address == 0 { 0 } else { 8 };
            self.batch.add(Place::new(address.wrapping_add_signed(distance), length));
        }
        memory.read(&mut self.batch)?;
        let word = |at| Some(u64::from_ne_bytes(self.batch.get(at)?.try_into().ok()?));
        Ok((0..from.len()).map(word).collect())
    }

    /// Reads every session's own fields; settles the idle ones and gives the others.
    fn heads_of(
        &mut self,
        memory: &mut ProcessMemory,
        seen: &mut [Seen],
        limits: &Limits<'_>,
    ) -> Result<Vec<Runner>, MemoryError> {
        self.batch.clear();
        let mut asked = Vec::new();
        for (at, seen) in seen.iter().enumerate().filter(|(_, seen)| seen.thd != 0) {
            asked.push((at, self.head.add_to(&mut self.batch, seen.thd)));
        }
        memory.read(&mut self.batch)?;
        let mut runners = Vec::new();
        for (at, first) in asked {
            let head = self.head.bytes(&self.batch, first);
            let Some(head) = head.and_then(|bytes| Head::decode(&self.head, bytes)) else {
                seen[at].doing = Doing::Unknown;
                continue;
            };
            seen[at].doing = match head.command {
                _ if !head.is_of_client() => Doing::Nothing,
                Some(Command::SLEEP) => Doing::Idle { context: head.context },
                Some(command) => {
                    runners.push(Runner::new(at, seen[at].thd, head, command, limits));
                    Doing::Unknown
                }
                None => Doing::Unknown,
            };
        }
        Ok(runners)
    }

    /// The fields of the sessions at these addresses; `None` where one cannot be read.
    pub(super) fn heads_at(
        &mut self,
        memory: &mut ProcessMemory,
        thds: &[u64],
    ) -> Result<Vec<Option<Head>>, MemoryError> {
        self.batch.clear();
        let add = |thd: &u64| self.head.add_to(&mut self.batch, *thd);
        let asked: Vec<usize> = thds.iter().map(add).collect();
        memory.read(&mut self.batch)?;
        let head = |first| Head::decode(&self.head, self.head.bytes(&self.batch, first)?);
        Ok(asked.into_iter().map(head).collect())
    }

    /// A thread of MariaDB that waits in the thread cache keeps the session of the client that
    /// left, with its id and no user.
    fn leave_out_waiting_threads(
        &mut self,
        memory: &mut ProcessMemory,
        seen: &mut [Seen],
    ) -> Result<(), MemoryError> {
        self.batch.clear();
        let mut asked = Vec::new();
        for (at, seen) in seen.iter().enumerate() {
            if let Doing::Idle { context: Some(context) } = seen.doing {
                asked.push((at, self.client.add_to(&mut self.batch, context)));
            }
        }
        memory.read(&mut self.batch)?;
        for (at, first) in asked {
            let bytes = self.client.bytes(&self.batch, first);
            let client = bytes.map(|bytes| Client::decode(&self.client, bytes, self.strings));
            if client.is_some_and(|client| client.user.is_none()) {
                seen[at].doing = Doing::Nothing;
            }
        }
        Ok(())
    }

    fn strings_of(
        &mut self,
        memory: &mut ProcessMemory,
        runners: &mut [Runner],
        longest: u32,
    ) -> Result<(), MemoryError> {
        self.batch.clear();
        for runner in &mut *runners {
            let batch = &mut self.batch;
            let head = runner.head;
            let text = head.text.map(|(address, length)| StringAt::Counted(address, length));
            runner.text = text.map(|text| Wanted::add_to(batch, text, longest));
            runner.database = head.database.map(|name| Wanted::add_to(batch, name, NAME_LIMIT));
            runner.state = head.state.map(|state| Wanted::add_to(batch, state, STATE_LIMIT));
            runner.client = head.context.map(|context| self.client.add_to(batch, context));
        }
        memory.read(&mut self.batch)?;
        for runner in runners {
            let bytes = |wanted: Option<Wanted>| wanted?.bytes(&self.batch);
            runner.statement.text = bytes(runner.text);
            runner.statement.identity.database = bytes(runner.database);
            runner.statement.state = bytes(runner.state).filter(|state| !state.is_empty());
        }
        Ok(())
    }

    /// Reads the names of the clients. The batch still holds the security contexts.
    fn clients_of(
        &mut self,
        memory: &mut ProcessMemory,
        runners: &mut [Runner],
    ) -> Result<(), MemoryError> {
        let client_of = |runner: &Runner| {
            let bytes = self.client.bytes(&self.batch, runner.client?)?;
            Some(Client::decode(&self.client, bytes, self.strings))
        };
        let clients: Vec<Client> =
            runners.iter().map(|runner| client_of(runner).unwrap_or_default()).collect();
        self.batch.clear();
        for (runner, client) in runners.iter_mut().zip(clients) {
            let batch = &mut self.batch;
            runner.user = client.user.map(|user| Wanted::add_to(batch, user, NAME_LIMIT));
            runner.host = client.host.map(|host| Wanted::add_to(batch, host, NAME_LIMIT));
        }
        memory.read(&mut self.batch)?;
        for runner in runners {
            let bytes = |wanted: Option<Wanted>| wanted?.bytes(&self.batch);
            runner.statement.identity.user = bytes(runner.user);
            runner.statement.identity.host = bytes(runner.host);
        }
        Ok(())
    }

    /// Reads every session's own fields again and drops what belongs to another statement.
    fn check(
        &mut self,
        memory: &mut ProcessMemory,
        seen: &mut [Seen],
        runners: Vec<Runner>,
    ) -> Result<(), MemoryError> {
        let thds: Vec<u64> = runners.iter().map(|runner| seen[runner.at].thd).collect();
        let again = self.heads_at(memory, &thds)?;
        for (runner, now) in runners.into_iter().zip(again) {
            let seen = &mut seen[runner.at];
            seen.changed = now != Some(runner.head);
            let statement = runner.checked(now);
            seen.doing = if is_login(&statement) && self.knows_logins() {
                Doing::LoggingIn(Login::of(&statement))
            } else if self.knows_user && statement.is_nobodys() {
                Doing::Nothing
            } else {
                Doing::Running(Box::new(statement))
            };
        }
        Ok(())
    }
}

/// A client that logs in, or a thread of MariaDB whose client left before it was in: the session is still in the state in
/// which it was made.
fn is_login(statement: &RunningStatement) -> bool {
    statement.command == Command::CONNECT && statement.state.as_deref() == Some(LOGIN_STATE)
}

impl Login {
    fn of(statement: &RunningStatement) -> Login {
        let RunningStatement { connection_id, noted_start_us, start_ns, .. } = *statement;
        Login { connection_id, noted_start_us, start_ns, seen_ns: monotonic_ns() }
    }

    /// For how long it is under way.
    pub(super) fn age(&self, now_ns: u64) -> Age {
        let begun_ns = self.start_ns.unwrap_or(self.seen_ns);
        Age { ns: now_ns.saturating_sub(begun_ns), is_at_least: self.start_ns.is_none() }
    }
}

impl Runner {
    fn new(at: usize, thd: u64, head: Head, command: Command, limits: &Limits<'_>) -> Self {
        let statement = RunningStatement {
            thd,
            connection_id: head.id,
            command,
            noted_start_us: head.start_us,
            start_ns: head.start_us.and_then(limits.start_to_monotonic),
            text_length: head.text.map_or(0, |(_, length)| length),
            ..RunningStatement::default()
        };
        let (text, database, state, client, user, host) = (None, None, None, None, None, None);
        Self { at, head, text, database, state, client, user, host, statement }
    }

    /// Bytes of its text, where it has one.
    fn text_length(&self) -> Option<u64> {
        self.head.text.map(|(_, length)| length)
    }

    /// The statement, less what may be another's.
    fn checked(self, now: Option<Head>) -> RunningStatement {
        let before = self.head;
        let mut statement = self.statement;
        // A statement inside a routine has another text and the same start.
        let of_statement = |head: Head| (head.id, head.start_us, head.text);
        if now.map(of_statement) != Some(of_statement(before)) {
            statement.text = None;
        }
        if now.map(|now| now.id) != Some(before.id) {
            statement.identity = Identity::default();
            statement.state = None;
        }
        statement
    }
}
