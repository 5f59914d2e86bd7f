//! Profiles: rules on names that say what should be on.

mod builtin;
mod servers;

use serde::Deserialize;

pub use builtin::{BUILTIN, builtin};
pub use servers::{Family, Servers};

use waggle_model::ServerVersion;

use crate::pattern::fits;

/// The scenario of published comparisons in which there is no Performance Schema at all.
const PFSOFF: &str = "pfsoff";

/// What shall be on, to answer one question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The question that it answers.
    pub question: String,
    /// What it is expected to cost, in words.
    pub expected_cost: String,
    /// Where it starts from.
    #[serde(default)]
    pub base: Base,
    /// In their order; the last that names an instrument wins.
    #[serde(default)]
    pub instruments: Vec<InstrumentRule>,
    /// In their order; the last that names a consumer wins.
    #[serde(default)]
    pub consumers: Vec<ConsumerRule>,
    /// In their order; the last that names a counter of InnoDB wins. What no rule names stays as it
    /// is, whatever the base.
    #[serde(default)]
    pub metrics: Vec<MetricRule>,
}

/// What a profile starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// What is set now.
    #[default]
    Current,
    /// Nothing is on.
    Off,
    /// What the server sets by itself when it starts without options.
    Default,
}

/// Sets instruments.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentRule {
    /// Patterns of names; `%` stands for any characters.
    pub names: Vec<String>,
    /// Patterns of names that are left out.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether events are counted; unset: as before.
    pub enabled: Option<bool>,
    /// Whether they are timed, where they can be; unset: as before.
    pub timed: Option<bool>,
    /// On which servers.
    #[serde(default)]
    pub on: Servers,
}

/// Sets consumers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerRule {
    /// Patterns of names; `%` stands for any characters.
    pub names: Vec<String>,
    /// Whether it keeps events.
    pub enabled: bool,
    /// On which servers.
    #[serde(default)]
    pub on: Servers,
}

/// Switches counters of InnoDB.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Counters, modules, subsystems, patterns, or `all`.
    pub names: Vec<String>,
    /// Whether they count.
    pub enabled: bool,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is none of this name.
    #[error("profile {name}: there is none of this name; one of {}, or the path of a TOML file", BUILTIN.map(|(name, _)| name).join(", "))]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// It is no setting of a running server.
    #[error(
        "profile {PFSOFF}: Performance Schema as a whole is off only after a restart with \
         performance_schema=OFF; what that saves cannot be measured on a server that runs with it \
         (`waggle lab` measures it on servers of its own; profile `off` turns off what can be)"
    )]
    NeedsRestart,
    /// It is no profile.
    #[error("profile {name}: {reason}")]
    Wrong {
        /// The name or the path that was given.
        name: String,
        /// What is wrong and where.
        reason: String,
    },
    /// The file cannot be read.
    #[error("profile {name}: {error}")]
    File {
        /// The path that was given.
        name: String,
        /// What the system says.
        error: std::io::Error,
    },
}

impl Profile {
    /// Reads a profile from TOML; `name` is for messages.
    ///
    /// # Errors
    /// It is no TOML, or holds something that is no profile.
    pub fn parse(name: &str, text: &str) -> Result<Profile, ProfileError> {
        toml::from_str(text).map_err(|error| ProfileError::Wrong {
            name: name.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })
    }

    /// A built-in profile by its name, or one from a file by its path.
    ///
    /// # Errors
    /// There is none of that name, it needs a restart, or the file is no profile.
    pub fn find(name: &str) -> Result<Profile, ProfileError> {
        if let Some(profile) = builtin(name) {
            return profile;
        }
        if name == PFSOFF {
            return Err(ProfileError::NeedsRestart);
        }
        if !name.contains('/') && !name.ends_with(".toml") {
            return Err(ProfileError::Unknown { name: name.to_owned() });
        }
        let text = std::fs::read_to_string(name);
        let text = text.map_err(|error| ProfileError::File { name: name.to_owned(), error })?;
        Profile::parse(name, &text)
    }
}

impl InstrumentRule {
    /// Whether it sets this instrument of this server.
    pub(crate) fn applies(&self, name: &str, version: ServerVersion) -> bool {
        self.on.hold(version) && any_fits(name, &self.names) && !any_fits(name, &self.except)
    }
}

impl ConsumerRule {
    /// Whether it sets this consumer of this server.
    pub(crate) fn applies(&self, name: &str, version: ServerVersion) -> bool {
        self.on.hold(version) && any_fits(name, &self.names)
    }
}

fn any_fits(name: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let text =
            "question = 'q'\nexpected_cost = 'c'\n[[instruments]]\nnames = []\nenable = true\n";
        let error = Profile::parse("mine.toml", text).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains("line 5"), "{error}");
        let error = Profile::find("nosuch").unwrap_err().to_string();
        assert!(error.contains("nosuch") && error.contains("ddl-audit"), "{error}");
        let error = Profile::find("pfsoff").unwrap_err().to_string();
        assert!(error.contains("restart with performance_schema=OFF"), "{error}");
        let error = Profile::find("./nosuch.toml").unwrap_err().to_string();
        assert!(error.contains("./nosuch.toml"), "{error}");
    }
}
