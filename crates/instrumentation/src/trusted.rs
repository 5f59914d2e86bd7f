//! Files that nobody else can have written. What a journal says is done as root, so a journal of somebody
//! else is no journal.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{getegid, geteuid};

/// Others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;
/// Of a directory such as `/tmp`: what is in it can only be renamed by its owner.
const STICKY: u32 = 0o1000;
/// The longest file that is read: twenty times what a change of every row of a large server takes.
const BYTES_MAX: u64 = 256 << 20;

/// Makes a directory, where there is none, for which [`open_directory`] holds.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    check_way_to(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a directory that belongs to root or to us, and that nobody else may write, or put another one in the
/// place of.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    check_way_to(path)?;
    let directory = opened(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    trusted(directory)
}

/// Refuses a path that somebody else can make lead elsewhere.
fn check_way_to(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    // Where links of root or of us lead.
    let real = above.iter().find_map(|above| above.canonicalize().ok()).unwrap_or_default();
    for directory in above.into_iter().chain(real.ancestors()) {
        let found = match directory.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        let named = directory.symlink_metadata()?;
        let us = geteuid().as_raw();
        let is_strange = [named.uid(), found.uid()].iter().any(|uid| *uid != us && *uid != 0);
        let may_others = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
        // The group of the same name, which many systems give every user.
        let is_our_group =
            found.mode() & OTHERS_WRITE == 0o020 && found.gid() == getegid().as_raw();
        if is_strange || may_others && !is_our_group {
            let directory = directory.display();
            let why = format!("{directory} above it belongs to others, or others may write it");
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Opens such a file, for reading and, where `appends` says so, to write at its end.
pub(crate) fn open_file(path: &Path, appends: bool) -> io::Result<File> {
    let how = if appends { OFlags::RDWR | OFlags::APPEND } else { OFlags::RDONLY };
    // A FIFO would wait for its other end.
    let file = opened(path, how | OFlags::NONBLOCK)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.nlink() > 1 {
        return Err(io::Error::other("it has another name elsewhere (a hard link)"));
    }
    trusted(file)
}

/// All of such a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_file(path, false)?.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it is longer than a journal can be"));
    }
    Ok(text)
}

fn opened(path: &Path, how: OFlags) -> io::Result<File> {
    match open(path, how | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(_) if path.is_symlink() => Err(io::Error::other("it is a symbolic link")),
        opened => Ok(opened?.into()),
    }
}

fn trusted(file: File) -> io::Result<File> {
    let found = file.metadata()?;
    let us = geteuid().as_raw();
    if found.uid() != us && found.uid() != 0 {
        let why = format!("it belongs to uid {}, and not to root or to uid {us}", found.uid());
        return Err(io::Error::other(why));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(io::Error::other("others than its owner may write it; run chmod go-w on it"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn refusal(path: &Path) -> String {
        read(path).err().unwrap().to_string()
    }

    #[test]
    fn a_file_of_somebody_else_or_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "x").unwrap();
        assert_eq!(read(&path).unwrap(), b"x");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(refusal(&path).contains("others"));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(54_321), None).unwrap();
        assert!(refusal(&path).contains("54321"));
    }

    #[test]
    fn links_and_pipes_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, hard, pipe] = ["f", "l", "h", "p"].map(|name| dir.path().join(name));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        assert!(refusal(&link).contains("symbolic link"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(refusal(&pipe).contains("regular"));
        fs::hard_link(&file, hard).unwrap();
        assert!(refusal(&file).contains("hard link"));
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open_directory(dir.path()).is_ok());
        let link = dir.path().join("l");
        symlink(dir.path(), &link).unwrap();
        assert!(open_directory(&link).unwrap_err().to_string().contains("symbolic link"));
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(open_directory(dir.path()).is_err());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        chown(dir.path(), Some(54_321), None).unwrap();
        assert!(open_directory(dir.path()).is_err());
    }

    #[test]
    fn a_directory_that_somebody_else_can_put_another_one_in_the_place_of_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let [theirs, link] = ["theirs", "l"].map(|name| dir.path().join(name));
        let ours = theirs.join("ours");
        make_directory(&ours).unwrap();
        symlink(&theirs, &link).unwrap();
        assert!(open_directory(&link.join("ours")).is_ok(), "a link of ours");
        fs::set_permissions(&theirs, Permissions::from_mode(0o777)).unwrap();
        let why = open_directory(&ours).unwrap_err().to_string();
        assert!(why.contains(&format!("{} above it", theirs.display())), "{why}");
        fs::set_permissions(&theirs, Permissions::from_mode(0o1777)).unwrap();
        assert!(open_directory(&ours).is_ok(), "as in /tmp");
        chown(&theirs, Some(54_321), None).unwrap();
        for path in [&ours, &link.join("ours"), &theirs.join("new")] {
            assert!(open_directory(path).is_err(), "{}", path.display());
            assert!(make_directory(path).is_err(), "{}", path.display());
        }
    }
}
