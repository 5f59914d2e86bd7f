//! One statement that is running now.

use crate::{Command, Identity};

/// A statement that was running when its session was read from outside.
#[derive(Clone, Debug)]
pub struct RunningStatement {
    /// Address of the session inside the server.
    pub thd: u64,
    /// The connection id that `SHOW PROCESSLIST` shows.
    pub connection_id: u64,
    /// The command.
    pub command: Command,
    /// Since when it runs, nanoseconds of `CLOCK_MONOTONIC`; `None` where the start is not known.
    pub start_ns: Option<u64>,
    /// The first bytes of the text; `None` where the command has none or it changed under the
    /// reader.
    pub text: Option<Vec<u8>>,
    /// The true length of the text in bytes.
    pub text_length: u64,
    /// Who and where.
    pub identity: Identity,
    /// What the server says that it does (`PROCESSLIST_STATE`).
    pub state: Option<Vec<u8>>,
}
