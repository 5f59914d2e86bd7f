//! Making and copying the data of a server as its user. What is in there is the user's: a link could lead anywhere, and change
//! while we look. So nothing is followed, and nothing is done that the user may not do.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, open, openat2, statat,
};
use rustix::process::{Gid, Uid};

/// The identity of a server, made anew where it is missing.
pub(crate) const IDENTITY: &str = "auto.cnf";

const MODE_DIRECTORY: Mode = Mode::from_raw_mode(0o750);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Copies a directory, but for links, sockets and the identity of the server, as this user and group; as ours for
/// `None`. Where the file system can share blocks between files, it does (copy_file_range(2)).
pub(crate) fn copy(from: &Path, to: &Path, user: Option<(u32, u32)>) -> io::Result<()> {
    let opened = |path: &Path| open(path, DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let name = to.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let (source, parent) = (opened(from)?, opened(to.parent().unwrap_or(to))?);
    as_user(user, || {
        mkdirat(&parent, name, MODE_DIRECTORY)?;
        copy_directory(&source, &below(&parent, name, DIRECTORY, Mode::empty())?)
    })
}

/// Makes a directory as this user: to give one away by its path could give away what has taken its place.
pub(crate) fn make_directory(path: &Path, user: Option<(u32, u32)>) -> io::Result<()> {
    as_user(user, || DirBuilder::new().mode(MODE_DIRECTORY.bits()).create(path))
}

/// Does something with the rights of this user and group; with ours for `None`. A thread has its own user
/// (credentials(7)).
fn as_user(
    user: Option<(u32, u32)>,
    work: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<()> {
    let worked = || become_user(user).and_then(|()| work());
    thread::scope(|scope| scope.spawn(worked).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread of the user panicked")))
}

fn become_user(user: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = user.filter(|(uid, _)| *uid != 0) else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Opens what has this name in a directory, and follows no link.
fn below(
    directory: &impl AsFd,
    name: impl rustix::path::Arg,
    how: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    // A FIFO would wait for its other end.
    let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(directory, name, how, mode, resolve)?)
}

fn copy_directory(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b"..", IDENTITY.as_bytes()].contains(&name.to_bytes()) {
            continue;
        }
        let found = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                mkdirat(to, name, Mode::from_raw_mode(found.st_mode & 0o777))?;
                let [from, to] = [from, to].map(|one| below(one, name, DIRECTORY, Mode::empty()));
                copy_directory(&from?, &to?)?;
            }
            FileType::RegularFile => {
                let source = below(from, name, OFlags::RDONLY, Mode::empty())?;
                let found = fstat(&source)?;
                if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                    continue;
                }
                let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let target = below(to, name, new, Mode::from_raw_mode(found.st_mode & 0o777))?;
                io::copy(&mut File::from(source), &mut File::from(target))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_copy_has_every_file_but_links_and_the_identity() {
        let place = tempfile::TempDir::new().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("mysql")).unwrap();
        fs::write(from.join("ibdata1"), "12345").unwrap();
        fs::write(from.join("mysql/user.ibd"), "678").unwrap();
        fs::write(from.join(IDENTITY), "uuid").unwrap();
        symlink("/etc/shadow", from.join("mysql/link.ibd")).unwrap();
        symlink("/etc", from.join("etc")).unwrap();
        copy(&from, &to, None).unwrap();
        assert_eq!(fs::read(to.join("ibdata1")).unwrap(), b"12345");
        assert_eq!(fs::read(to.join("mysql/user.ibd")).unwrap(), b"678");
        for none in [IDENTITY, "mysql/link.ibd", "etc"] {
            assert!(fs::symlink_metadata(to.join(none)).is_err(), "{none}");
        }
    }

    #[test]
    fn it_is_the_user_who_makes_a_directory() {
        const SOMEBODY: u32 = 54_321;
        let place = tempfile::TempDir::new().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|it| place.path().join(it));
        [&theirs, &ours].iter().for_each(|dir| fs::create_dir(dir).unwrap());
        chown(&theirs, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        let user = Some((SOMEBODY, SOMEBODY));
        make_directory(&theirs.join("data"), user).unwrap();
        assert_eq!(fs::metadata(theirs.join("data")).unwrap().uid(), SOMEBODY);
        // A link that leads to what is not theirs gives it to nobody.
        symlink(&ours, theirs.join("link")).unwrap();
        assert!(make_directory(&theirs.join("link"), user).is_err());
        assert!(make_directory(&theirs.join("link/data"), user).is_err());
        assert_eq!(fs::metadata(&ours).unwrap().uid(), 0);
    }

    #[test]
    fn it_is_the_user_who_copies() {
        const SOMEBODY: u32 = 54_321;
        let place = tempfile::TempDir::new().unwrap();
        let [theirs, other, ours] = ["theirs", "other", "ours"].map(|it| place.path().join(it));
        for dir in [&theirs, &other, &ours] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("f"), "x").unwrap();
        }
        for path in [theirs.clone(), theirs.join("f"), other.clone()] {
            chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        }
        let user = Some((SOMEBODY, SOMEBODY));
        let denied = copy(&theirs, &ours.join("copy"), user).unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        copy(&theirs, &other.join("copy"), user).unwrap();
        assert_eq!(fs::metadata(other.join("copy/f")).unwrap().uid(), SOMEBODY);
        // The rest of this process is who it was.
        assert!(rustix::process::geteuid().is_root());
        fs::write(ours.join("g"), "x").unwrap();
    }
}
