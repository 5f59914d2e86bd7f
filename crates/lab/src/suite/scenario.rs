//! What is set in an arm.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waggle_instrumentation::activity::Events;
use waggle_instrumentation::profile::{Base, Profile, builtin};

use crate::suite::expect::{Expect, Must, Under, disproof};

/// The profile with which others may begin.
pub(crate) const DEFAULT: &str = "default";

/// What is set in an arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, as in the source where the source has it.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What the server is told at its start, as on its command line: the static part.
    #[serde(default)]
    pub start: Vec<String>,
    /// The built-in profile of `waggle_instrumentation` that is applied: the dynamic part.
    #[serde(default)]
    pub profile: Option<String>,
    /// Global variables that are set while the server runs, with their values as SQL writes them.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// What the events of a window have to show; it follows from the profile.
    #[serde(skip)]
    pub expects: Vec<Expect>,
}

/// What a server has set by default, as a profile.
pub(crate) fn default_profile() -> Option<Profile> {
    builtin(DEFAULT)?.ok()
}

impl Scenario {
    /// The profile that it applies. That it can be read was checked when the suite was.
    pub(crate) fn profile(&self) -> Option<Profile> {
        builtin(self.profile.as_deref()?)?.ok()
    }

    /// Whether it sets something of Performance Schema, which has to be on for that.
    pub(crate) fn needs_performance_schema(&self) -> bool {
        let sets = |it: Profile| {
            let has_rules = !it.instruments.is_empty() || !it.consumers.is_empty();
            it.base != Base::Current || has_rules
        };
        self.profile().is_some_and(sets)
    }

    /// Why these numbers of events, by the name of the instrument, cannot come from this scenario; `None` where they
    /// can.
    pub fn disproof(&self, events: &Events, under: Under) -> Option<String> {
        disproof(&self.expects, events, under)
    }

    /// Whether the load has to make events of instruments whose names begin so.
    pub fn is_fed(&self, instruments: &str) -> bool {
        self.expects.iter().any(|one| one.must == Must::Grow && one.class.starts_with(instruments))
    }
}
