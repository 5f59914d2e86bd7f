//! `waggle ddl`: every statement of data definition and account management, from the tap or from
//! Performance Schema.

mod choice;
mod file;
mod json;
mod line;
mod output;
mod polled;
mod prepared;
mod syslog;
mod tapped;
mod waiting;
mod words;

pub(crate) use choice::{Choice, kinds};
pub(crate) use file::{RotatingFile, Rotation};
pub(crate) use json::Json;
pub(crate) use output::{Destination, Lines};
pub(crate) use polled::Polling;
pub(crate) use syslog::Syslog;
pub(crate) use tapped::Tapped;
pub(crate) use words::{Words, plural};

use std::time::Duration;

/// The arguments of both sources.
#[derive(Clone, Debug)]
pub(crate) struct AuditOptions {
    /// When to stop; `None` runs until a signal comes.
    pub(crate) duration: Option<Duration>,
    /// What is listed.
    pub(crate) choice: Choice,
    /// Literals become `?` in statements.
    pub(crate) redact: bool,
}

/// What was listed in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Statements.
    pub(crate) statements: u64,
    /// Statements that may have been of data definition and were not seen.
    pub(crate) missing: u64,
    /// What could not be written, in words.
    pub(crate) lack: Option<String>,
    /// That a server was read wrongly, in words.
    pub(crate) misread: Option<String>,
    /// What it lacks of servers whose programs were being read all the time, in words.
    pub(crate) unread: Option<String>,
}
