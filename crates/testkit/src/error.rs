//! What can go wrong, with the remedy.

use std::io;
use std::path::{Path, PathBuf};

use waggle_private_server::PrivateServerError;
use waggle_sysbench::SysbenchError;

use crate::Version;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the kit could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program of this server is not on this machine.
    #[error("{version} is not installed: {} is missing; run `cargo xtask setup`", program.display())]
    NotInstalled {
        /// The server that was asked for.
        version: Version,
        /// The file that should be there.
        program: PathBuf,
    },
    /// The system refused an operation on a file or program.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file or program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server did not come up, or did not stop.
    #[error("{version}: {error}")]
    Server {
        /// The server.
        version: Version,
        /// Why.
        error: PrivateServerError,
    },
    /// The server refused the accounts of the kit.
    #[error("{version} refused the accounts of the kit; its error log:\n{log}")]
    Accounts {
        /// The server.
        version: Version,
        /// Its error log.
        log: String,
    },
    /// No program can be started.
    #[error("the thread that starts programs is missing; are there too many threads?")]
    Spawner,
    /// An operation needs a running server, and this one was stopped or killed.
    #[error("{version} is not running: call restart() first")]
    NotRunning {
        /// The server.
        version: Version,
    },
    /// The connection to the server broke, or could not be made.
    #[error("the connection to the server failed: {0}")]
    Connection(io::Error),
    /// TLS could not be agreed on.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
    /// The server said something that the client does not understand.
    #[error("the server and the client do not understand each other: {0}")]
    Protocol(String),
    /// The server answered with an error.
    #[error("the server refused: error {code}, {message}")]
    Refused {
        /// The server's error number.
        code: u16,
        /// Its message.
        message: String,
    },
    /// sysbench failed.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
    /// OpenSSL refused to make a key, a certificate or a context.
    #[error("OpenSSL: {0}")]
    Tls(#[from] openssl::error::ErrorStack),
}

impl Error {
    /// For `map_err`: an [`Error::Io`] about `path`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    /// For `map_err`: an [`Error::Server`].
    pub(crate) fn server(version: Version) -> impl FnOnce(PrivateServerError) -> Self {
        move |error| Self::Server { version, error }
    }

    /// For `map_err`: an [`Error::Connection`].
    pub(crate) fn connection(source: io::Error) -> Self {
        Self::Connection(source)
    }
}
