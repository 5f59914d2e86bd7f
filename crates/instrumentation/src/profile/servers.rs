//! The servers that a rule applies to.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use waggle_model::{Flavour, ServerVersion};

/// A range of versions. What is not named does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servers {
    /// `mysql` or `mariadb`.
    pub family: Option<Family>,
    /// The first version.
    #[serde(default, deserialize_with = "version")]
    pub since: Option<String>,
    /// The first version that is too new.
    #[serde(default, deserialize_with = "version")]
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

/// Numbers with points between, such as `8.0` or `8.0.12`.
fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    match text.split('.').all(is_number) && text.split('.').count() <= 3 {
        true => Ok(Some(text)),
        false => Err(Error::custom(format!("`{text}` is no version; write 8.0 or 8.0.12"))),
    }
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
    fn a_range_has_its_first_version_and_not_its_last() {
        let on: Servers =
            toml::from_str("family = 'mysql'\nsince = '8.0'\nbefore = '9.0'").unwrap();
        let held = |flavour, text| on.hold(ServerVersion::parse(flavour, text));
        assert!(held(Flavour::Mysql, "8.0.0") && held(Flavour::Mysql, "8.4.9"));
        assert!(!held(Flavour::Mysql, "9.0.0") && !held(Flavour::Mysql, "5.7.44"));
        assert!(!held(Flavour::Mariadb, "8.1.0"));
    }

    #[test]
    fn what_is_no_version_is_named() {
        for text in ["since = 'eight'", "before = '8.0.1.2'", "since = '8.0-beta'", "since = ''"] {
            let error = toml::from_str::<Servers>(text).unwrap_err().to_string();
            assert!(error.contains("is no version; write 8.0 or 8.0.12"), "{error}");
        }
    }
}
