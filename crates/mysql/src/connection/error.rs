//! Errors of the connection.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use super::refused::{CLOSED, denied_remedy, remedy, statement_remedy};
use crate::options::Options;

/// `ER_ACCESS_DENIED_ERROR`, `ER_DBACCESS_DENIED_ERROR`, `ER_TABLEACCESS_DENIED_ERROR`,
/// `ER_COLUMNACCESS_DENIED_ERROR` and `ER_SPECIFIC_ACCESS_DENIED_ERROR`.
const ACCESS_DENIED: [u16; 5] = [1045, 1044, 1142, 1143, 1227];
const ACCESS_DENIED_AT_LOGIN: [u16; 2] = [1045, 1698];

/// Why the server did not answer.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ConnectionError {
    /// No socket is named and none is at the usual places.
    #[error(
        "server: no unix socket found at {places}; name it with `socket` in the [client] group of an \
         option file (--defaults-file FILE)"
    )]
    NoSocket {
        /// Where was looked.
        places: String,
    },
    /// Nobody answers there.
    #[error(
        "server at {endpoint}: {error}; check that it runs, or name another place with `socket` or `host` in the \
         [client] group of an option file (--defaults-file FILE)"
    )]
    Unreachable {
        /// The place.
        endpoint: String,
        /// What the driver says.
        error: String,
    },
    /// The socket belongs to a user who is not trusted with the password.
    #[error(
        "server at {path}: its socket belongs to uid {uid}, who would get the password; only root, the user who runs \
         waggle and {user} may: where that is right, write server-user = {uid} into the [client] group of the option \
         file"
    )]
    ForeignSocket {
        /// The place.
        path: String,
        /// The owner.
        uid: u32,
        /// The user whose socket it may be.
        user: String,
    },
    /// The server wants the password over a connection that is not encrypted.
    #[error(
        "server at {endpoint}: it asks for the password, and the connection is not encrypted; write \
         ssl-mode = REQUIRED, or server-public-key-path = FILE (the server's public_key.pem), into the [client] \
         group of the option file"
    )]
    NotEncrypted {
        /// The place.
        endpoint: String,
    },
    /// The server refuses the login.
    #[error("server at {endpoint}: login of user {user} refused: {message}; {remedy}")]
    LoginRefused {
        /// The place.
        endpoint: String,
        /// The user.
        user: String,
        /// What the server says.
        message: String,
        /// What helps.
        remedy: String,
    },
    /// The server wants a login that waggle has not.
    #[error(
        "server at {endpoint}: login of user {user}: {error}; waggle has no such login: name an account with a \
         password of another plugin with `user`"
    )]
    OtherLogin {
        /// The place.
        endpoint: String,
        /// The user.
        user: String,
        /// What the driver says.
        error: String,
    },
    /// The server refuses the connection for another reason.
    #[error("server at {endpoint}: error {number}: {message}; {}", remedy(*.number))]
    Refused {
        /// The place.
        endpoint: String,
        /// Number of the error.
        number: u16,
        /// What the server says.
        message: String,
    },
    /// Somebody listens there, and ended the connection.
    #[error(
        "server at {endpoint}: it closed the connection before the login was over: {error}; {CLOSED}"
    )]
    Closed {
        /// The place.
        endpoint: String,
        /// What the driver says.
        error: String,
    },
    /// TLS could not be agreed on.
    #[error(
        "server at {endpoint}: TLS failed: {error}; check ssl-ca and that the server's certificate names \
         this host; a server that speaks only TLS 1.0 or 1.1 (MySQL 5.7 with yaSSL) is reached over \
         its unix socket"
    )]
    Tls {
        /// The place.
        endpoint: String,
        /// What the driver says.
        error: String,
    },
    /// A certificate or key of the option file cannot be used.
    #[error("TLS file {path}: {reason}")]
    TlsFile {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The password is not UTF-8.
    #[error("password: is not UTF-8; write the option file in UTF-8")]
    PasswordNotUtf8,
    /// The server refused one of our statements.
    #[error("server: error {number}: {message}{}", statement_remedy(*.number))]
    Statement {
        /// Number of the error.
        number: u16,
        /// What the server says.
        message: String,
    },
    /// The connection broke.
    #[error("server: the connection broke: {error}; check that the server still runs")]
    Broken {
        /// What the driver says.
        error: String,
    },
    /// An answer did not come to its end in time.
    #[error("the server took too long to answer; the connection is given up")]
    TooSlow,
    /// An answer is larger than any that waggle asks for.
    #[error("server: it answered with more than {most} MiB; the connection is given up")]
    TooMuch {
        /// Mebibytes.
        most: usize,
    },
    /// The driver failed.
    #[error(
        "server: it answered with something that is none of its protocol, or that takes more memory than waggle has for it; \
         check that it is a MySQL or MariaDB server"
    )]
    NotBorne,
    /// The process that runs the driver is not there, for a reason that is not the server.
    #[error("server: the process of waggle that asks it {why}; try again")]
    Child {
        /// What is with it.
        why: String,
    },
    /// The server answered with something that our statement cannot give.
    #[error("server: unexpected answer: {what}; please report it with the server's version")]
    Unexpected {
        /// What was found where.
        what: String,
    },
}

/// What the driver says, without the name of its type.
fn plain(error: &mysql::Error) -> String {
    match error {
        mysql::Error::DriverError(error) => error.to_string(),
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::MySqlError(error) => format!("error {}: {}", error.code, error.message),
        other => other.to_string(),
    }
}

/// Whether the other side ended a connection that was there.
fn is_closed(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl ConnectionError {
    /// A connection that failed; `with_tls` is whether it was tried so.
    pub(super) fn open(
        endpoint: &Endpoint,
        options: &Options,
        with_tls: bool,
        error: mysql::Error,
    ) -> Self {
        if endpoint.lacks_key(options, &error) {
            return ConnectionError::NotEncrypted { endpoint: endpoint.to_string() };
        }
        let endpoint = endpoint.to_string();
        let user = || options.user.clone().unwrap_or_default();
        match error {
            mysql::Error::MySqlError(error) if ACCESS_DENIED_AT_LOGIN.contains(&error.code) => {
                let has_certificate = with_tls && options.tls.cert.is_some();
                let remedy = denied_remedy(error.code, with_tls, has_certificate).to_owned();
                let message = error.message;
                ConnectionError::LoginRefused { endpoint, user: user(), message, remedy }
            }
            mysql::Error::MySqlError(error) => {
                ConnectionError::Refused { endpoint, number: error.code, message: error.message }
            }
            mysql::Error::IoError(error) if is_closed(error.kind()) => {
                ConnectionError::Closed { endpoint, error: error.to_string() }
            }
            error @ (mysql::Error::TlsError(_)
            | mysql::Error::DriverError(mysql::DriverError::TlsNotSupported)) => {
                ConnectionError::Tls { endpoint, error: plain(&error) }
            }
            error @ mysql::Error::DriverError(
                mysql::DriverError::UnknownAuthPlugin(_)
                | mysql::DriverError::OldMysqlPasswordDisabled
                | mysql::DriverError::CleartextPluginDisabled,
            ) => ConnectionError::OtherLogin { endpoint, user: user(), error: plain(&error) },
            error => ConnectionError::Unreachable { endpoint, error: plain(&error) },
        }
    }

    pub(super) fn statement(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(error) => {
                ConnectionError::Statement { number: error.code, message: error.message }
            }
            error => ConnectionError::Broken { error: plain(&error) },
        }
    }

    pub(super) fn child(error: std::io::Error) -> Self {
        ConnectionError::Child { why: format!("does not work: {error}") }
    }

    /// Whether a privilege is missing.
    pub fn is_access_denied(&self) -> bool {
        self.number().is_some_and(|number| ACCESS_DENIED.contains(&number))
    }

    /// The server's error number, where the server refused a statement.
    pub fn number(&self) -> Option<u16> {
        match self {
            ConnectionError::Statement { number, .. } => Some(*number),
            _ => None,
        }
    }
}
