//! The files of a private server.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{PrivateServerError, Program};

/// unix(7): `sun_path` has 108 bytes, the last of them the NUL.
const SOCKET_PATH_MAX: usize = 107;
/// Data, logs and tables of a private server take less (MySQL 8.0 about 180 MiB).
pub(crate) const ROOM_MIB: u64 = 600;
const PREFIX: &str = "waggle-server-";
/// It is locked as long as its directory is in use.
const OWNER: &str = "owner";
/// Its name until it is locked.
const NEW_OWNER: &str = "owner.new";

/// A directory, removed when dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    dir: TempDir,
    _owner: File,
}

impl Directory {
    /// Makes one that the user of the program may write and that has so much room, after removing
    /// those that a killed waggle left.
    pub(crate) fn create(
        program: &Program,
        needed_mib: u64,
    ) -> Result<Directory, PrivateServerError> {
        let parent = program.place();
        let _alone = swept(&parent)?;
        enough_room(&parent, needed_mib)?;
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent);
        let dir = made.map_err(PrivateServerError::io("cannot make a directory in", &parent))?;
        let owner = own(dir.path()).map_err(PrivateServerError::io("cannot lock", dir.path()))?;
        if let Some((uid, gid)) = program.user {
            chown(dir.path(), Some(uid), Some(gid))
                .map_err(PrivateServerError::io("cannot give away", dir.path()))?;
        }
        let directory = Directory { dir, _owner: owner };
        fits(&directory.socket())?;
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }
}

/// Locks the file before it has its name, so that nobody finds it without its lock.
fn own(dir: &Path) -> io::Result<File> {
    let path = dir.join(NEW_OWNER);
    let file = File::create(&path)?;
    file.lock()?;
    fs::rename(&path, dir.join(OWNER))?;
    Ok(file)
}

/// Whether a socket can have this path. The directory is new: nothing of that name is in it.
fn fits(socket: &Path) -> Result<(), PrivateServerError> {
    match socket.as_os_str().len() {
        ..=SOCKET_PATH_MAX => Ok(()),
        _ => Err(PrivateServerError::PathTooLong { path: socket.to_owned() }),
    }
}

/// What is free on the disk of a directory, bytes.
///
/// # Errors
/// There is no such directory, or we may not look at it.
pub fn free_bytes(place: &Path) -> Result<u64, PrivateServerError> {
    let space = rustix::fs::statvfs(place)
        .map_err(|errno| PrivateServerError::place(place)(errno.into()))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

fn enough_room(parent: &Path, needed_mib: u64) -> Result<(), PrivateServerError> {
    let free_mib = free_bytes(parent)? >> 20;
    if free_mib >= needed_mib {
        return Ok(());
    }
    let path = parent.to_owned();
    Err(PrivateServerError::NoRoom { path, free_mib, needed_mib })
}

/// Removes what killed processes left in a directory. Nobody else makes or removes anything there as long as what
/// is returned is there, so that whoever sweeps meets no directory that is being made.
pub(crate) fn swept(parent: &Path) -> Result<File, PrivateServerError> {
    let alone = File::open(parent).and_then(|parent| parent.lock().map(|()| parent));
    let alone = alone.map_err(PrivateServerError::place(parent))?;
    sweep(parent);
    Ok(alone)
}

/// Removes what killed processes left: nobody holds the lock in it, or it was not there yet and nothing else is.
/// Directories that are not ours, and links, are left alone. Nothing here may fail a start.
fn sweep(parent: &Path) {
    let us = rustix::process::geteuid().as_raw();
    let is_ours = |path: &Path, is_kind: fn(&fs::Metadata) -> bool| {
        fs::symlink_metadata(path).is_ok_and(|found| is_kind(&found) && found.uid() == us)
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (path, owner) = (entry.path(), entry.path().join(OWNER));
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !is_named || !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let is_left = || File::open(&owner).is_ok_and(|file| file.try_lock().is_ok());
        if is_ours(&owner, fs::Metadata::is_file) && is_left() {
            let _ = fs::remove_dir_all(&path);
        } else if is_ours(&path, fs::Metadata::is_dir) {
            // Nothing is removed but what is empty.
            let new = path.join(NEW_OWNER);
            let is_begun = fs::metadata(&new).is_ok_and(|found| found.len() == 0);
            let _ = is_begun.then(|| fs::remove_file(&new));
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let parent = TempDir::new().unwrap();
        let make = |name: &str, owner: bool| {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).unwrap();
            owner.then(|| File::create(dir.join(OWNER)).unwrap())
        };
        let used = make("waggle-server-used", true).unwrap();
        used.lock().unwrap();
        drop(make("waggle-server-left", true));
        drop(make("waggle-server-begun", false));
        drop(make("waggle-server-locking", false));
        fs::write(parent.path().join("waggle-server-locking").join(NEW_OWNER), "").unwrap();
        drop(make("waggle-server-other", false));
        fs::write(parent.path().join("waggle-server-other/letter"), "").unwrap();
        drop(make("other", true));
        sweep(parent.path());
        let left = |name: &str| parent.path().join(name).exists();
        assert!(left("waggle-server-used") && left("waggle-server-other") && left("other"));
        for gone in ["left", "begun", "locking"] {
            assert!(!left(&format!("waggle-server-{gone}")), "{gone}");
        }
    }

    #[test]
    fn a_socket_has_a_path_that_the_kernel_takes() {
        let socket = |length: usize| PathBuf::from(format!("/{}", "d".repeat(length - 1)));
        assert!(fits(&socket(107)).is_ok());
        let error = fits(&socket(108)).unwrap_err().to_string();
        assert!(error.contains("107 bytes") && error.contains("TMPDIR"), "{error}");
        // The system agrees.
        let place = TempDir::new().unwrap();
        let bind = |length: usize| {
            let name = "s".repeat(length - place.path().as_os_str().len() - 1);
            std::os::unix::net::UnixListener::bind(place.path().join(name))
        };
        assert!(bind(107).is_ok() && bind(108).is_err());
    }

    #[test]
    fn a_full_disk_is_told_before_anything_is_made() {
        // A file system without blocks: nothing is ever free in it.
        let error = enough_room(Path::new("/proc"), 1).unwrap_err().to_string();
        assert!(error.contains("TMPDIR") && error.contains("0 MiB"), "{error}");
    }
}
