//! Why a process cannot be watched.

use std::io;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::InstanceError;
use super::elf::ElfError;
use super::program::shown;

/// Why a process is not recognised as a server that can be watched.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
#[error("{why}")]
pub struct RecogniseError {
    why: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// The file is no server's.
    NoServer,
    /// A loader of programs has mapped no server, or none yet.
    NotLoaded,
    /// The file takes too much of who reads it.
    TooMuch,
    /// The process cannot be read, or not now.
    Process,
    /// It is so new that it may be recognised in a moment.
    Starting,
}

impl RecogniseError {
    /// Whether the server is so new that it may be recognised in a moment.
    pub fn is_starting(&self) -> bool {
        self.kind == Kind::Starting
    }

    /// Whether it holds for the process only, or for now only.
    pub fn is_of_process(&self) -> bool {
        matches!(self.kind, Kind::Process | Kind::Starting)
    }

    /// Whether it is no server, as far as its program says. Nobody needs to hear this of a process that only might have
    /// been one.
    pub fn is_no_server(&self) -> bool {
        matches!(self.kind, Kind::NoServer | Kind::NotLoaded)
    }

    /// Whether it holds for the file, and so for every process that runs it.
    pub(super) fn is_of_file(&self) -> bool {
        matches!(self.kind, Kind::NoServer | Kind::TooMuch)
    }

    /// Reading it costs more than it may. `is_of_file`: every time.
    pub(super) fn too_much(why: String, is_of_file: bool) -> Self {
        Self { why, kind: if is_of_file { Kind::TooMuch } else { Kind::Process } }
    }

    /// No child can be started, or it cannot give up its rights.
    pub(super) fn no_child(error: &io::Error) -> Self {
        let why = format!(
            "its program is read by a process without rights, which cannot be made: {error}; run waggle as root"
        );
        Self { why, kind: Kind::Process }
    }

    /// Nobody waited until it was its turn.
    pub(super) fn not_asked(pid: u32) -> Self {
        let why = format!(
            "process {pid}: its program was not read: more processes of users other than root, mysql and the one who runs \
             waggle look like servers than can be read in this time; `waggle watch` goes on reading"
        );
        Self { why, kind: Kind::Process }
    }

    /// What a child said has no sense.
    pub(super) fn unanswered(pid: u32) -> Self {
        let why = format!("process {pid}: what its program says of it cannot be");
        Self { why, kind: Kind::TooMuch }
    }

    /// The same as it may be shown: a child said it.
    pub(super) fn cleaned(self) -> Self {
        Self { why: shown(&self.why), ..self }
    }
}

impl From<ElfError> for RecogniseError {
    fn from(error: ElfError) -> Self {
        let kind = match error {
            ElfError::Read { .. } => Kind::Process,
            _ => Kind::NoServer,
        };
        Self { why: error.to_string(), kind }
    }
}

impl From<InstanceError> for RecogniseError {
    fn from(error: InstanceError) -> Self {
        let kind = match error {
            InstanceError::Key { .. } => Kind::Starting,
            InstanceError::NotLoaded { .. } => Kind::NotLoaded,
            _ => Kind::Process,
        };
        Self { why: error.to_string(), kind }
    }
}
