//! What an output gets.

use crate::{
    Blocked, Cost, FatalSignal, Interval, Logins, ProcessState, ProcessorUse, Reading,
    RunningStatement, Server, StorageWaits, Unread,
};

/// One interval of one server.
#[derive(Clone, Debug)]
pub struct Record {
    /// Whose it is: one life of a server.
    pub server: Server,
    /// The server itself: the same after a restart of the server, of waggle or of the host.
    pub identity: u64,
    /// Begin, nanoseconds since 1970 (UTC). The interval has it on the monotonic clock.
    pub begin_wall_ns: u64,
    /// End, nanoseconds since 1970 (UTC).
    pub end_wall_ns: u64,
    /// Whether its threads may run at the end.
    pub state: Reading<ProcessState>,
    /// Who used the processors that it may use.
    pub processors: Reading<ProcessorUse>,
    /// For how much of the interval somebody waited for storage.
    pub storage: Reading<StorageWaits>,
    /// Who logged in when the interval ended.
    pub logins: Reading<Logins>,
    /// What the server had not taken from its sockets when the interval ended.
    pub unread: Reading<Unread>,
    /// What ran, and what was lost.
    pub interval: Interval,
    /// What ran when the interval ended. Where it is absent, its time is not in the load.
    pub running: Reading<Vec<RunningStatement>>,
    /// Whether the build shows when a statement began: else latencies run from its request.
    pub starts_known: bool,
    /// A pool of threads serves the sessions: how long a request lies in its queue is in no latency.
    pub is_pooled: bool,
    /// Whether it is measured where the time of its statements goes, or why not.
    pub parts: Reading<()>,
    /// What watching cost, all servers together.
    pub cost: Reading<Cost>,
    /// Nothing follows of it: the server has ended, or is watched no more.
    pub ended: Option<Ending>,
}

/// The end of the watch over a server.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Why nothing follows.
    pub why: String,
    /// The signal that ended the server; `None` where none was seen.
    pub signal: Option<FatalSignal>,
    /// The last look at the sessions of a server that has ended; `None` where there was none, or it runs on.
    pub last_look: Option<LastLook>,
}

/// What was seen of the sessions of a server before it ended. What began later is not known.
#[derive(Clone, Debug)]
pub struct LastLook {
    /// When, nanoseconds since 1970 (UTC).
    pub wall_ns: u64,
    /// It was at the end itself: nothing began later.
    pub at_end: bool,
    /// What ran and was not seen to end.
    pub ran: Vec<RunningStatement>,
}

impl Record {
    /// Why it is not known where the time of the statements that ended went; `None` where it is.
    pub fn parts_absent(&self) -> Option<&str> {
        match (self.interval.spent.parts.get(), &self.parts) {
            (Some(_), _) => None,
            (None, Reading::Absent(why)) => Some(why),
            (None, Reading::Value(())) if self.interval.latency_ns.count() == 0 => {
                Some("no statement ended whose latency is known")
            }
            (None, Reading::Value(())) => Some("of some statements it is not known"),
        }
    }

    /// The last look at the sessions of a server that has ended.
    pub fn last_look(&self) -> Option<&LastLook> {
        self.ended.as_ref()?.last_look.as_ref()
    }

    /// Sessions that ran something, on average; `None` where it is not known how long all of them ran.
    pub fn active_sessions(&self) -> Option<f64> {
        let at_end = self.last_look().is_some_and(|look| look.at_end);
        let is_known = self.running.value().is_some() || at_end;
        self.interval.active_sessions().filter(|_| is_known)
    }

    /// Bytes of the texts in it: most of what it takes.
    pub fn text_bytes(&self) -> usize {
        let ran = self.last_look().into_iter().flat_map(|look| &look.ran);
        let running = self.running.value().into_iter().flatten().chain(ran);
        let bytes = |statement: &RunningStatement| {
            let blocked = statement.blocked.as_ref().map_or(0, Blocked::text_bytes);
            statement.text.as_ref().map_or(0, Vec::len) + blocked
        };
        self.interval.text_bytes() + running.map(bytes).sum::<usize>()
    }
}
