//! The version of a server, as a number.

use crate::Flavour;

/// The version of a server, as far as versions are told apart by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// The family.
    pub flavour: Flavour,
    /// The first three numbers of `VERSION()`, such as 8, 0, 12.
    pub number: [u32; 3],
}

impl ServerVersion {
    /// Reads what `VERSION()` says. Old clients are told `5.5.5-` before the version of MariaDB.
    pub fn parse(flavour: Flavour, version: &str) -> ServerVersion {
        let version = match flavour {
            Flavour::Mariadb => version.strip_prefix("5.5.5-").unwrap_or(version),
            Flavour::Mysql => version,
        };
        let mut number = [0; 3];
        let parts = version.split(|c: char| !c.is_ascii_digit());
        for (place, part) in number.iter_mut().zip(parts) {
            *place = part.parse().unwrap_or(0);
        }
        ServerVersion { flavour, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        let mysql = |text| ServerVersion::parse(Flavour::Mysql, text).number;
        let mariadb = |text| ServerVersion::parse(Flavour::Mariadb, text).number;
        assert_eq!(mysql("5.7.44-log"), [5, 7, 44]);
        assert_eq!(mysql("9.7.4-2"), [9, 7, 4]);
        assert_eq!(mysql("26.10"), [26, 10, 0]);
        assert_eq!(mariadb("5.5.5-10.11.9-MariaDB"), [10, 11, 9]);
        assert_eq!(mariadb("11.4.5-MariaDB-ubu2404"), [11, 4, 5]);
    }
}
