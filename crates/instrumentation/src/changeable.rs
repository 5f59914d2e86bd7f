//! When a change of an instrument takes effect.

use waggle_model::{Flavour, ServerVersion};

/// When a change of an instrument takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changeable {
    /// While the server runs.
    AtRunTime,
    /// For the whole life of the server, at its start.
    OnlyAtStart,
    /// Not at all: the server counts its own memory for Performance Schema whatever is set.
    Never,
}

/// When a change of this instrument takes effect on a server of this version.
///
/// Source: "Pre-Filtering by Instrument" of the MySQL manual. Mutexes, rwlocks and conditions are created
/// with their instruments, and could be switched on later from 5.7.12 on; MariaDB took that over with
/// 10.5.
pub fn changeable(instrument: &str, version: ServerVersion) -> Changeable {
    let switches_late = match version.flavour {
        Flavour::Mysql => version.number >= [5, 7, 12],
        Flavour::Mariadb => version.number >= [10, 5, 0],
    };
    if instrument.starts_with("memory/performance_schema/") {
        Changeable::Never
    } else if instrument.starts_with("wait/synch/") && !switches_late {
        Changeable::OnlyAtStart
    } else {
        Changeable::AtRunTime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_create_mutexes_with_what_is_set_at_their_start() {
        let of = |instrument, flavour, version: &str| {
            changeable(instrument, ServerVersion::parse(flavour, version))
        };
        let (mutex, file) = ("wait/synch/mutex/sql/LOCK_open", "wait/io/file/sql/binlog");
        for (flavour, version, mutexes) in [
            (Flavour::Mysql, "5.6.51", Changeable::OnlyAtStart),
            (Flavour::Mysql, "5.7.11", Changeable::OnlyAtStart),
            (Flavour::Mysql, "5.7.12", Changeable::AtRunTime),
            (Flavour::Mysql, "8.0.12", Changeable::AtRunTime),
            (Flavour::Mariadb, "10.4.30-MariaDB", Changeable::OnlyAtStart),
            (Flavour::Mariadb, "10.11.6-MariaDB", Changeable::AtRunTime),
        ] {
            assert_eq!(of(mutex, flavour, version), mutexes, "{version}");
            assert_eq!(of(file, flavour, version), Changeable::AtRunTime, "{version}");
            let own = of("memory/performance_schema/threads", flavour, version);
            assert_eq!(own, Changeable::Never, "{version}");
        }
    }
}
