//! Writes views to files.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files of one second.
const TRIES_MAX: u32 = 20;

/// Writes a new file that only its owner can read, and returns its name. Never touches an existing
/// file or link.
pub(super) fn write_new(directory: &Path, time: &str, text: &str) -> io::Result<String> {
    for number in 1..=TRIES_MAX {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("waggle-{time}{suffix}.txt");
        let path = directory.join(&name);
        match File::options().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()).map(|()| name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "too many files of this second"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_is_there_is_never_touched() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "kept").unwrap();
        symlink(&target, dir.path().join("waggle-now.txt")).unwrap();
        assert_eq!(write_new(dir.path(), "now", "one").unwrap(), "waggle-now-2.txt");
        assert_eq!(write_new(dir.path(), "now", "two").unwrap(), "waggle-now-3.txt");
        assert_eq!(fs::read_to_string(target).unwrap(), "kept");
        assert_eq!(fs::read_to_string(dir.path().join("waggle-now-2.txt")).unwrap(), "one");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        assert!(write_new(Path::new("/proc/nowhere"), "now", "").is_err());
    }
}
