//! What helps where a server refuses a connection, by the number of its error (`mysqld_error.h`).

/// Where the server ended a connection before the login was over.
pub(super) const CLOSED: &str = "it is starting or ending, has no place for more connections, or is no MySQL or MariaDB \
    server: read its error log, and check `socket`, `host` and `port` in the option file";

/// The remedy where a login was denied. Servers say the same to a wrong password and to one that came without the TLS
/// or the certificate that the account must have, so this tells what was tried.
pub(super) fn denied_remedy(number: u16, with_tls: bool, has_certificate: bool) -> &'static str {
    match (number, with_tls, has_certificate) {
        // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
        (1698, ..) => {
            "the password did not count: an account of auth_socket or unix_socket admits only the user of the system \
             that has its name: run waggle as that user, or name another account with `user`"
        }
        (_, false, _) => {
            "check user and password in the option file; this login was not encrypted: an account with REQUIRE SSL or \
             REQUIRE X509 needs `host` (such as 127.0.0.1) and ssl-mode = REQUIRED there"
        }
        (_, true, false) => {
            "check user and password in the option file; this login showed no certificate: an account with REQUIRE \
             X509 needs ssl-cert and ssl-key there"
        }
        (_, true, true) => {
            "check user and password in the option file, and whether the account wants another certificate than that \
             of ssl-cert"
        }
    }
}

/// The remedy where the login was fine, and the first statement, or one after it, tells what is with the account.
/// Empty for all others.
pub(super) fn statement_remedy(number: u16) -> String {
    match number {
        1184 | 1226 | 1820 => format!("; {}", remedy(number)),
        _ => String::new(),
    }
}

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
            "this account has reached its own limit: end sessions of it (wait, where the limit is for an hour), name \
             another account with `user`, or raise max_user_connections or the limit of the account (ALTER USER ... \
             WITH)"
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
        // ER_NEW_ABORTING_CONNECTION
        1184 => {
            "init_connect of the server fails for this account: mend it (the error log says why), or name an account \
             that runs none with `user` (CONNECTION_ADMIN of MySQL, CONNECTION ADMIN of MariaDB, SUPER)"
        }
        // ER_PLUGIN_IS_NOT_LOADED
        1524 => {
            "the account is of a plugin that the server has not: INSTALL PLUGIN there, give the account another one \
             (ALTER USER ... IDENTIFIED), or name another account with `user`"
        }
        // ER_MUST_CHANGE_PASSWORD, ER_MUST_CHANGE_PASSWORD_LOGIN
        1820 | 1862 => {
            "give the account a new password (ALTER USER ... IDENTIFIED BY), or take its end away (ALTER USER ... \
             PASSWORD EXPIRE NEVER) and set it again"
        }
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
        ConnectionError::open(&endpoint, &Options::default(), false, error).to_string()
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
            (&[1184], &["init_connect", "CONNECTION_ADMIN"]),
            (&[1524], &["plugin", "INSTALL PLUGIN"]),
            (&[1820, 1862], &["a new password", "IDENTIFIED BY"]),
            (&[3032], &["offline_mode"]),
            (&[3118, 4151], &["ACCOUNT UNLOCK"]),
            (&[3159], &["ssl-mode = REQUIRED"]),
            (&[1105, 4000], &["its error log may tell more"]),
            (&[1045], &["login of user", "check user and password", "not encrypted", "ssl-mode"]),
            (&[1698], &["login of user", "auth_socket", "unix_socket"]),
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
