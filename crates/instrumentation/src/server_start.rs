//! Which start of which server: what is set is gone with the next one.

use serde::{Deserialize, Serialize};
use waggle_model::Flavour;
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

/// One start of a server. It holds until the server ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStart {
    /// `server_uuid`; MariaDB has none: host, port and data directory.
    pub server: String,
    /// When it began, seconds since 1970 by the server's clock. Both numbers that it is made of are
    /// read from that clock, so that a step of the clock does not change it.
    pub began_s: i64,
    /// The number of its process where it runs, as Performance Schema knows it; `None` where that is
    /// off, or the account has no right to it. A server can be started anew within a second.
    #[serde(default)]
    pub process: Option<u64>,
}

impl ServerStart {
    /// Asks the server.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn of(connection: &mut Connection) -> Result<ServerStart, ConnectionError> {
        let (server, schema) = match connection.server_identity().flavour {
            Flavour::Mysql => ("@@server_uuid", "performance_schema"),
            Flavour::Mariadb => {
                ("CONCAT_WS(' ', @@hostname, @@port, @@datadir)", "information_schema")
            }
        };
        let rows = connection.rows(&format!(
            "SELECT {server}, UNIX_TIMESTAMP() - VARIABLE_VALUE FROM {schema}.global_status \
             WHERE VARIABLE_NAME = 'Uptime'"
        ))?;
        let row = rows.first().cloned().unwrap_or_default();
        // MariaDB subtracts a string as a floating-point number.
        let began = text(&row, 1).parse::<f64>().map_err(|_| ConnectionError::Unexpected {
            what: format!("uptime {:?}", text(&row, 1)),
        })?;
        let process = process_of(connection)?;
        Ok(ServerStart { server: text(&row, 0), began_s: began as i64, process })
    }

    /// Whether another look met the server since the same start. A process that one look could not
    /// tell says nothing.
    #[must_use]
    pub fn is(&self, other: &ServerStart) -> bool {
        let processes = self.process.zip(other.process);
        self.server == other.server
            && self.began_s == other.began_s
            && processes.is_none_or(|(one, two)| one == two)
    }
}

/// The main thread of a process has the number of the process.
fn process_of(connection: &mut Connection) -> Result<Option<u64>, ConnectionError> {
    let rows = connection
        .rows("SELECT THREAD_OS_ID FROM performance_schema.threads WHERE NAME = 'thread/sql/main'");
    match rows {
        Ok(rows) => Ok(rows.first().and_then(|row| text(row, 0).parse().ok())),
        Err(error) if error.is_access_denied() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(began_s: i64, process: Option<u64>) -> ServerStart {
        ServerStart { server: "a".into(), began_s, process }
    }

    #[test]
    fn a_start_is_told_by_its_time_and_by_its_process_where_both_looks_know_it() {
        let known = start(1, Some(7));
        assert!(known.is(&known));
        assert!(!known.is(&start(1, Some(8))));
        assert!(!known.is(&start(2, Some(7))));
        assert!(known.is(&start(1, None)) && start(1, None).is(&known));
        assert!(!known.is(&ServerStart { server: "b".into(), ..known.clone() }));
    }
}
