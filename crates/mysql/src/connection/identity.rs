//! Which server answers.

use waggle_model::{Flavour, ServerVersion};

use super::driver::Driver;
use super::{ConnectionError, MARK, Row};

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `VERSION()`.
    pub version: String,
    /// The family, by the version.
    pub flavour: Flavour,
    /// The TCP port; `None` if it listens on none.
    pub port: Option<u16>,
    /// The id of this connection, as `SHOW PROCESSLIST` shows it.
    pub connection_id: u64,
    /// The account that this connection is logged in as (`CURRENT_USER()`).
    pub account: String,
    /// Whether Performance Schema is on.
    pub performance_schema: bool,
    /// Whether each connection has a thread of its own, and no pool serves them
    /// (`@@thread_handling`).
    pub thread_per_connection: bool,
}

impl ServerIdentity {
    /// The version in numbers.
    pub fn server_version(&self) -> ServerVersion {
        ServerVersion::parse(self.flavour, &self.version)
    }
}

/// The family, by what `VERSION()` says.
fn flavour_of(version: &str) -> Flavour {
    match version.contains("MariaDB") {
        true => Flavour::Mariadb,
        false => Flavour::Mysql,
    }
}

#[cfg(test)]
impl ServerIdentity {
    /// A server of this version, with Performance Schema on.
    pub(crate) fn of_version(version: &str) -> ServerIdentity {
        ServerIdentity {
            version: version.to_owned(),
            flavour: flavour_of(version),
            port: None,
            connection_id: 1,
            account: String::new(),
            performance_schema: true,
            thread_per_connection: true,
        }
    }
}

pub(super) fn ask(driver: &mut Driver) -> Result<ServerIdentity, ConnectionError> {
    let row = driver
        .rows(&format!(
            "SELECT CONNECTION_ID() AS {MARK}, VERSION(), @@port, CURRENT_USER(), \
             @@performance_schema, @@thread_handling"
        ))?
        .pop()
        .unwrap_or_default();
    let text = |at| text(&row, at);
    let version = text(1);
    let flavour = flavour_of(&version);
    let connection_id = text(0).parse().map_err(|_| ConnectionError::Unexpected {
        what: format!("connection id {:?}", text(0)),
    })?;
    Ok(ServerIdentity {
        version,
        flavour,
        port: text(2).parse().ok().filter(|port| *port != 0),
        connection_id,
        account: text(3),
        performance_schema: text(4) == "1",
        thread_per_connection: text(5) == "one-thread-per-connection",
    })
}

fn text(row: &Row, at: usize) -> String {
    let bytes = row.get(at).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
