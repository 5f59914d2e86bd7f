//! The server families.

use crate::lexer::Reading;

/// Whose digests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// MySQL 9 (measured on 9.7).
    Mysql9,
    /// MySQL 8.0 (measured on 8.0.12).
    Mysql80,
    /// MySQL 5.7 (measured on 5.7.22).
    Mysql57,
    /// MariaDB 10 (measured on 10.11).
    Mariadb,
    /// MariaDB 11 (measured on 11.4).
    Mariadb11,
    /// MariaDB from 11.5 on (measured on 11.8).
    Mariadb118,
}

impl Dialect {
    /// Whether the server is a MariaDB.
    pub(crate) fn is_mariadb(self) -> bool {
        matches!(self, Dialect::Mariadb | Dialect::Mariadb11 | Dialect::Mariadb118)
    }

    /// Which comments this server reads as code.
    pub fn reading(self) -> Reading {
        let (version, mariadb) = match self {
            Dialect::Mysql9 => (90_704, false),
            Dialect::Mysql80 => (80_099, false),
            Dialect::Mysql57 => (50_744, false),
            Dialect::Mariadb | Dialect::Mariadb11 | Dialect::Mariadb118 => (129_999, true),
        };
        Reading { version, mariadb, hints: !mariadb }
    }
}
