//! Which file a path leads to, for us and for another process.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

use crate::process::Process;

/// A file, by its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAt {
    device: u64,
    number: u64,
}

impl FileAt {
    /// The file at this path; `None` if there is none. A file system that somebody else serves is asked for the way to
    /// it, not for the file: it may not answer.
    pub fn of(path: &Path) -> Option<FileAt> {
        let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
        let device = makedev(file.stx_dev_major, file.stx_dev_minor);
        Some(FileAt { device, number: file.stx_ino })
    }

    /// To tell another process.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.device) << 64 | u128::from(self.number)).to_ne_bytes()
    }

    /// As another process told.
    pub fn from_bytes(bytes: [u8; 16]) -> FileAt {
        let both = u128::from_ne_bytes(bytes);
        FileAt { device: (both >> 64) as u64, number: both as u64 }
    }
}

impl Process {
    /// Whether it has this file open; `false` where we may not look.
    pub fn has_open(&self, path: &Path) -> bool {
        let Some(wanted) = FileAt::of(path) else { return false };
        let mut files = fs::read_dir(self.folder.join("fd")).into_iter().flatten().flatten();
        files.any(|file| FileAt::of(&file.path()) == Some(wanted))
    }

    /// Whether the file that it has at `path`, from its root or its working directory, is the one that we have at `own`.
    pub fn sees_file(&self, path: &Path, own: &Path) -> bool {
        let seen = match path.strip_prefix("/") {
            Ok(below) => self.folder.join("root").join(below),
            Err(_) => self.folder.join("cwd").join(path),
        };
        FileAt::of(&seen).is_some_and(|seen| FileAt::of(own) == Some(seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_by_each_of_its_names_and_told() {
        let of = |path: &str| FileAt::of(Path::new(path));
        let own = of("/proc/self/exe").unwrap();
        assert_eq!(of(std::env::current_exe().unwrap().to_str().unwrap()), Some(own));
        assert_eq!(FileAt::from_bytes(own.to_bytes()), own);
        assert_ne!(of("/"), Some(own));
        assert_eq!(of("/nowhere"), None);
    }

    #[test]
    fn a_file_of_another_process_is_ours_by_the_file_and_not_by_its_name() {
        let proc_root = tempfile::tempdir().unwrap();
        let process = Process::below(proc_root.path(), 10);
        let file = |path: &str| {
            let path = proc_root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let below_root = file("10/root/run/mysqld.sock");
        let in_cwd = file("10/cwd/mysqld.sock");
        let elsewhere = file("elsewhere/mysqld.sock");
        let sees = |path: &str, own: &Path| process.sees_file(Path::new(path), own);
        assert!(sees("/run/mysqld.sock", &below_root) && sees("mysqld.sock", &in_cwd));
        assert!(!sees("/run/mysqld.sock", &elsewhere) && !sees("mysqld.sock", &below_root));
        assert!(!sees("/none/mysqld.sock", Path::new("/nowhere/mysqld.sock")));
    }
}
