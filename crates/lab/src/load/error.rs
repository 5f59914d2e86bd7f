//! Why there is no load.

use std::io;
use std::path::PathBuf;

use waggle_mysql::ConnectionError;

/// Why there is no load, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such program.
    #[error("there is no program {}; install the package sysbench (version 1.0)", program.display())]
    Missing {
        /// The program that was looked for.
        program: PathBuf,
    },
    /// It is not sysbench 1.0.
    #[error("{} is not sysbench 1.0, it says `{said}`; install the package sysbench", program.display())]
    Version {
        /// The program.
        program: PathBuf,
        /// What it says of its version.
        said: String,
    },
    /// There is no such script.
    #[error(
        "there is no script {script}; name one that comes with sysbench (in /usr/share/sysbench, \
         without .lua)"
    )]
    Script {
        /// The script.
        script: String,
    },
    /// sysbench failed.
    #[error("sysbench with {script}: {how}\n{said}")]
    Failed {
        /// The script.
        script: String,
        /// What it could not do, or how it ended.
        how: String,
        /// What it said.
        said: String,
    },
    /// Sessions did not come to a pause.
    #[error(
        "the sessions of {script} did not {what} in {seconds} s: the server may hang; look at what runs there (SHOW PROCESSLIST)"
    )]
    Late {
        /// The script.
        script: String,
        /// What was waited for.
        what: &'static str,
        /// For how long.
        seconds: u64,
    },
    /// The system refuses something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// sysbench cannot read such a password.
    #[error(
        "the password of the account cannot be given to sysbench: it holds both kinds of quotes or is \
         longer than 237 bytes; name another account, or measure under the load that is there with \
         --no-load"
    )]
    Password,
    /// sysbench cannot check a certificate.
    #[error(
        "sysbench cannot use TLS as the option file asks (ssl-mode); name the unix socket of the \
         server, or measure under the load that is there with --no-load"
    )]
    Tls,
    /// The database of the load cannot be made.
    #[error("the database of the load: {0}")]
    Database(#[from] ConnectionError),
}

impl LoadError {
    /// For `map_err`.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::System { what: what.into(), source }
    }
}
