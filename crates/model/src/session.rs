//! One statement that is running now.

use crate::{Command, Identity, SessionSettings, StatementKey, Text};

/// A statement that was running when its session was read from outside.
#[derive(Clone, Debug, Default)]
pub struct RunningStatement {
    /// Address of the session inside the server.
    pub thd: u64,
    /// The connection id that `SHOW PROCESSLIST` shows.
    pub connection_id: u64,
    /// The command.
    pub command: Command,
    /// The start as the server notes it, microseconds of its own clock.
    pub noted_start_us: Option<u64>,
    /// Since when it runs, nanoseconds of `CLOCK_MONOTONIC`; `None` where the start is not known.
    pub start_ns: Option<u64>,
    /// The first bytes of the text; `None` where the command has none or it changed under the
    /// reader.
    pub text: Option<Vec<u8>>,
    /// The true length of the text in bytes.
    pub text_length: u64,
    /// The settings of the session; `None` where they are not known.
    pub settings: Option<SessionSettings>,
    /// Who and where.
    pub identity: Identity,
    /// What the server says that it does (`PROCESSLIST_STATE`).
    pub state: Option<Vec<u8>>,
    /// Whether its thread has slept since the look before, all the time; `None` where this statement
    /// was not seen at that look.
    pub has_slept: Option<bool>,
}

impl RunningStatement {
    /// The text as it was read.
    pub fn text(&self) -> Option<Text<'_>> {
        self.text.as_deref().map(|bytes| Text { bytes, length: self.text_length })
    }

    /// What tells it from every other statement of its server.
    pub fn key(&self) -> StatementKey {
        StatementKey {
            thd: self.thd,
            connection_id: self.connection_id,
            noted_start_us: self.noted_start_us.unwrap_or(0),
        }
    }
}
