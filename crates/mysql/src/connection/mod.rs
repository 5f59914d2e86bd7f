//! One connection to the watched server.
//!
//! It needs few rights. An account that can log in reads everything except the tables of
//! `performance_schema`; for those it needs `GRANT SELECT ON performance_schema.* TO …`. It needs no
//! `SUPER`, no `PROCESS` and no right to the data.

mod digest_session;
mod driver;
mod endpoint;
mod error;
mod frame;
#[cfg(test)]
mod fuzz;
mod identity;
mod local_socket;
mod peer;
mod refused;
mod rows;
mod served;

use std::io;
use std::time::Duration;

use mysql::{Conn, LocalInfileHandler, OptsBuilder};
use waggle_model::Reading;

use crate::options::{Options, TlsMode};
use driver::Driver;
use endpoint::TlsFiles;
use local_socket::LocalSocket;

pub use digest_session::{DigestSession, why_no_digests};
pub use endpoint::Endpoint;
pub use error::ConnectionError;
pub use identity::ServerIdentity;
pub use peer::{children_cost, use_children};
pub use rows::{absent_or, absent_without, optional_text, text};
pub use served::serve_as_child;

/// An alias in every statement that waggle sends. Aliases stay in a digest text, so our own digests
/// can be recognized.
pub const MARK: &str = "waggle_own";

/// The longest `wait_timeout` that every server takes, s: a session that waits for something to do must not be closed
/// for being idle.
pub const IDLE_MAX_S: u32 = 31_536_000;

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to answer one of our statements.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// `ER_UNKNOWN_SYSTEM_VARIABLE`.
pub(crate) const UNKNOWN_VARIABLE: u16 = 1193;
/// The longest packet that we take. Naming it keeps the driver from asking the server for it with a
/// statement of its own, which nobody would count.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// A connection that counts the statements it sends.
pub struct Connection {
    driver: Driver,
    statements: u64,
    identity: ServerIdentity,
    endpoint: Endpoint,
}

/// One row of a result, in the bytes that the server sent; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

impl Connection {
    /// Connects and logs in. Over TCP where the options name a host other than `localhost`, or TCP;
    /// else over the unix socket: that of the options, else the usual places.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the login, or TLS fails.
    pub fn open(options: &Options) -> Result<Connection, ConnectionError> {
        let endpoint = Endpoint::choose(options)?;
        Connection::with(Driver::start(options, &endpoint)?, endpoint)
    }

    /// As [`Connection::open`], to a server that we started ourselves: the thread that asks does the work, and an answer
    /// has no limits.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_to_own_server(options: &Options) -> Result<Connection, ConnectionError> {
        let endpoint = Endpoint::choose(options)?;
        Connection::with(Driver::start_here(options, &endpoint)?, endpoint)
    }

    fn with(mut driver: Driver, endpoint: Endpoint) -> Result<Connection, ConnectionError> {
        // One statement asks who it is.
        let identity = identity::ask(&mut driver)?;
        Ok(Connection { driver, statements: 1, identity, endpoint })
    }

    /// As [`Connection::open`], for statements that change what is set: in its session backslashes escape, dates and
    /// zeros are as they are written, and it may say nothing for [`IDLE_MAX_S`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_for_changes(options: &Options) -> Result<Connection, ConnectionError> {
        let mut connection = Connection::open(options)?;
        connection.rows(&format!("SET SESSION sql_mode = '', wait_timeout = {IDLE_MAX_S}"))?;
        Ok(connection)
    }

    /// Where it is connected to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Which server this is, as the server says itself.
    pub fn server_identity(&self) -> &ServerIdentity {
        &self.identity
    }

    /// How many bytes of tokens Performance Schema shows of a digest: as many as the server reads
    /// (`max_digest_length`), and no more than it keeps (`performance_schema_max_digest_length`).
    /// 0: it has no digests. Absent where the server does not say.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn digest_length(&mut self) -> Result<Reading<u64>, ConnectionError> {
        let rows = self.rows(&format!(
            "SELECT LEAST(@@max_digest_length, @@performance_schema_max_digest_length) AS {MARK}"
        ));
        let rows = match rows {
            Err(error) if error.number() == Some(UNKNOWN_VARIABLE) => {
                Reading::absent("this server has no max_digest_length")
            }
            rows => Reading::Value(rows?),
        };
        Ok(rows.and_then(|rows| {
            let length = rows.first().map(|row| text(row, 0)).unwrap_or_default();
            length.parse().map_err(|_| format!("the server says that it is {length:?}"))
        }))
    }

    /// How many statements this connection has sent so far.
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// Sends one statement with `marker` in its text. A capture that sees it knows that this
    /// connection belongs to the captured process. The marker consists of letters, digits and `_`;
    /// other characters are removed.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn say(&mut self, marker: &str) -> Result<(), ConnectionError> {
        let marker: String =
            marker.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.rows(&format!("SELECT '{marker}' AS {MARK}")).map(drop)
    }

    /// Sends one statement and returns all rows of its result. With [`MARK`] in it, a later reader
    /// of the server's counters knows it as our own.
    ///
    /// # Errors
    /// The server refuses it, or the connection is broken.
    pub fn rows(&mut self, statement: &str) -> Result<Vec<Row>, ConnectionError> {
        self.statements += 1;
        self.driver.rows(statement)
    }

    /// A number among the status variables of the server; `None` if it has no such one.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn global_status(&mut self, name: &str) -> Result<Option<u64>, ConnectionError> {
        let rows = self.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        Ok(rows.first().and_then(|row| text(row, 1).parse().ok()))
    }
}

/// Connects and logs in, without any statement.
fn log_in(options: &Options, endpoint: &Endpoint) -> Result<Conn, ConnectionError> {
    let tls = TlsFiles::read(&options.tls)?;
    let socket = match endpoint {
        Endpoint::Socket(path) => Some(LocalSocket::open(path, options)?),
        Endpoint::Tcp { .. } => None,
    };
    let base = endpoint.apply(
        OptsBuilder::new()
            .user(options.user.clone())
            .pass(options.password.as_ref().map(password).transpose()?)
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .stmt_cache_size(0)
            .local_infile_handler(Some(LocalInfileHandler::new(|_, _| Err(no_file()))))
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(ANSWER_TIMEOUT))
            .write_timeout(Some(ANSWER_TIMEOUT)),
        socket.as_ref(),
        options,
    );
    let wants_tls = endpoint.is_tcp() && options.tls.mode != TlsMode::Disabled;
    let opened = match wants_tls {
        true => Conn::new(base.clone().ssl_opts(tls.driver_options(&options.tls))),
        false => Conn::new(base.clone()),
    };
    let (opened, with_tls) = match opened {
        Err(error) if wants_tls && endpoint.may_go_without_tls(options.tls.mode, &error) => {
            (Conn::new(base), false)
        }
        other => (other, wants_tls),
    };
    opened.map_err(|error| ConnectionError::open(endpoint, options, with_tls, error))
}

/// A server may ask for a file in answer to any statement (`LOAD DATA LOCAL`). We send none of these.
fn no_file() -> io::Error {
    io::Error::other("it asked for a file of this host, and gets none")
}

fn password(secret: &crate::Secret) -> Result<String, ConnectionError> {
    String::from_utf8(secret.reveal().to_vec()).map_err(|_| ConnectionError::PasswordNotUtf8)
}
