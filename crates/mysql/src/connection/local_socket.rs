//! A unix socket that a password is given over.
//!
//! Over a unix socket a server may ask for the password in clear, so it must be clear who asks. The
//! file of a socket belongs to the user whose process bound it, and nobody but root can give it away.
//! The file is opened once, checked, and connected through that descriptor: a path can change between.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::process::geteuid;

use super::{ConnectionError, Endpoint};
use crate::options::Options;

/// The user of the packages of MySQL and of MariaDB.
const USUAL_USER: &str = "mysql";

/// The file of a socket, whatever its path leads to by now.
pub(super) struct LocalSocket {
    file: OwnedFd,
}

impl LocalSocket {
    /// Opens the file. Where a password would be given, its owner must be root, the user who runs waggle, or
    /// `server-user` of the options.
    ///
    /// # Errors
    /// There is no such socket, or it belongs to somebody else.
    pub(super) fn open(path: &Path, options: &Options) -> Result<LocalSocket, ConnectionError> {
        let failed = |error: rustix::io::Errno| {
            let endpoint = Endpoint::Socket(path.to_owned());
            ConnectionError::open(&endpoint, options, false, mysql::Error::IoError(error.into()))
        };
        let follows = if options.private { OFlags::NOFOLLOW } else { OFlags::empty() };
        let how = OFlags::PATH | OFlags::CLOEXEC | follows;
        let file = open(path, how, Mode::empty()).map_err(failed)?;
        let found = fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
            return Err(failed(rustix::io::Errno::NOTSOCK));
        }
        let user = options.server_user.as_deref().unwrap_or(USUAL_USER);
        let is_trusted = found.st_uid == 0
            || found.st_uid == geteuid().as_raw()
            || uid_of(user) == Some(found.st_uid);
        if options.password.is_some() && !is_trusted {
            return Err(ConnectionError::ForeignSocket {
                path: path.display().to_string(),
                uid: found.st_uid,
                user: user.to_owned(),
            });
        }
        Ok(LocalSocket { file })
    }

    /// Where it is connected to.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// The number of a user of this host, who may be given by it.
fn uid_of(user: &str) -> Option<u32> {
    let of_name = || {
        let users = fs::read_to_string("/etc/passwd").ok()?;
        let line = users.lines().find(|line| line.split(':').next() == Some(user))?;
        line.split(':').nth(2)?.parse().ok()
    };
    user.parse().ok().or_else(of_name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::Secret;

    fn options(password: Option<&str>, user: Option<&str>) -> Options {
        Options {
            password: password.map(|it| Secret::new(it.as_bytes().to_vec())),
            server_user: user.map(str::to_owned),
            ..Options::default()
        }
    }

    #[test]
    fn a_password_is_for_the_sockets_of_root_of_us_and_of_the_user_that_is_named() {
        const SOMEBODY: u32 = 54_321;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(LocalSocket::open(&path, &options(Some("p"), None)).is_ok());
        chown(&path, Some(SOMEBODY), None).unwrap();
        let refused = LocalSocket::open(&path, &options(Some("p"), None)).err().unwrap();
        assert!(refused.to_string().contains("54321"), "{refused}");
        assert!(LocalSocket::open(&path, &options(Some("p"), Some("54321"))).is_ok());
        assert!(LocalSocket::open(&path, &options(Some("p"), Some("root"))).is_err());
        assert!(LocalSocket::open(&path, &options(None, None)).is_ok(), "there is nothing to take");
    }

    #[test]
    fn it_stays_the_socket_that_was_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let first = UnixListener::bind(&path).unwrap();
        let checked = LocalSocket::open(&path, &options(Some("p"), None)).unwrap();
        fs::remove_file(&path).unwrap();
        let second = UnixListener::bind(&path).unwrap();
        second.set_nonblocking(true).unwrap();
        let _stream = std::os::unix::net::UnixStream::connect(checked.path()).unwrap();
        assert!(first.accept().is_ok() && second.accept().is_err());
    }

    #[test]
    fn a_link_in_the_place_of_the_socket_of_a_private_server_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let [path, link] = ["s", "l"].map(|name| dir.path().join(name));
        let _listener = UnixListener::bind(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let private = Options { private: true, ..Options::default() };
        assert!(LocalSocket::open(&link, &options(None, None)).is_ok());
        assert!(LocalSocket::open(&link, &private).is_err());
        assert!(LocalSocket::open(&path, &private).is_ok());
    }

    #[test]
    fn a_file_that_is_no_socket_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(LocalSocket::open(file.path(), &options(None, None)).is_err());
    }
}
