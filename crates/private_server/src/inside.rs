//! The root directory of a process, entered with mounts of our own. It may belong to anybody: who enters it is a process
//! that can be killed.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Nothing of it is read or asked for its rights.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where a process of ours is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The process whose root directory it is.
    pub process: u32,
    /// A directory of ours, and where it is seen there, by this process of ours alone.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl Inside {
    /// Goes there. This process must have one thread.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let process = self.process;
        self.go().map_err(|error| {
            io::Error::other(format!(
                "the root directory of process {process} cannot be entered ({error}): run waggle as root of the host, or \
                 name a program outside of it"
            ))
        })
    }

    fn go(&self) -> io::Result<()> {
        // Who shares a terminal with us could type into it (TIOCSTI).
        rustix::process::setsid()?;
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let own = self.own.as_ref().map(|(own, at)| Ok((open_tree(CWD, own, clone)?, at)));
        let own = own.transpose().map_err(|errno: rustix::io::Errno| io::Error::from(errno))?;
        let folder = PathBuf::from(format!("/proc/{}", self.process));
        let path = fs::read_link(folder.join("root"))?;
        let root = open(folder.join("root"), FOLDER, Mode::empty())?;
        let mounts = File::open(folder.join("ns/mnt"))?;
        move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        be_alone()?;
        // The same directory again, by a mount of ours.
        let ours = below(Path::new("/"), &path)?;
        let [theirs, found] = [fstat(&root)?, fstat(&ours)?].map(|it| (it.st_dev, it.st_ino));
        if theirs != found {
            return Err(io::Error::other("it is hidden by another mount"));
        }
        rustix::process::fchdir(&ours)?;
        rustix::process::chroot(".")?;
        if let Some((tree, at)) = own {
            let how =
                MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
            let at_there = below(Path::new("/"), at)
                .map_err(|error| io::Error::other(format!("{}: {error}", at.display())))?;
            move_mount(&tree, "", &at_there, "", how)?;
        }
        Ok(())
    }
}

/// Whether a process has our root directory and our mounts.
pub(crate) fn has_our_root(process: u32) -> io::Result<bool> {
    let link = |process: &str, name: &str| fs::read_link(format!("/proc/{process}/{name}"));
    let process = process.to_string();
    let is_at_top = link(&process, "root")? == Path::new("/");
    Ok(is_at_top && link(&process, "ns/mnt")? == link("self", "ns/mnt")?)
}

/// Gives this process mounts that nobody else sees, and no network: no server of ours needs one.
fn be_alone() -> io::Result<()> {
    let what =
        UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    #[expect(deprecated, reason = "only with the table of open files is it unsafe")]
    rustix::thread::unshare(what)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// A directory below a root, by a path without links.
fn below(root: &Path, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let root = open(root, FOLDER, Mode::empty())?;
    Ok(openat2(root, path, FOLDER | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}
