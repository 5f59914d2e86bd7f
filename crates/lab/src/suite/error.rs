//! Why a suite cannot be used.

use std::io;

use super::Suite;

/// Why there is no suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// There is none of this name.
    #[error(
        "suite {name}: there is none of this name; give one of {}, or the path of a TOML file",
        names()
    )]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The file cannot be read.
    #[error("suite {name}: {error}; give the path of a TOML file that you may read")]
    File {
        /// The path that was given.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is no TOML, or not of the shape of a suite.
    #[error("suite {name}: {reason}")]
    Shape {
        /// The name or the path that was given.
        name: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// It says something that cannot be.
    #[error("suite {name}: {}: {}; {}", mistake.key, mistake.reason, mistake.remedy)]
    Wrong {
        /// The name or the path that was given.
        name: String,
        /// What is wrong.
        mistake: Mistake,
    },
    /// A word of `--only` that it does not have.
    #[error(
        "--only {word}: suite {name} has no such workload, number of threads, scenario or order; it has closed, open, {known}"
    )]
    NoSuchWord {
        /// Name of the suite.
        name: String,
        /// The word.
        word: String,
        /// The words that it has.
        known: String,
    },
    /// No cell has all that `--only` names.
    #[error(
        "--only {only} leaves nothing to run: no cell of suite {name} has all of that; leave one of the words out"
    )]
    NothingLeft {
        /// Name of the suite.
        name: String,
        /// The words.
        only: String,
    },
}

/// Something in a suite that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where: the key of the file.
    pub key: String,
    /// Why it cannot be.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl Mistake {
    pub(super) fn new(
        key: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Mistake {
        Mistake { key: key.into(), reason: reason.into(), remedy: remedy.into() }
    }
}

fn names() -> String {
    Suite::builtin().map(|(name, _)| name).join(", ")
}
