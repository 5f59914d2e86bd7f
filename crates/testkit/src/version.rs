//! The servers of the tests: five that everything is proven on, and one of another compiler.

use std::fmt;
use std::str::FromStr;
use std::thread;

use waggle_model::Flavour;

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
    /// The MariaDB 11.8 that Debian sid has: another compiler than that of the others.
    Mariadb118,
}

impl Version {
    /// The five that everything is proven on, oldest first in each family.
    pub const ALL: [Self; 5] =
        [Self::Mysql57, Self::Mysql80, Self::Mysql9, Self::Mariadb1011, Self::Mariadb114];
    /// Those and the build of another compiler: what depends on the machine code is proven on all six.
    pub const BUILDS: [Self; 6] = [
        Self::Mysql57,
        Self::Mysql80,
        Self::Mysql9,
        Self::Mariadb1011,
        Self::Mariadb114,
        Self::Mariadb118,
    ];

    /// Runs a test on all five at once, for tests that wait more than they work.
    ///
    /// # Panics
    /// The test panicked on one of them.
    #[allow(clippy::expect_used, reason = "it fails as a test does")]
    pub fn each(test: impl Fn(Self) + Sync) {
        let test = &test;
        thread::scope(|scope| {
            for version in Self::ALL {
                // What panics names the server.
                let thread = thread::Builder::new().name(version.name().to_owned());
                thread.spawn_scoped(scope, move || test(version)).expect("a thread can be started");
            }
        });
    }

    /// The name on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql57 => "mysql-5.7",
            Self::Mysql80 => "mysql-8.0",
            Self::Mysql9 => "mysql-9",
            Self::Mariadb1011 => "mariadb-10.11",
            Self::Mariadb114 => "mariadb-11.4",
            Self::Mariadb118 => "mariadb-11.8",
        }
    }

    /// Its family.
    pub(crate) fn flavour(self) -> Flavour {
        if self.is_mariadb() { Flavour::Mariadb } else { Flavour::Mysql }
    }

    /// Whether this is MariaDB, else MySQL.
    pub fn is_mariadb(self) -> bool {
        matches!(self, Self::Mariadb1011 | Self::Mariadb114 | Self::Mariadb118)
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
        Self::BUILDS.into_iter().find(|version| version.name() == name).ok_or_else(|| {
            let names = Self::BUILDS.map(Self::name).join(", ");
            format!("no server is called {name:?}: choose one of {names}")
        })
    }
}

/// The same as [`on_each_server`], for all six builds.
#[macro_export]
macro_rules! on_each_build {
    ($check:ident) => {
        $crate::on_each_server!(
            $check: mysql_5_7 Mysql57, mysql_8_0 Mysql80, mysql_9 Mysql9, mariadb_10_11 Mariadb1011,
            mariadb_11_4 Mariadb114, mariadb_11_8 Mariadb118
        );
    };
}

/// A test for each of the five servers, of the same name as a function that takes a [`Version`]: `NAME::mysql_5_7` and so
/// on. Other servers are named behind it, each with a name for its test.
#[macro_export]
macro_rules! on_each_server {
    ($check:ident) => {
        $crate::on_each_server!(
            $check: mysql_5_7 Mysql57, mysql_8_0 Mysql80, mysql_9 Mysql9, mariadb_10_11 Mariadb1011,
            mariadb_11_4 Mariadb114
        );
    };
    ($check:ident: $($server:ident $version:ident),+) => {
        mod $check {
            $(
                #[test]
                fn $server() {
                    super::$check($crate::Version::$version);
                }
            )+
        }
    };
}
