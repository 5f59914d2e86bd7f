//! Calibrations and other prices on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use waggle_host::{kernel_release, processors};

use super::calibration::{Calibration, Host};
use crate::trusted;

/// Why prices cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The system refuses.
    #[error("{what} {}: {error}; name another place with WAGGLE_STATE_DIR", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// It holds something else.
    #[error("{} is not as waggle writes it: {reason}; remove it and measure again", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoredError {
    move |error| StoredError::File { path: path.to_owned(), what, error }
}

impl Host {
    /// Looks at this host.
    pub fn look() -> Host {
        Host {
            model: processors::model().unwrap_or_default(),
            kernel: kernel_release(),
            processors: processors::online().unwrap_or_default(),
        }
    }
}

/// Characters of the name of a file that are kept.
const NAME_MAX: usize = 150;

/// Writes a value as the file of this name, in place of the one before.
pub(super) fn keep(
    directory: &Path,
    name: &str,
    value: &impl Serialize,
) -> Result<PathBuf, StoredError> {
    trusted::make_directory(directory).map_err(failed("cannot make", directory))?;
    trusted::open_directory(directory).map_err(failed("cannot use", directory))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(NAME_MAX).collect();
    let (path, part) = (format!("{name}.json"), format!("{name}.part"));
    let (path, part) = (directory.join(path), directory.join(part));
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| StoredError::Wrong { path: path.clone(), reason: error.to_string() })?;
    // Under its name it is whole.
    let written = File::create(&part).and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&part, &path)
    });
    written.map_err(failed("cannot write", &path))?;
    Ok(path)
}

/// The files of a directory, and what is in them; none where there is no directory.
pub(super) fn files(directory: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, StoredError> {
    match trusted::open_directory(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => drop(opened.map_err(failed("cannot use", directory))?),
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed("cannot read", directory))? {
        let path = entry.map_err(failed("cannot read", directory))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = trusted::read(&path).map_err(failed("cannot read", &path))?;
            files.push((path, text));
        }
    }
    Ok(files)
}

pub(super) fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, StoredError> {
    serde_json::from_slice(text)
        .map_err(|error| StoredError::Wrong { path: path.to_owned(), reason: error.to_string() })
}

/// What a calibration is of; the rest of another server's may be of another release of waggle.
#[derive(Deserialize)]
struct Of {
    host: Host,
    version: String,
    build: Option<String>,
}

impl Calibration {
    /// Keeps it in a directory. One of the same version, build and host is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, directory: &Path) -> Result<PathBuf, StoredError> {
        let build = self.build.as_deref().unwrap_or("none");
        keep(directory, &format!("{}-{build}", self.version), self)
    }

    /// The calibration for a version and a build of a server on this host; `None` if there is none.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn find(
        directory: &Path,
        host: &Host,
        version: &str,
        build: Option<&str>,
    ) -> Result<Option<Calibration>, StoredError> {
        let mut found: Option<Calibration> = None;
        for (path, text) in files(directory)? {
            let of: Of = parsed(&path, &text)?;
            let fits = of.host == *host
                && Self::is_same_release(&of.version, version)
                && of.build.as_deref() == build;
            if !fits {
                continue;
            }
            let one: Calibration = parsed(&path, &text)?;
            if found.as_ref().is_none_or(|found| found.at < one.at) {
                found = Some(one);
            }
        }
        Ok(found)
    }

    /// Whether two servers that give these `VERSION()` are of one release.
    pub fn is_same_release(one: &str, other: &str) -> bool {
        release_of(one) == release_of(other)
    }
}

/// `VERSION()` without what the settings of a server add to it: `-log` says that a log is on (MySQL
/// before 8.0, and MariaDB).
fn release_of(version: &str) -> &str {
    version.strip_suffix("-log").unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn calibration(kernel: &str, version: &str, at: i64) -> Calibration {
        Calibration {
            at: Timestamp::from_second(at).unwrap(),
            host: Host { model: "x".to_owned(), kernel: kernel.to_owned(), processors: 2 },
            version: version.to_owned(),
            build: Some("b1".to_owned()),
            rounds: 1,
            measured: Vec::new(),
        }
    }

    #[test]
    fn only_what_was_measured_here_with_this_build_is_found() {
        let folder = tempfile::TempDir::new().unwrap();
        let directory = folder.path().join("calibration");
        let host = calibration("6.1", "", 0).host;
        let find = |version: &str, build| {
            Calibration::find(&directory, &host, version, build).unwrap().map(|found| found.at)
        };
        assert_eq!(find("8.0.12", Some("b1")), None, "there is no directory yet");
        calibration("6.1", "8.0.12", 1).store(&directory).unwrap();
        let path = calibration("6.1", "10.11.19-MariaDB/x", 2).store(&directory).unwrap();
        assert_eq!(path.file_name().unwrap(), "10.11.19-MariaDB_x-b1.json");
        assert_eq!(find("8.0.12", Some("b1")).unwrap().as_second(), 1);
        assert_eq!(find("8.0.12-log", Some("b1")).unwrap().as_second(), 1);
        assert_eq!((find("8.0.12", Some("b2")), find("8.0.13", Some("b1"))), (None, None));
        calibration("6.2", "8.0.12", 3).store(&directory).unwrap();
        assert_eq!(find("8.0.12", Some("b1")), None, "another kernel");
        let of_another =
            r#"{"host":{"model":"x","kernel":"6.1","processors":2},"version":"5.7.22"}"#;
        std::fs::write(directory.join("y.json"), of_another).unwrap();
        assert!(find("8.0.12", Some("b2")).is_none(), "of another server nothing more is read");
        let error = Calibration::find(&directory, &host, "5.7.22", None).unwrap_err().to_string();
        assert!(error.contains("y.json") && error.contains("measure again"), "{error}");
        std::fs::write(directory.join("x.json"), "{}").unwrap();
        let error = Calibration::find(&directory, &host, "1", None).unwrap_err().to_string();
        assert!(error.contains("x.json"), "{error}");
    }

    #[test]
    fn this_host_has_processors_and_a_kernel() {
        let host = Host::look();
        assert!(host.processors > 0 && !host.kernel.is_empty(), "{host:?}");
    }
}
