//! What runs now: every session's own account of itself, read from outside about once a second.
//!
//! No probe, no SQL, nothing attached. An iterator gives the threads of the server, and their
//! sessions are read by `process_vm_readv`. A thread that has not run since it was last read holds
//! what it held, so it is not read again: a thousand idle connections, or a thousand that wait for
//! one row, cost next to nothing. Costs and blind spots: README.md.

mod check;
mod head;
mod read;
mod threads;

use std::collections::{HashMap, HashSet};
use std::io;

use thiserror::Error;
use waggle_model::RunningStatement;

use self::read::{Doing, Reader, Seen};
use self::threads::{Thread, ThreadWalk};
use crate::target::layout::{Field, Layout};
use crate::target::{Instance, MemoryError, ProcessMemory};

pub use self::check::fits;

/// Bytes of a running statement's text that are read where nothing else is asked for.
pub const TEXT_LIMIT: u32 = 1024;

/// Why the sessions of a server cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionsError {
    /// The kernel refuses the program.
    #[error(
        "sessions: the kernel refuses the iterator; it needs Linux 5.8 with BTF, and CAP_BPF and CAP_PERFMON (see waggle doctor)"
    )]
    Load(#[source] libbpf_rs::Error),
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
    /// From the start that a server noted (microseconds of its clock) to nanoseconds of
    /// `CLOCK_MONOTONIC`; `None` where that makes no sense.
    pub start_to_monotonic: &'a dyn Fn(u64) -> Option<u64>,
}

/// The sessions of one server at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// What runs, by connection id.
    pub running: Vec<RunningStatement>,
    /// Sessions of clients that a thread serves: those that run and those that are idle.
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
    seen: HashMap<u32, Seen>,
    rows: Vec<u8>,
}

impl Sessions {
    /// Nothing is read yet.
    ///
    /// # Errors
    ///
    /// Where the layout lacks the connection id or the command.
    pub fn of(layout: &Layout) -> Result<Self, SessionsError> {
        for field in [Field::ConnectionId, Field::Command] {
            if layout.offset(field).is_none() {
                let why = layout.fields.get(&field).and_then(|reading| reading.why());
                let why = why.unwrap_or("the layout does not name it").to_owned();
                return Err(SessionsError::Layout { field: field.name(), why });
            }
        }
        let reader = Reader::of(layout);
        Ok(Self { reader, memory: None, seen: HashMap::new(), rows: Vec::new() })
    }
}

impl Sampler {
    /// Loads the iterator. It runs only when it is asked.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses it.
    pub fn load() -> Result<Self, SessionsError> {
        Ok(Self { walk: ThreadWalk::load()? })
    }

    /// Reads what runs now in one server. `sessions` belongs to that server and its build; after a
    /// restart it starts over by itself.
    ///
    /// # Errors
    ///
    /// Where the server ended or cannot be read.
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
        let mut before = std::mem::take(&mut sessions.seen);
        let (kept, ran): (Vec<Seen>, Vec<Thread>) = split(threads, &mut before);
        let read = sessions.reader.read(memory, instance.current_thd, ran, &limits)?;
        let read_count = read.len();
        sessions.seen = kept.into_iter().chain(read).map(|seen| (seen.thread.tid, seen)).collect();
        Ok(Sample { read: read_count, ..count(sessions.seen.values()) })
    }
}

/// The threads that are as they were, and those that must be read.
fn split(threads: Vec<Thread>, before: &mut HashMap<u32, Seen>) -> (Vec<Seen>, Vec<Thread>) {
    let mut kept = Vec::new();
    let ran = threads
        .into_iter()
        .filter(|thread| match before.remove(&thread.tid) {
            Some(seen) if seen.can_be_kept() && thread.has_not_run_since(&seen.thread) => {
                kept.push(seen);
                false
            }
            _ => true,
        })
        .collect();
    (kept, ran)
}

impl Seen {
    fn can_be_kept(&self) -> bool {
        !self.changed && !matches!(self.doing, Doing::Unknown)
    }
}

/// Counts each session once, also where two threads name the same one (a thread pool hands a
/// session from thread to thread).
fn count<'a>(seen: impl ExactSizeIterator<Item = &'a Seen>) -> Sample {
    let mut sample = Sample { threads: seen.len(), ..Sample::default() };
    let mut counted = HashSet::new();
    for seen in seen {
        if seen.thd == 0 || !counted.insert(seen.thd) {
            continue;
        }
        match &seen.doing {
            Doing::Nothing => {}
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
