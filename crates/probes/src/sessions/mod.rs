//! What runs now. waggle reads every session from outside, about once a second.
//!
//! It needs no probe and no SQL, and attaches nothing. A kernel iterator lists the server's
//! threads. `process_vm_readv` reads their sessions. A thread that has not run since the last read
//! still holds the same values, so waggle does not read it again. A thousand idle connections, or a
//! thousand that wait for one row, cost next to nothing. Costs and blind spots: README.md.

mod check;
#[cfg(test)]
pub(crate) mod fuzz;
mod head;
mod locks;
mod logins;
mod read;
mod texts;
mod threads;

use std::collections::HashMap;

use std::io;

use thiserror::Error;
use waggle_host::monotonic_ns;
use waggle_model::{Logins, Reading, RunningStatement, StatementKey};

use self::read::{Doing, Login, Reader, Seen};
use self::threads::{Thread, ThreadWalk};
use crate::carrier::CarrierError;
use crate::servers::layout::{Field, Layout};
use crate::servers::{Instance, MemoryError, ProcessMemory};

pub use self::check::fits;
pub use self::locks::LockReader;

/// Bytes of a running statement's text that are read where nothing else is asked for.
pub const TEXT_LIMIT: u32 = 1024;
/// Bytes of all texts of a look together. 10,000 sessions whose texts have 800 bytes stay below it.
pub const TEXTS_LIMIT: u64 = 8 << 20;

/// Why the sessions of a server cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionsError {
    /// The kernel refuses the program.
    #[error("sessions: {0}; it needs Linux 5.8 with BTF")]
    Load(#[source] CarrierError),
    /// The object file was built without its program.
    #[error("sessions: the iterator is missing in this build of waggle; build it again")]
    NoProgram,
    /// The iterator does not run.
    #[error("sessions: the threads of process {pid} cannot be listed")]
    Walk {
        /// The process.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Kernels before 6.1 do not choose the process, and in a pid namespace we cannot.
    #[error(
        "sessions: the threads of process {pid} cannot be told from others in a pid namespace before Linux 6.1; run waggle in the host's pid namespace"
    )]
    Namespace {
        /// The process.
        pid: u32,
    },
    /// The layout of this build lacks what tells a session from a thread of the server.
    #[error("sessions: {field} of this build is not known: {why}")]
    Layout {
        /// The name of the field.
        field: &'static str,
        /// Why the layout lacks it.
        why: String,
    },
    /// The process has ended.
    #[error("sessions: process {pid} has ended")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The memory cannot be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What the caller decides about a sample.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Most bytes of a text; [`TEXT_LIMIT`] is a good number.
    pub text: u32,
    /// Most bytes of all texts together; [`TEXTS_LIMIT`] is a good number. Where they are longer, the
    /// longest ones are cut to one length.
    pub texts: u64,
    /// From the start that a server noted (microseconds of its clock) to nanoseconds of
    /// `CLOCK_MONOTONIC`; `None` if that makes no sense.
    pub start_to_monotonic: &'a dyn Fn(u64) -> Option<u64>,
}

/// The sessions of one server at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What runs, by connection id.
    pub running: Vec<RunningStatement>,
    /// Clients that have connected and are not in yet; they are no sessions.
    pub logins: Reading<Logins>,
    /// Client sessions that a thread serves, running or idle.
    pub sessions: usize,
    /// Sessions that were seen but could not be read.
    pub unreadable: usize,
    /// Threads of the process.
    pub threads: usize,
    /// Threads that were read, because they had run since the last time.
    pub read: usize,
}

/// The loaded iterator; one serves every server.
#[derive(Debug)]
pub struct Sampler {
    walk: ThreadWalk,
}

/// One server's sessions, from one sample to the next.
#[derive(Debug)]
pub struct Sessions {
    reader: Reader,
    memory: Option<(u32, u64, ProcessMemory)>,
    /// By thread id.
    seen: Vec<Seen>,
    rows: Vec<u8>,
}

impl Sessions {
    /// Nothing is read yet.
    ///
    /// # Errors
    ///
    /// If the layout lacks the connection id or the command.
    pub fn of(layout: &Layout) -> Result<Self, SessionsError> {
        for field in [Field::ConnectionId, Field::Command] {
            if layout.offset(field).is_none() {
                let why = layout.fields.get(&field).and_then(|reading| reading.why());
                let why = why.unwrap_or("the layout does not name it").to_owned();
                return Err(SessionsError::Layout { field: field.name(), why });
            }
        }
        let reader = Reader::of(layout);
        Ok(Self { reader, memory: None, seen: Vec::new(), rows: Vec::new() })
    }

    /// The addresses of the sessions of clients, idle or not, that were seen at the last look.
    pub fn addresses(&self) -> Vec<u64> {
        // The session of a login is being made, and holds no lock.
        let of_client = |seen: &&Seen| {
            use Doing::{Idle, Running, Unknown};
            seen.thd != 0 && matches!(seen.doing, Idle { .. } | Running(_) | Unknown)
        };
        self.seen.iter().filter(of_client).map(|seen| seen.thd).collect()
    }
}

impl Sampler {
    /// Loads the iterator. It runs only when it is asked.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn load() -> Result<Self, SessionsError> {
        Ok(Self { walk: ThreadWalk::load()? })
    }

    /// Reads what runs now in one server. `sessions` belongs to that server and its build; after a
    /// restart it starts over by itself.
    ///
    /// # Errors
    ///
    /// If the server ended or cannot be read.
    pub fn sample(
        &self,
        instance: &Instance,
        sessions: &mut Sessions,
        limits: Limits<'_>,
    ) -> Result<Sample, SessionsError> {
        let life = (instance.pid, instance.start_ticks);
        let memory = match &mut sessions.memory {
            Some((pid, start, memory)) if (*pid, *start) == life => memory,
            other => {
                sessions.seen.clear();
                &mut other.insert((life.0, life.1, ProcessMemory::of(life.0))).2
            }
        };
        let threads = self.walk.threads(instance.pid, &mut sessions.rows)?;
        if threads.is_empty() {
            return Err(SessionsError::Gone { pid: instance.pid });
        }
        let Split { mut kept, ran, interrupted, logins } =
            Split::of(threads, std::mem::take(&mut sessions.seen));
        let current_thd = instance.current_thd;
        let mut read = sessions.reader.read(memory, current_thd, ran, &mut kept, &limits)?;
        let read_count = read.len();
        if sessions.reader.keeps_sessions() {
            logins::leave_out_cached(instance.pid, &mut read);
            let heads = sessions.reader.heads_at(memory, &logins::sessions(&read))?;
            logins::doubt_changed(&mut read, &heads);
        }
        for seen in &mut read {
            let before = interrupted.get(&seen.thread.tid);
            match &mut seen.doing {
                Doing::Running(statement) => {
                    let is_it = |it: &&StatementKey| **it == statement.key();
                    statement.has_slept = before.filter(is_it).map(|_| false);
                }
                Doing::LoggingIn(login) => logins::go_on(login, logins.get(&seen.thread.tid)),
                _ => {}
            }
        }
        sessions.seen = kept;
        sessions.seen.extend(read);
        sessions.seen.sort_by_key(|seen| seen.thread.tid);
        let sample = Sample { read: read_count, ..count(&sessions.seen, monotonic_ns()) };
        let logins = match (instance.waiting.is_pooled, sessions.reader.knows_logins()) {
            (true, _) => Reading::absent("logins may wait in the queue of the pool of threads"),
            (_, false) => {
                Reading::absent("the user or the state of a session is not known in this build")
            }
            (false, true) => sample.logins,
        };
        Ok(Sample { logins, ..sample })
    }
}

/// What a look finds, beside what the one before found.
struct Split {
    /// Threads that have executed nothing in between.
    kept: Vec<Seen>,
    /// Threads that must be read.
    ran: Vec<Thread>,
    /// What those ran at the look before, by thread id.
    interrupted: HashMap<u32, StatementKey>,
    /// Who logged in on those at the look before, by thread id.
    logins: HashMap<u32, Login>,
}

impl Split {
    /// Both lists are sorted by thread id, so they are merged: a table of a thousand idle threads would
    /// be built anew for nothing.
    fn of(mut threads: Vec<Thread>, before: Vec<Seen>) -> Split {
        let mut kept = Vec::with_capacity(before.len());
        let (mut interrupted, mut logins) = (HashMap::new(), HashMap::new());
        let mut before = before.into_iter().peekable();
        threads.retain(|thread| {
            while before.next_if(|seen| seen.thread.tid < thread.tid).is_some() {}
            let Some(mut seen) = before.next_if(|seen| seen.thread.tid == thread.tid) else {
                return true;
            };
            let must_be_read = !(seen.can_be_kept() && thread.has_not_run_since(&seen.thread));
            match &mut seen.doing {
                Doing::Running(statement) => {
                    statement.has_slept = Some(true);
                    if must_be_read {
                        interrupted.insert(thread.tid, statement.key());
                    }
                }
                Doing::LoggingIn(login) if must_be_read => {
                    logins.insert(thread.tid, *login);
                }
                _ => {}
            }
            if !must_be_read {
                kept.push(seen);
            }
            must_be_read
        });
        Split { kept, ran: threads, interrupted, logins }
    }
}

impl Seen {
    fn can_be_kept(&self) -> bool {
        !self.changed && !matches!(self.doing, Doing::Unknown | Doing::MayLogIn)
    }
}

/// Counts each session once, also where two threads name the same one (a thread pool hands a
/// session from thread to thread).
fn count(seen: &[Seen], now_ns: u64) -> Sample {
    let mut by_session: Vec<&Seen> = seen.iter().filter(|seen| seen.thd != 0).collect();
    by_session.sort_by_key(|seen| seen.thd);
    by_session.dedup_by_key(|seen| seen.thd);
    let mut sample = Sample {
        running: Vec::new(),
        logins: logins::count(by_session.iter().copied(), now_ns),
        sessions: 0,
        unreadable: 0,
        threads: seen.len(),
        read: 0,
    };
    for seen in by_session {
        match &seen.doing {
            Doing::Nothing | Doing::LoggingIn(_) | Doing::MayLogIn => {}
            Doing::Idle { .. } => sample.sessions += 1,
            Doing::Unknown => sample.unreadable += 1,
            Doing::Running(statement) => {
                sample.sessions += 1;
                sample.running.push(RunningStatement::clone(statement));
            }
        }
    }
    sample.running.sort_by_key(|statement| statement.connection_id);
    sample
}

#[cfg(test)]
mod tests;
