//! Which life of which server: what is set is gone with a restart.

use serde::{Deserialize, Serialize};
use waggle_model::Flavour;
use waggle_mysql::connection::text;
use waggle_mysql::{Connection, ConnectionError};

/// One life of one server, from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// `server_uuid`; MariaDB has none: host, port and data directory.
    pub server: String,
    /// When it began, seconds since 1970 by the server's clock. Both numbers that it is made of are
    /// read from that clock, so that a step of the clock does not change it.
    pub began_s: i64,
}

impl Life {
    /// Asks the server.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn of(connection: &mut Connection) -> Result<Life, ConnectionError> {
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
        Ok(Life { server: text(&row, 0), began_s: began as i64 })
    }
}
