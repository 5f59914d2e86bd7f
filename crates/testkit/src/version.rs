//! The five servers that everything is proven on.

use std::fmt;
use std::str::FromStr;

/// A server that the kit can start. The exact release is read from the program, never assumed:
/// see [`Server::version_string`](crate::Server::version_string).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// MySQL 5.7: `current_thd` behind a pthread key, yaSSL.
    Mysql57,
    /// MySQL 8.0 of the first year.
    Mysql80,
    /// The MySQL 9 that Debian sid has.
    Mysql9,
    /// MariaDB 10.11 of Debian 12.
    Mariadb1011,
    /// MariaDB 11.4 LTS.
    Mariadb114,
}

impl Version {
    /// All five, oldest first in each family.
    pub const ALL: [Self; 5] =
        [Self::Mysql57, Self::Mysql80, Self::Mysql9, Self::Mariadb1011, Self::Mariadb114];

    /// The name on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql57 => "mysql-5.7",
            Self::Mysql80 => "mysql-8.0",
            Self::Mysql9 => "mysql-9",
            Self::Mariadb1011 => "mariadb-10.11",
            Self::Mariadb114 => "mariadb-11.4",
        }
    }

    /// Whether this is MariaDB, else MySQL.
    pub fn is_mariadb(self) -> bool {
        matches!(self, Self::Mariadb1011 | Self::Mariadb114)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|version| version.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no server is called {name:?}: choose one of {names}")
        })
    }
}
