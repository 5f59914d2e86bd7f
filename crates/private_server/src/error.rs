//! Why there is no private server.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private server cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PrivateServerError {
    /// There is no such program.
    #[error("{} is no program that can be run: {reason}; name a mysqld or mariadbd", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A list of servers is wrong.
    #[error("the list of servers {}: {reason}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Files that come with the program are missing.
    #[error(
        "{what} of {} cannot be found; name the program of a whole installation, or a list of servers that says \
         where they are", program.display()
    )]
    Incomplete {
        /// The program.
        program: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// The server would live on where we are killed.
    #[error(
        "{}: {what}, so that it would live on where waggle is killed; name a copy of it in the same installation, or run \
         waggle as root", path.display()
    )]
    Outlives {
        /// The program.
        path: PathBuf,
        /// What it has.
        what: &'static str,
    },
    /// There is no place for its files.
    #[error("{} cannot be used for private servers: {source}; name another place with TMPDIR", path.display())]
    Place {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Only root may start a program in another root directory, or as another user.
    #[error(
        "the server runs {how}: only root can start another one there; run waggle as root, or name a \
         program outside of it"
    )]
    NotRoot {
        /// How it runs.
        how: &'static str,
    },
    /// There is too little room for the data.
    #[error(
        "{} has {free_mib} MiB free and a private server needs {needed_mib}; name another place with \
         TMPDIR", path.display()
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// What is free, MiB.
        free_mib: u64,
        /// What is needed, MiB.
        needed_mib: u64,
    },
    /// The path of the socket is too long.
    #[error("the path of a socket may have 107 bytes: {} is longer; set TMPDIR to a shorter path", path.display())]
    PathTooLong {
        /// The socket.
        path: PathBuf,
    },
    /// The system refuses something.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What a process names cannot be looked at.
    #[error(
        "{} of process {process} cannot be looked at: {reason}; name a program outside of it, or mend what it names",
        path.display()
    )]
    Foreign {
        /// The process.
        process: u32,
        /// What it names, as it sees it.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Somebody will not wait any longer.
    #[error("it was stopped before the private server had started")]
    Stopped,
    /// The server does not start.
    #[error(
        "the private server did not start: {reason}; where AppArmor or SELinux confines the program, \
         name a copy of it in the same installation\n{log}"
    )]
    DidNotStart {
        /// How it ended.
        reason: String,
        /// What it said.
        log: String,
    },
}

impl PrivateServerError {
    /// For `map_err`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    /// The same of the place for files of servers.
    pub(crate) fn place(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Place { path: path.to_owned(), source }
    }
}
