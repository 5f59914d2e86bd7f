//! What happens to servers.

use std::collections::HashSet;
use std::fmt;

use waggle_model::{Death, Losses, Server, StatementKey};
use waggle_probes::servers::owner::Owner;

/// Why nothing is known of a server that is there no more.
pub(crate) const ENDED: &str = "the server has ended";

/// What happened to a server.
pub enum News {
    /// It is watched from now on.
    Attached(u32),
    /// It cannot be watched.
    Refused(u32, String),
    /// So many processes of one user look like servers and cannot be watched; the first of them were told one by one.
    RefusedMany(Owner, usize),
    /// It is watched no more. All that it ran up to then was handed over.
    Gone(Box<Gone>),
}

/// A server that is watched no more.
#[derive(Clone, Debug)]
pub struct Gone {
    /// Who it was.
    pub server: Server,
    /// What was lost of it since it was attached.
    pub losses: Losses,
    /// Why nothing follows.
    pub parted: Parted,
}

/// Why a server is watched no more.
#[derive(Clone, Debug)]
pub enum Parted {
    /// It has ended.
    Ended {
        /// What ran at the last look and was not seen to end.
        ran: HashSet<StatementKey>,
        /// What was seen of the end itself.
        death: Death,
    },
    /// It runs on.
    RunsOn {
        /// Why it is watched no more.
        why: String,
    },
}

impl Gone {
    /// Why nothing follows.
    pub fn reason(&self) -> String {
        match &self.parted {
            Parted::RunsOn { why } => format!("not watched any more: {why}"),
            Parted::Ended { death, .. } => match &death.signal {
                Some(signal) => format!("{ENDED}: {signal}"),
                None => ENDED.to_owned(),
            },
        }
    }

    /// When it ended, nanoseconds of `CLOCK_MONOTONIC`; `None` where that was not seen.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        self.death().and_then(|death| death.at_ns)
    }

    /// What was seen of its end; `None` where it runs on.
    pub fn death(&self) -> Option<&Death> {
        match &self.parted {
            Parted::Ended { death, .. } => Some(death),
            Parted::RunsOn { .. } => None,
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Attached(pid) => write!(out, "pid {pid}: watched from now on"),
            News::Refused(pid, why) => write!(out, "pid {pid}: not watched: {why}"),
            News::RefusedMany(owner, count) => write!(
                out,
                "{owner}: {count} processes look like servers and are not watched; `waggle servers` says why"
            ),
            News::Gone(gone) => write!(out, "pid {}: {}", gone.server.pid, gone.reason()),
        }
    }
}
