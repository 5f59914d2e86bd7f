//! Servers that the loader of programs started (`ld-linux-x86-64.so.2 … mysqld`, ld.so(8)): what the
//! kernel calls the executable of such a process is the loader. The server is a file that it maps.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use super::elf::open_file;
use super::maps::mappings;

/// A program that a loader mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    /// As the map of the process names it, with its mark where the file was deleted.
    pub(super) mapped: PathBuf,
    /// Under which the file can be opened.
    pub(super) file: PathBuf,
}

/// Whether a program of this name loads others: `ld-linux-x86-64.so.2`, `ld-2.31.so`,
/// `ld-musl-x86_64.so.1`, `ld.so`.
pub(super) fn is_loader(name: &[u8]) -> bool {
    let has_suffix = name.windows(3).any(|part| part == b".so");
    has_suffix && (name.starts_with(b"ld-") || name.starts_with(b"ld.so"))
}

/// The program among the files that the process in this folder of `/proc` has mapped, as `maps` says: the first of the
/// highest rank by its file name.
pub(super) fn loaded(
    folder: &Path,
    maps: &[u8],
    rank: impl Fn(&[u8]) -> Option<bool>,
) -> Option<Loaded> {
    let ranked = mappings(maps).filter_map(|mapping| {
        let name = mapping.path.strip_suffix(b" (deleted)").unwrap_or(mapping.path);
        let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        Some((rank(name)?, mapping))
    });
    // Of equals `min_by_key` gives the first.
    let (_, mapping) = ranked.min_by_key(|(rank, _)| Reverse(*rank))?;
    let [mapped, below_root, ours] = mapping.files(folder);
    let can_be_opened = |file: &PathBuf| open_file(file).is_ok();
    let file = [mapped, below_root.clone(), ours].into_iter().find(can_be_opened);
    Some(Loaded { mapped: mapping.path().to_path_buf(), file: file.unwrap_or(below_root) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_among_the_mapped_files_is_the_first_of_that_name() {
        let line =
            |at: i32, path: &str| format!("{at}000-{at}fff r--p 00000000 fe:01 131 {path}\n");
        let rank = |name: &[u8]| match name {
            b"mysqld" => Some(true),
            b"mysqld-8.0" => Some(false),
            _ => None,
        };
        let mapped = |names: &[&str]| {
            let maps: String = names.iter().zip(1..).map(|(name, at)| line(at, name)).collect();
            Some(loaded(Path::new("/proc/10"), maps.as_bytes(), rank)?.mapped)
        };
        assert_eq!(mapped(&["/lib/libc.so.6", "/usr/lib/ld-linux-x86-64.so.2"]), None);
        let own = "/opt/my sql/bin/mysqld (deleted)";
        assert_eq!(mapped(&["/a/mysqld-8.0", own, "/b/mysqld"]), Some(PathBuf::from(own)));
        assert_eq!(mapped(&["/a/mysqld-8.0", "/b/libc.so.6"]), Some("/a/mysqld-8.0".into()));
        let below_root = loaded(Path::new("/proc/10"), line(4, own).as_bytes(), rank).unwrap().file;
        assert_eq!(below_root, Path::new("/proc/10/root/opt/my sql/bin/mysqld (deleted)"));
    }

    #[test]
    fn loaders_are_known_by_their_names() {
        for name in ["ld-linux-x86-64.so.2", "ld-2.31.so", "ld-musl-x86_64.so.1", "ld.so"] {
            assert!(is_loader(name.as_bytes()), "{name}");
        }
        for name in ["ld", "mysqld", "ldconfig", "libld.so", "ld-linux"] {
            assert!(!is_loader(name.as_bytes()), "{name}");
        }
    }
}
