//! What happens to servers.

use std::collections::HashSet;
use std::fmt;

use waggle_model::{Death, FatalSignal, Losses, Server, StatementKey};
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
            Parted::Ended { .. } => match self.signal() {
                Some(signal) => format!("{ENDED}: {signal}"),
                None => ENDED.to_owned(),
            },
        }
    }

    /// Whether it runs no more.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.parted, Parted::Ended { .. })
    }

    /// Whether the end itself told all that ran.
    pub(crate) fn is_told(&self) -> bool {
        matches!(&self.parted, Parted::Ended { death, .. } if death.ran.is_some())
    }

    /// The signal that ended it; `None` where none was seen.
    pub fn signal(&self) -> Option<&FatalSignal> {
        match &self.parted {
            Parted::Ended { death, .. } => death.signal.as_ref(),
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
