//! One connection to the server that is watched.
//!
//! Least privileges: an account that can log in reads everything but the tables of
//! `performance_schema`; for those it needs `GRANT SELECT ON performance_schema.* TO …`. No
//! `SUPER`, no `PROCESS`, nothing on the data.

mod digest_session;
mod endpoint;
mod error;
mod identity;
mod rows;

use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use crate::options::{Options, TlsMode};
use endpoint::TlsFiles;

pub use digest_session::{DigestSession, why_no_digests};
pub use endpoint::Endpoint;
pub use error::ConnectionError;
pub use identity::ServerIdentity;
pub use rows::{absent_or, absent_without, optional_text, text};

/// An alias that stands in every statement that waggle sends: aliases stay in a digest text, so our
/// own digests can be told from all others.
pub const MARK: &str = "waggle_own";

/// The longest `wait_timeout` that every server takes, s: a session that waits for something to do must not be closed
/// for being idle.
pub const IDLE_MAX_S: u32 = 31_536_000;

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to answer one of our statements.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest packet that we take. Naming it keeps the driver from asking the server for it with a
/// statement of its own, which nobody would count.
const PACKET_BYTES_MAX: usize = 1 << 30;

/// A connection that counts the statements it sends.
pub struct Connection {
    conn: Conn,
    statements: u64,
    identity: ServerIdentity,
    endpoint: Endpoint,
}

/// One row of a result, in the bytes that the server sent; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

impl Connection {
    /// Connects and logs in. Over TCP where the options name a host other than `localhost`, or TCP;
    /// else over the unix socket: that of the options, else `hint` (the socket of the process that
    /// is watched, as this process can reach it), else the usual places.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the login, or TLS fails.
    pub fn open(options: &Options, hint: Option<&Path>) -> Result<Connection, ConnectionError> {
        let endpoint = Endpoint::choose(options, hint)?;
        let mut bare = Bare { conn: log_in(options, &endpoint)?, statements: 0 };
        let identity = identity::ask(&mut bare)?;
        Ok(Connection { conn: bare.conn, statements: bare.statements, identity, endpoint })
    }

    /// As [`Connection::open`], for statements that change what is set: in its session backslashes escape, dates and
    /// zeros are as they are written, and it may say nothing for [`IDLE_MAX_S`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_for_changes(options: &Options) -> Result<Connection, ConnectionError> {
        let mut connection = Connection::open(options, None)?;
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

    /// How many statements this connection has sent so far.
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// Sends one statement whose text holds `marker`, so that whoever captures the statements of a
    /// process can be sure that this connection belongs to it. The marker may hold letters, digits
    /// and `_` only; other characters are left out.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn say(&mut self, marker: &str) -> Result<(), ConnectionError> {
        let marker: String =
            marker.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.rows(&format!("SELECT '{marker}' AS {MARK}")).map(drop)
    }

    /// Sends one statement and gives all rows of its result. Who reads the server's counters later
    /// knows it for our own where [`MARK`] stands in it.
    ///
    /// # Errors
    /// The server refuses it, or the connection is broken.
    pub fn rows(&mut self, statement: &str) -> Result<Vec<Row>, ConnectionError> {
        self.statements += 1;
        send(&mut self.conn, statement)
    }

    /// A number among the status variables of the server; `None` where it has no such one.
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
    let base = endpoint.apply(
        OptsBuilder::new()
            .user(options.user.clone())
            .pass(options.password.as_ref().map(password).transpose()?)
            .prefer_socket(false)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .stmt_cache_size(0)
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(ANSWER_TIMEOUT))
            .write_timeout(Some(ANSWER_TIMEOUT)),
    );
    let wants_tls = endpoint.is_tcp() && options.tls.mode != TlsMode::Disabled;
    let opened = match wants_tls {
        true => Conn::new(base.clone().ssl_opts(tls.driver_options(&options.tls))),
        false => Conn::new(base.clone()),
    };
    let opened = match opened {
        Err(error) if wants_tls && endpoint.may_go_without_tls(options.tls.mode, &error) => {
            Conn::new(base)
        }
        other => other,
    };
    opened.map_err(|error| ConnectionError::open(endpoint, options, error))
}

/// A connection that does not know its server yet.
struct Bare {
    conn: Conn,
    statements: u64,
}

impl Bare {
    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, ConnectionError> {
        self.statements += 1;
        send(&mut self.conn, statement)
    }
}

fn send(conn: &mut Conn, statement: &str) -> Result<Vec<Row>, ConnectionError> {
    let rows: Vec<mysql::Row> = conn.query(statement).map_err(ConnectionError::statement)?;
    let bytes = |value| match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    };
    Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(bytes).collect()).collect())
}

fn password(secret: &crate::Secret) -> Result<String, ConnectionError> {
    String::from_utf8(secret.reveal().to_vec()).map_err(|_| ConnectionError::PasswordNotUtf8)
}
