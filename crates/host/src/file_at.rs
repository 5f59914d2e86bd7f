//! Which file a path leads to.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

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
}
