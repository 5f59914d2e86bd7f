//! What `waggle prove` has found on a running server, kept for later.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::calibration::Host;
use super::stored::{StoredError, files, keep, parsed};

/// How a price was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A coin for each statement.
    Coin,
    /// Windows in which it was on and off.
    Windows,
}

/// A price that was found on a running server, under its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proven {
    /// When.
    pub at: Timestamp,
    /// On which host.
    pub host: Host,
    /// Build of the server.
    pub build: String,
    /// Version of the server.
    pub version: String,
    /// What costs that: `waggle`, or what was switched, such as `pfs waits`.
    pub what: String,
    /// How it was found.
    pub method: Method,
    /// Processor time that it adds to a statement, nanoseconds.
    pub ns: f64,
    /// Lower end of the 95 % interval.
    pub low_ns: f64,
    /// Upper end of the 95 % interval.
    pub high_ns: f64,
    /// Processor time of a statement without it, nanoseconds.
    pub base_ns: f64,
}

impl Proven {
    /// What [`Proven::what`] calls waggle itself.
    pub const WAGGLE: &str = "waggle";

    /// Keeps it in a directory, in place of what was found before of the same build.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, directory: &Path) -> Result<PathBuf, StoredError> {
        keep(directory, &format!("{}-{}", self.build, self.what), self)
    }

    /// All that was found for a build of a server on this host, by what it is.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn find(directory: &Path, host: &Host, build: &str) -> Result<Vec<Proven>, StoredError> {
        let mut found = Vec::new();
        for (path, text) in files(directory)? {
            let one: Proven = parsed(&path, &text)?;
            if one.host == *host && one.build == build {
                found.push(one);
            }
        }
        found.sort_by(|one, other| one.what.cmp(&other.what));
        Ok(found)
    }

    /// How old it is, in words.
    pub fn ago(&self, now: Timestamp) -> String {
        let minutes = now.duration_since(self.at).as_secs() / 60;
        match minutes {
            ..1 => "just now".to_owned(),
            1..120 => format!("{minutes} min ago"),
            120..2880 => format!("{} h ago", minutes / 60),
            _ => format!("{} days ago", minutes / 1440),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven(what: &str, build: &str, at: i64) -> Proven {
        Proven {
            at: Timestamp::from_second(at).unwrap(),
            host: Host { model: "x".to_owned(), kernel: "6.1".to_owned(), processors: 2 },
            build: build.to_owned(),
            version: "9.7.4".to_owned(),
            what: what.to_owned(),
            method: Method::Windows,
            ns: 4_400.0,
            low_ns: 2_400.0,
            high_ns: 6_400.0,
            base_ns: 80_000.0,
        }
    }

    #[test]
    fn the_newest_of_each_is_found_for_its_build() {
        let folder = tempfile::TempDir::new().unwrap();
        let directory = folder.path().join("proven");
        let host = proven("", "", 0).host;
        assert_eq!(Proven::find(&directory, &host, "b1").unwrap(), []);
        for (what, build, at) in [
            ("waggle", "b1", 1),
            ("pfs waits", "b1", 2),
            ("pfs waits", "b1", 3),
            ("waggle", "b2", 4),
        ] {
            proven(what, build, at).store(&directory).unwrap();
        }
        let found = Proven::find(&directory, &host, "b1").unwrap();
        assert_eq!(found, [proven("pfs waits", "b1", 3), proven("waggle", "b1", 1)]);
        let elsewhere = Host { processors: 3, ..host.clone() };
        assert_eq!(Proven::find(&directory, &elsewhere, "b1").unwrap(), []);
        std::fs::write(directory.join("x.json"), "{}").unwrap();
        let error = Proven::find(&directory, &host, "b1").unwrap_err().to_string();
        assert!(error.contains("x.json") && error.contains("measure again"), "{error}");
    }

    #[test]
    fn an_age_is_told_in_the_unit_that_fits() {
        let one = proven("waggle", "b1", 0);
        let at = |minutes: i64| one.ago(Timestamp::from_second(minutes * 60 + 5).unwrap());
        assert_eq!([at(0), at(-3), at(1)], ["just now", "just now", "1 min ago"]);
        assert_eq!([at(119), at(120), at(2879)], ["119 min ago", "2 h ago", "47 h ago"]);
        assert_eq!(at(2880), "2 days ago");
    }

    #[test]
    fn a_long_name_is_shortened() {
        let folder = tempfile::TempDir::new().unwrap();
        let long = format!("pfs /{}", "long/".repeat(100));
        let path = proven(&long, "b1", 1).store(folder.path()).unwrap();
        assert_eq!(path.file_name().unwrap().len(), 155);
    }
}
