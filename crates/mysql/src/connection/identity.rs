//! Which server answers.

use std::path::{Path, PathBuf};

use waggle_model::Flavour;

use super::{Bare, ConnectionError, MARK, Row};

/// `ER_UNKNOWN_SYSTEM_VARIABLE`.
const UNKNOWN_VARIABLE: u16 = 1193;

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `VERSION()`.
    pub version: String,
    /// `@@version_comment`.
    pub version_comment: String,
    /// The family, by the version.
    pub flavour: Flavour,
    /// The TCP port; `None` where it listens on none.
    pub port: Option<u16>,
    /// The unix socket, as the server's own mount namespace names it.
    pub socket: PathBuf,
    /// The data directory, as the server's own mount namespace names it.
    pub data_directory: PathBuf,
    /// The pid file, as the server's own mount namespace names it.
    pub pid_file: PathBuf,
    /// `@@server_uuid`; MariaDB has none.
    pub server_uuid: Option<String>,
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

/// What is known from the host about the process that is watched.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Its data directory.
    pub data_directory: Option<PathBuf>,
    /// The TCP ports it listens on.
    pub ports: Vec<u16>,
    /// The unix sockets it listens on.
    pub sockets: Vec<PathBuf>,
}

impl ServerIdentity {
    /// Major, minor and patch number of the version; a part that is missing is 0.
    pub fn version_numbers(&self) -> (u32, u32, u32) {
        let digits = |part: &str| {
            part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
        };
        let mut parts = self.version.split('.').map(digits);
        let mut next = || parts.next().unwrap_or(0);
        (next(), next(), next())
    }

    /// Why this is not the server that is watched; `None` where nothing speaks against it: the data
    /// directory is the same, and the port or the socket is one of its own. What is not known from
    /// the host is not compared. Two containers can agree in all three: what proves the identity is
    /// a statement of this connection that is captured from the process.
    pub fn differs_from(&self, expected: &Expected) -> Option<String> {
        let same_folder = |ours: &Path| ours.components().eq(self.data_directory.components());
        if let Some(folder) = expected.data_directory.as_deref().filter(|path| !same_folder(path)) {
            return Some(format!(
                "the option file leads to a server with data directory {}, the watched one has {}; \
                 name its socket in the option file",
                self.data_directory.display(),
                folder.display()
            ));
        }
        let port = self.port.is_some_and(|port| expected.ports.contains(&port));
        let known = !expected.ports.is_empty() || !expected.sockets.is_empty();
        if known && !port && !expected.sockets.contains(&self.socket) {
            return Some(format!(
                "the option file leads to a server with port {} and socket {}, the watched one has \
                 ports {:?} and sockets {:?}; name its socket in the option file",
                self.port.unwrap_or(0),
                self.socket.display(),
                expected.ports,
                expected.sockets
            ));
        }
        None
    }
}

pub(super) fn ask(connection: &mut Bare) -> Result<ServerIdentity, ConnectionError> {
    let row = connection
        .rows(&format!(
            "SELECT CONNECTION_ID() AS {MARK}, VERSION(), @@version_comment, @@port, @@socket, \
             @@datadir, @@pid_file, CURRENT_USER(), @@performance_schema, \
             @@thread_handling"
        ))?
        .pop()
        .unwrap_or_default();
    let text = |at| text(&row, at);
    let version = text(1);
    let flavour = match version.contains("MariaDB") {
        true => Flavour::Mariadb,
        false => Flavour::Mysql,
    };
    let server_uuid = match connection.rows(&format!("SELECT @@server_uuid AS {MARK}")) {
        Ok(rows) => rows.first().map(|row| self::text(row, 0)),
        Err(error) if error.number() == Some(UNKNOWN_VARIABLE) => None,
        Err(error) => return Err(error),
    };
    let connection_id = text(0).parse().map_err(|_| ConnectionError::Unexpected {
        what: format!("connection id {:?}", text(0)),
    })?;
    Ok(ServerIdentity {
        version,
        version_comment: text(2),
        flavour,
        port: text(3).parse().ok().filter(|port| *port != 0),
        socket: text(4).into(),
        data_directory: text(5).into(),
        pid_file: text(6).into(),
        server_uuid,
        connection_id,
        account: text(7),
        performance_schema: text(8) == "1",
        thread_per_connection: text(9) == "one-thread-per-connection",
    })
}

fn text(row: &Row, at: usize) -> String {
    let bytes = row.get(at).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ServerIdentity {
        ServerIdentity {
            version: "10.11.19-MariaDB".to_owned(),
            version_comment: String::new(),
            flavour: Flavour::Mariadb,
            port: Some(3306),
            socket: "/run/s.sock".into(),
            data_directory: "/var/lib/mysql/".into(),
            pid_file: PathBuf::new(),
            server_uuid: None,
            connection_id: 1,
            account: String::new(),
            performance_schema: false,
            thread_per_connection: true,
        }
    }

    fn expected(folder: &str, ports: &[u16], sockets: &[&str]) -> Expected {
        Expected {
            data_directory: Some(folder.into()),
            ports: ports.to_vec(),
            sockets: sockets.iter().map(PathBuf::from).collect(),
        }
    }

    #[test]
    fn the_same_server_is_known_by_folder_and_one_of_port_and_socket() {
        for (folder, ports, sockets, same) in [
            ("/var/lib/mysql", &[3306][..], &[][..], true),
            ("/var/lib/mysql/", &[], &["/run/s.sock"], true),
            ("/var/lib/mysql", &[3307], &["/run/s.sock"], true),
            ("/var/lib/mysql", &[], &[], true),
            ("/var/lib/mysql", &[3307], &["/run/t.sock"], false),
            ("/var/lib/mysql2", &[3306], &["/run/s.sock"], false),
        ] {
            let differs = identity().differs_from(&expected(folder, ports, sockets));
            assert_eq!(differs.is_none(), same, "{folder} {ports:?} {sockets:?}: {differs:?}");
        }
    }

    #[test]
    fn a_version_has_three_numbers_also_with_a_suffix() {
        let of = |version: &str| {
            ServerIdentity { version: version.to_owned(), ..identity() }.version_numbers()
        };
        assert_eq!(of("9.7.4-2"), (9, 7, 4));
        assert_eq!(of("10.11.19-MariaDB-0+deb12u1"), (10, 11, 19));
        assert_eq!(of("8.0"), (8, 0, 0));
        assert_eq!(of("odd"), (0, 0, 0));
    }
}
