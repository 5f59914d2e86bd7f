//! The files of a private server.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, lchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use waggle_model::Flavour;

use crate::program::Root;
use crate::{PrivateServerError, Program};

/// unix(7): `sun_path` has 108 bytes, the last of them the NUL.
const SOCKET_PATH_MAX: usize = 107;
/// Data, logs and tables of a private server take less (MySQL 8.0 about 180 MiB).
pub(crate) const ROOM_MIB: u64 = 600;
/// What every start is told. `--no-defaults` must come before. `loose` options are for the versions that have them.
const SETTINGS: [&str; 5] = [
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",
    "--loose-innodb-redo-log-capacity=32M",
    "--loose-innodb-log-file-size=16M",
    "--loose-mysqlx=0",
];
const PREFIX: &str = "waggle-server-";
/// It is locked as long as its directory is in use.
const OWNER: &str = "owner";
/// Its name until it is locked.
const NEW_OWNER: &str = "owner.new";

/// What is the server's own in its directory. The rest is ours: where another user may write, no path leads
/// where it led before.
const OWN: &str = "own";
/// As long a sweep may be waited for.
const SWEEP_AWAITED: Duration = Duration::from_secs(2);
/// Others may go through it, to what is theirs.
const MODE_PASSABLE: u32 = 0o711;
const MODE_PRIVATE: u32 = 0o700;
/// Others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;
/// Only the owner of a file may rename it, as in `/tmp`.
const STICKY: u32 = 0o1000;

/// The directory of a private server, removed when dropped.
#[derive(Debug)]
pub struct Directory {
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
        Directory::create_in(&program.place(), program, needed_mib)
    }

    /// The same in a directory of your choice, which the program can reach.
    ///
    /// # Errors
    /// There is too little room, or the directory cannot be used.
    pub fn create_in(
        parent: &Path,
        program: &Program,
        needed_mib: u64,
    ) -> Result<Directory, PrivateServerError> {
        let _alone = swept(parent)?;
        enough_room(parent, needed_mib)?;
        // Who sees it by a mount of its own needs no way to it.
        let is_passed = program.user.is_some() && !matches!(program.root, Root::Of(_));
        let mode = if is_passed { MODE_PASSABLE } else { MODE_PRIVATE };
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(parent);
        let dir = made.map_err(PrivateServerError::io("cannot make a directory in", parent))?;
        let owner = own(dir.path()).map_err(PrivateServerError::io("cannot lock", dir.path()))?;
        let directory = Directory { dir, _owner: owner };
        let own = directory.own();
        let made = DirBuilder::new().mode(MODE_PRIVATE).create(&own);
        made.map_err(PrivateServerError::io("cannot make", &own))?;
        if let Some((uid, gid)) = program.user {
            chown(&own, Some(uid), Some(gid))
                .map_err(PrivateServerError::io("cannot give away", &own))?;
        }
        fits(&directory.socket())?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What belongs to the server: its data, its socket and what it writes for a while.
    pub fn own(&self) -> PathBuf {
        self.path().join(OWN)
    }

    /// The data of the server.
    pub fn data(&self) -> PathBuf {
        self.own().join("data")
    }

    /// Its socket, as this process can reach it.
    pub fn socket(&self) -> PathBuf {
        self.own().join("socket")
    }

    /// What it says.
    pub fn log(&self) -> PathBuf {
        self.path().join("error.log")
    }

    /// What every start of a program needs, the one that makes the data as well.
    pub(crate) fn arguments(&self, program: &Program) -> Vec<String> {
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--basedir={}", program.base.display()),
            format!("--lc-messages-dir={}", program.messages.display()),
            format!("--datadir={}", self.seen(&self.data(), program).display()),
            // What our environment names need not be there in another root directory.
            format!("--tmpdir={}", self.seen(&self.own(), program).display()),
        ];
        arguments.extend(SETTINGS.map(str::to_owned));
        arguments.push(match program.flavour {
            // The directory that the package names need not be there.
            Flavour::Mysql => "--secure-file-priv=".to_owned(),
            // Since 11.4 each start makes a key for TLS, which takes one to six seconds of a processor. Nobody comes over a network.
            Flavour::Mariadb => "--skip-ssl".to_owned(),
        });
        if program.user.is_some_and(|(uid, _)| uid == 0) {
            // It refuses to run as root unless it is told to.
            arguments.push("--user=root".to_owned());
        }
        arguments
    }

    /// The same for a server that listens on its socket. What follows on a command line wins.
    pub fn listening(&self, program: &Program) -> Vec<String> {
        let mut arguments = self.arguments(program);
        arguments.extend([
            format!("--socket={}", self.seen(&self.socket(), program).display()),
            format!("--pid-file={}", self.seen(&self.own().join("pid"), program).display()),
        ]);
        arguments
    }

    /// What is the server's own, as the server sees it.
    fn seen(&self, path: &Path, program: &Program) -> PathBuf {
        match (&program.root, path.strip_prefix(self.own())) {
            (Root::Of(_), Ok(rest)) => program.own_seen_at().join(rest),
            _ => program.inside(path),
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        take_back(&self.own());
    }
}

/// Takes back what was given to a server's user, who could go on to write there while it is removed.
fn take_back(own: &Path) {
    let us = rustix::process::geteuid().as_raw();
    let _ = lchown(own, Some(us), None);
    let _ = fs::set_permissions(own, fs::Permissions::from_mode(MODE_PRIVATE));
}

/// Locks the file before it has its name, so that nobody finds it without its lock.
fn own(dir: &Path) -> io::Result<File> {
    let path = dir.join(NEW_OWNER);
    let file = File::create(&path)?;
    file.lock()?;
    fs::rename(&path, dir.join(OWNER))?;
    Ok(file)
}

/// Refuses a directory in which somebody else can put another one in the place of ours.
fn check_owner(parent: &Path) -> Result<(), PrivateServerError> {
    let found = fs::metadata(parent).map_err(PrivateServerError::place(parent))?;
    let us = rustix::process::geteuid().as_raw();
    let is_ours = found.uid() == us || found.uid() == 0;
    let may_others = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
    match is_ours && !may_others {
        true => Ok(()),
        false => Err(PrivateServerError::place(parent)(io::Error::other(
            "it belongs to others, or others may rename what is in it",
        ))),
    }
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

/// Removes what killed processes left in a directory. Nobody of ours makes or removes anything there as long as what
/// is returned is there, so that a sweep meets no directory that is being made. Anybody can lock a directory that
/// everybody may read: after a while it is not swept, and all else goes on.
pub(crate) fn swept(parent: &Path) -> Result<File, PrivateServerError> {
    check_owner(parent)?;
    let alone = File::open(parent).map_err(PrivateServerError::place(parent))?;
    let begin = Instant::now();
    while begin.elapsed() < SWEEP_AWAITED {
        match alone.try_lock() {
            Ok(()) => {
                sweep(parent);
                break;
            }
            Err(TryLockError::WouldBlock) => sleep(SWEEP_AWAITED / 100),
            Err(TryLockError::Error(error)) => {
                return Err(PrivateServerError::place(parent)(error));
            }
        }
    }
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
            take_back(&path.join(OWN));
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
    fn a_lock_of_somebody_else_keeps_nobody_waiting() {
        let parent = TempDir::new().unwrap();
        let left = parent.path().join("waggle-server-left");
        fs::create_dir(&left).unwrap();
        let lock = File::open(parent.path()).unwrap();
        lock.lock().unwrap();
        swept(parent.path()).unwrap();
        assert!(left.exists());
        drop(lock);
        swept(parent.path()).unwrap();
        assert!(!left.exists());
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
    fn a_directory_of_others_is_refused_by_name() {
        let parent = TempDir::new().unwrap();
        let set = |mode| fs::set_permissions(parent.path(), Permissions::from_mode(mode)).unwrap();
        for (mode, is_fit) in [(0o700, true), (0o777, false), (0o1777, true), (0o770, false)] {
            set(mode);
            assert_eq!(check_owner(parent.path()).is_ok(), is_fit, "{mode:o}");
        }
        set(0o700);
        chown(parent.path(), Some(54_321), None).unwrap();
        let error = check_owner(parent.path()).unwrap_err().to_string();
        let name = parent.path().display().to_string();
        assert!(error.contains(&name) && error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn a_full_disk_is_told_before_anything_is_made() {
        // A file system without blocks: nothing is ever free in it.
        let error = enough_room(Path::new("/proc"), 1).unwrap_err().to_string();
        assert!(error.contains("TMPDIR") && error.contains("0 MiB"), "{error}");
    }
}
