//! On which servers a rule holds.

use serde::Deserialize;
use waggle_model::Flavour;

/// The version of a server, as far as rules tell versions apart.
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

/// A range of versions. What is not named does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servers {
    /// `mysql` or `mariadb`.
    pub family: Option<Family>,
    /// The first version.
    pub since: Option<String>,
    /// The first version that is too new.
    pub before: Option<String>,
}

/// A family, as a profile names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// MySQL and what is built from it.
    Mysql,
    /// MariaDB.
    Mariadb,
}

impl Servers {
    pub(crate) fn hold(&self, version: ServerVersion) -> bool {
        let is_family = self.family.is_none_or(|family| match family {
            Family::Mysql => version.flavour == Flavour::Mysql,
            Family::Mariadb => version.flavour == Flavour::Mariadb,
        });
        let number = |text: &String| ServerVersion::parse(version.flavour, text).number;
        is_family
            && self.since.as_ref().is_none_or(|since| version.number >= number(since))
            && self.before.as_ref().is_none_or(|before| version.number < number(before))
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

    #[test]
    fn a_range_has_its_first_version_and_not_its_last() {
        let on: Servers =
            toml::from_str("family = 'mysql'\nsince = '8.0'\nbefore = '9.0'").unwrap();
        let held = |flavour, text| on.hold(ServerVersion::parse(flavour, text));
        assert!(held(Flavour::Mysql, "8.0.0") && held(Flavour::Mysql, "8.4.9"));
        assert!(!held(Flavour::Mysql, "9.0.0") && !held(Flavour::Mysql, "5.7.44"));
        assert!(!held(Flavour::Mariadb, "8.1.0"));
    }
}
