//! The profiles that come with waggle, each a file in `profiles/`.

use super::{Profile, ProfileError};

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),*]
    };
}

/// Name and text of every built-in profile, in the order in which they are listed.
pub const BUILTIN: [(&str, &str); 32] = profiles![
    "off",
    "minimal",
    "default",
    "statements",
    "ddl-audit",
    "io",
    "locks",
    "waits",
    "stages",
    "memory",
    "everything",
    "pfson_conoff_insoff",
    "pfson_conon_insoff",
    "pfson_conon_ins_sqlon",
    "pfson_conoff_inson",
    "pfson_conon_inson",
    "instruments-off",
    "instruments-on",
    "instruments-on-timed",
    "basic",
    "all-events",
    "all-events-history",
    "all-events-memory",
    "basic-history",
    "basic-memory",
    "only-history",
    "only-memory",
    "metrics-off",
    "metrics-on",
    "instruments-off-metrics-off",
    "instruments-on-metrics-on",
    "instruments-on-timed-metrics-on",
];

/// The built-in profile of this name; `None` if there is none.
pub fn builtin(name: &str) -> Option<Result<Profile, ProfileError>> {
    let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some(Profile::parse(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_read_and_says_what_it_is_for() {
        for (name, _) in BUILTIN {
            let profile = builtin(name).unwrap().unwrap();
            assert!(profile.question.ends_with('?'), "{name}");
            assert!(!profile.expected_cost.is_empty(), "{name}");
        }
    }
}
