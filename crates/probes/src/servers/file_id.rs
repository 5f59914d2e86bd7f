//! Which file a program is.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// A file as it is now. What is learned of a file holds for this file: the build id that it states is only what its
/// author wrote into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: (u32, u32),
    inode: u64,
    size: u64,
    /// Change of content or owner.
    changed: (i64, u32),
}

impl FileId {
    /// The file at this path; `None` if there is none. A file system that somebody else serves is not asked: it may not
    /// answer.
    pub(super) fn at(path: &Path) -> Option<FileId> {
        let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
        Some(FileId {
            device: (file.stx_dev_major, file.stx_dev_minor),
            inode: file.stx_ino,
            size: file.stx_size,
            changed: (file.stx_ctime.tv_sec, file.stx_ctime.tv_nsec),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_changed_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        fs::write(&one, "same").unwrap();
        fs::write(&other, "same").unwrap();
        let before = FileId::at(&one).unwrap();
        assert_eq!(FileId::at(&one), Some(before));
        assert_ne!(FileId::at(&other), Some(before));
        fs::write(&one, "longer").unwrap();
        assert_ne!(FileId::at(&one), Some(before));
        assert_eq!(FileId::at(&folder.path().join("none")), None);
    }
}
