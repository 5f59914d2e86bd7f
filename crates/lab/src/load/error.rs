//! Why there is no load.

use std::io;

use waggle_mysql::ConnectionError;
use waggle_sysbench::SysbenchError;

/// Why there is no load, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// sysbench does not do what it is asked for.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
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
        move |source| SysbenchError::system(what)(source).into()
    }
}
