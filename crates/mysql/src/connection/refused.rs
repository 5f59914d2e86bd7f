//! What helps where a server refuses a connection, by the number of its error (`mysqld_error.h`).

/// Where the server ended a connection before the login was over.
pub(super) const CLOSED: &str = "it is starting or ending, has no place for more connections, or is no MySQL or MariaDB \
    server: read its error log, and check `socket`, `host` and `port` in the option file";

/// The remedy. The access denials of a login have their own error.
pub(super) fn remedy(number: u16) -> &'static str {
    match number {
        // ER_CON_COUNT_ERROR
        1040 => {
            "all of its max_connections are in use: connect there with `host` and `port` of its second entrance: \
             admin_address and admin_port of MySQL 8.0.14 and later (the account needs SERVICE_CONNECTION_ADMIN), \
             extra_port of MariaDB and Percona Server; or end sessions"
        }
        // ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
        1203 | 1226 => {
            "this account has reached its own limit: end sessions of it, name another account with `user`, or raise \
             max_user_connections or the limit of the account (ALTER USER ... WITH)"
        }
        // ER_HOST_IS_BLOCKED
        1129 => {
            "connections from this host failed too often (max_connect_errors): unblock it with FLUSH HOSTS, or \
             TRUNCATE TABLE performance_schema.host_cache (MySQL 5.6 and later), or connect over the unix socket"
        }
        // ER_HOST_NOT_PRIVILEGED
        1130 => {
            "no account of the server may log in from this host: CREATE USER for it there, or connect over the unix \
             socket"
        }
        // ER_BAD_HOST_ERROR
        1042 => {
            "the server cannot find the name of this host: mend its name service, set skip_name_resolve, or connect \
             over the unix socket"
        }
        // ER_HANDSHAKE_ERROR; ER_NET_READ_ERROR, …_READ_INTERRUPTED, …_ERROR_ON_WRITE, …_WRITE_INTERRUPTED
        1043 | 1158..=1161 => CLOSED,
        // ER_SERVER_SHUTDOWN
        1053 => "it is being shut down: try again when it has started",
        // ER_SERVER_OFFLINE_MODE
        3032 => {
            "it admits administrators only: SET GLOBAL offline_mode = OFF, or name such an account with `user`"
        }
        // ER_ACCOUNT_HAS_BEEN_LOCKED of MySQL and of MariaDB
        3118 | 4151 => {
            "unlock the account (ALTER USER ... ACCOUNT UNLOCK), or name another one with `user`"
        }
        // ER_SECURE_TRANSPORT_REQUIRED
        3159 => "write ssl-mode = REQUIRED into the [client] group of the option file",
        _ => "the server runs and refuses this login: its error log may tell more",
    }
}

#[cfg(test)]
mod tests {
    use mysql::MySqlError;

    use super::super::ConnectionError;
    use crate::Options;
    use crate::connection::Endpoint;

    fn said(error: mysql::Error) -> String {
        let endpoint = Endpoint::Socket("/run/mysqld.sock".into());
        ConnectionError::open(&endpoint, &Options::default(), error).to_string()
    }

    fn refused(code: u16) -> String {
        let [state, message] = ["08004", "what it says"].map(str::to_owned);
        said(mysql::Error::MySqlError(MySqlError { state, message, code }))
    }

    #[test]
    fn each_refusal_at_login_has_its_remedy_and_none_asks_whether_the_server_runs() {
        for (codes, words) in [
            (
                &[1040][..],
                &["max_connections", "admin_port", "SERVICE_CONNECTION_ADMIN", "extra_port"][..],
            ),
            (&[1203, 1226], &["this account has reached its own limit", "max_user_connections"]),
            (&[1129], &["FLUSH HOSTS", "TRUNCATE TABLE performance_schema.host_cache"]),
            (&[1130], &["from this host", "CREATE USER"]),
            (&[1042], &["name of this host", "skip_name_resolve"]),
            (&[1043, 1158, 1159, 1160, 1161], &["starting or ending", "error log"]),
            (&[1053], &["shut down"]),
            (&[3032], &["offline_mode"]),
            (&[3118, 4151], &["ACCOUNT UNLOCK"]),
            (&[3159], &["ssl-mode = REQUIRED"]),
            (&[1105, 4000], &["its error log may tell more"]),
            (&[1045, 1698], &["login of user", "check user and password"]),
        ] {
            for code in codes {
                let said = refused(*code);
                for words in ["/run/mysqld.sock", "what it says"].iter().chain(words) {
                    assert!(said.contains(words), "{code}: {said}");
                }
                assert!(!said.contains("check that it runs"), "{code}: {said}");
            }
        }
    }

    #[test]
    fn a_connection_that_is_closed_before_the_login_is_over_is_told_as_that() {
        use std::io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof,
        };
        for kind in [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof] {
            let said = said(mysql::Error::IoError(kind.into()));
            assert!(
                said.contains("closed the connection before") && said.contains("error log"),
                "{said}"
            );
        }
        let said = said(mysql::Error::IoError(ConnectionRefused.into()));
        assert!(said.contains("check that it runs"), "{said}");
    }
}
