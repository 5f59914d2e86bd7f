//! A server process and the build that it runs.

use std::fmt;
use std::path::PathBuf;

use crate::Reading;

/// The family of a server. The families differ in layout, clock and in the meaning of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavour {
    /// Oracle's MySQL and servers built from it.
    Mysql,
    /// MariaDB.
    Mariadb,
}

impl fmt::Display for Flavour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Flavour::Mysql => "mysql",
            Flavour::Mariadb => "mariadb",
        })
    }
}

/// What tells one build of a server from every other: its GNU build id, or, for a build that has
/// none, a hash of its dynamic symbol table and its size.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildKey(pub String);

impl fmt::Display for BuildKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The clock in which a server notes the start of a statement, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The wall clock (`CLOCK_REALTIME`): MySQL.
    Wall,
    /// The monotonic clock (`CLOCK_MONOTONIC`): MariaDB.
    Monotonic,
}

/// A running server process, as it is seen from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Process id in the pid namespace of waggle.
    pub pid: u32,
    /// Start of the process in clock ticks since boot (`/proc/PID/stat`, field 22). Together with
    /// the pid it names one life of one server.
    pub start_ticks: u64,
    /// The family.
    pub flavour: Flavour,
    /// The version as the binary states it, for example `8.0.12` or `10.11.19-MariaDB`.
    pub version: String,
    /// The build.
    pub build: BuildKey,
    /// The executable as the server's own mount namespace names it.
    pub executable: PathBuf,
    /// Its `max_digest_length`: the bytes of tokens that tell one digest from another. 0: it makes
    /// no digests.
    pub max_digest_length: Reading<u64>,
}
