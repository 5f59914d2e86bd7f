//! How a server ended that was ended by a signal.

use std::fmt;

use crate::RunningStatement;
use crate::visible;

/// What was seen of the end of a server.
#[derive(Clone, Debug, Default)]
pub struct Death {
    /// The signal that ended it; `None` where none was seen.
    pub signal: Option<FatalSignal>,
    /// When the end reached its last thread, nanoseconds of `CLOCK_MONOTONIC`; `None` where that was not seen.
    pub at_ns: Option<u64>,
    /// All that its sessions ran when it reached them; `None` where not all is known.
    pub ran: Option<Vec<RunningStatement>>,
}

/// A signal that ends a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatalSignal {
    /// Its number (signal(7)).
    pub number: u32,
    /// Who sent it.
    pub sender: Sender,
}

/// Who sent a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A thread of the server, which failed or gave up.
    Thread {
        /// The connection whose session it served; `None` where it served none.
        connection_id: Option<u64>,
        /// Its name.
        name: String,
    },
    /// The kernel, for no failure of the server: it does so where memory runs out, or the first process of a container ends.
    Kernel,
    /// Another process.
    Process {
        /// Its number on the host.
        pid: u32,
        /// The name of the thread that sent it.
        name: String,
    },
}

impl FatalSignal {
    /// Its name (signal(7)); `None` for one that ends no server.
    pub fn name(&self) -> Option<&'static str> {
        const NAMES: [(u32, &str); 7] = [
            (4, "SIGILL"),
            (6, "SIGABRT"),
            (7, "SIGBUS"),
            (8, "SIGFPE"),
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (31, "SIGSYS"),
        ];
        NAMES.into_iter().find(|(number, _)| *number == self.number).map(|(_, name)| name)
    }

    /// The connection whose statement failed.
    pub fn connection_id(&self) -> Option<u64> {
        match self.sender {
            Sender::Thread { connection_id, .. } => connection_id,
            _ => None,
        }
    }
}

impl fmt::Display for FatalSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => out.write_str(name)?,
            None => write!(out, "signal {}", self.number)?,
        }
        match &self.sender {
            Sender::Thread { connection_id: Some(id), .. } => write!(out, " in session {id}"),
            Sender::Thread { name, .. } => {
                write!(out, " in its own thread {}", visible::name(name))
            }
            Sender::Kernel => out.write_str(" from the kernel"),
            Sender::Process { pid, name } => {
                write!(out, " from pid {pid} ({})", visible::name(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_says_its_name_and_where_it_came_from() {
        let of_thread =
            |connection_id| Sender::Thread { connection_id, name: "ib\u{202e}x".into() };
        let systemd = Sender::Process { pid: 1, name: "systemd".into() };
        for (number, sender, words) in [
            (11, of_thread(Some(9)), "SIGSEGV in session 9"),
            (6, of_thread(None), "SIGABRT in its own thread ib<U+202E>x"),
            (9, Sender::Kernel, "SIGKILL from the kernel"),
            (9, systemd.clone(), "SIGKILL from pid 1 (systemd)"),
            (99, systemd, "signal 99 from pid 1 (systemd)"),
        ] {
            assert_eq!(FatalSignal { number, sender }.to_string(), words);
        }
    }
}
