//! What a thread did at one moment.

use crate::{Command, StatementKey, TimeClass};

/// What a thread of a server did when the clock of its processor ticked, or when it left its processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorSample {
    /// The server.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// When, nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How long it took to note all this, nanoseconds.
    pub took_ns: u64,
    /// What its session runs, or ran last; `None` where it serves none.
    pub statement: Option<StatementKey>,
    /// The command of the session.
    pub command: Option<Command>,
    /// The name of the thread.
    pub thread: String,
    /// The address of its function, then addresses to which that one and its callers return.
    pub user: Vec<u64>,
    /// The same in the kernel; none where it was not there.
    pub kernel: Vec<u64>,
    /// There were more functions than are kept.
    pub is_cut: bool,
    /// How long it was off the processor from then on; `None` where it ran.
    pub waited: Option<Waited>,
}

/// A time off the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// Why.
    pub class: TimeClass,
    /// How long, nanoseconds.
    pub ns: u64,
    /// How much of that in the run queue, because others had the processors.
    pub queued_ns: u64,
}
