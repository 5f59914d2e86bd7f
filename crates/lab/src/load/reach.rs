//! How the sessions of a load reach their server.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, MemfdFlags, Mode, OFlags, fstat, memfd_create, open};
use waggle_mysql::options::TlsMode;
use waggle_mysql::{Endpoint, Options, Secret};

use super::LoadError;
use crate::measured_server;

/// The schema of the load on private servers (the default of sysbench).
pub(crate) const SCHEMA: &str = "sbtest";
/// sysbench reads a line of 255 bytes (`MAXSTRLEN`, `sb_options.c`).
const LINE_MAX: usize = 255;

/// How the sessions of a load log in, and the schema that they use.
#[derive(Debug)]
pub struct Reach {
    options: Options,
    /// The socket that was checked. The processes that we start inherit it, so that nobody gets the password by replacing
    /// the file.
    _socket: Option<OwnedFd>,
    schema: String,
    /// A file of options for sysbench that has no name, inherited by the processes that we start: the
    /// password never is an argument, and never lies on a disk in a second place.
    password: Option<File>,
}

impl Reach {
    /// The socket of a private server, where `root` has no password.
    ///
    /// # Errors
    /// There is no such socket.
    pub fn private(socket: &Path) -> Result<Reach, LoadError> {
        Reach::with(measured_server::options(socket), SCHEMA, None)
    }

    /// The server and the account of option files.
    ///
    /// # Errors
    /// sysbench cannot be told of such a password, or cannot use TLS as they ask, or there is no such socket.
    pub fn of(options: &Options, schema: &str) -> Result<Reach, LoadError> {
        let asks_for_tls = !matches!(options.tls.mode, TlsMode::Disabled | TlsMode::Preferred);
        if asks_for_tls && matches!(Endpoint::choose(options)?, Endpoint::Tcp { .. }) {
            return Err(LoadError::Tls);
        }
        let password = options.password.as_ref().filter(|secret| !secret.reveal().is_empty());
        Reach::with(options.clone(), schema, password.map(keep).transpose()?)
    }

    fn with(
        mut options: Options,
        schema: &str,
        password: Option<File>,
    ) -> Result<Reach, LoadError> {
        let mut held = None;
        if let Endpoint::Socket(path) = Endpoint::choose(&options)? {
            let follows = if options.private { OFlags::NOFOLLOW } else { OFlags::empty() };
            // Without CLOEXEC, as the password.
            let socket = open_socket(&path, OFlags::PATH | follows);
            let about = format!("open the socket {}", path.display());
            let socket = socket.map_err(LoadError::system(about))?;
            // This is a link of the kernel's, to what was opened.
            options.socket = Some(format!("/proc/self/fd/{}", socket.as_raw_fd()).into());
            options.private = false;
            held = Some(socket);
        }
        Ok(Reach { options, _socket: held, schema: schema.to_owned(), password })
    }

    /// The account, for a connection of ours.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The schema.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// The same as arguments of sysbench.
    pub(super) fn arguments(&self) -> Result<Vec<String>, LoadError> {
        let mut arguments = vec![
            format!("--mysql-db={}", self.schema),
            format!("--mysql-user={}", self.options.user.as_deref().unwrap_or_default()),
        ];
        match Endpoint::choose(&self.options)? {
            Endpoint::Tcp { host, port } => {
                arguments.extend([format!("--mysql-host={host}"), format!("--mysql-port={port}")]);
            }
            Endpoint::Socket(path) => arguments.push(format!("--mysql-socket={}", path.display())),
        }
        arguments.push(match &self.password {
            Some(file) => format!("--config-file=/proc/self/fd/{}", file.as_raw_fd()),
            None => "--mysql-password=".to_owned(),
        });
        Ok(arguments)
    }
}

/// Opens the file of a socket: a link that is not followed is none.
fn open_socket(path: &Path, how: OFlags) -> io::Result<OwnedFd> {
    let file = open(path, how, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Socket => Ok(file),
        _ => Err(io::Error::other("it is no socket")),
    }
}

/// Writes a password as sysbench reads it: in quotes, in which nothing is escaped (`read_config`,
/// `sb_options.c`).
fn keep(password: &Secret) -> Result<File, LoadError> {
    let line = line(password.reveal()).ok_or(LoadError::Password)?;
    let write = || -> io::Result<File> {
        // Without CLOEXEC: it is for sysbench, which another program of ours becomes.
        let mut file = File::from(memfd_create("waggle-lab-account", MemfdFlags::empty())?);
        file.write_all(line.reveal())?;
        Ok(file)
    };
    write().map_err(LoadError::system("keep the account of the load in memory"))
}

/// `None` where it cannot be written.
fn line(password: &[u8]) -> Option<Secret> {
    let quote = [b'"', b'\''].into_iter().find(|quote| !password.contains(quote))?;
    let line = [b"mysql-password=".as_slice(), &[quote], password, &[quote, b'\n']].concat();
    let is_one = !password.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0));
    (is_one && line.len() <= LINE_MAX).then(|| Secret::new(line))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_password_is_quoted_by_what_it_does_not_hold_and_no_argument_has_it() {
        let written = |password: &str| line(password.as_bytes()).map(|it| it.reveal().to_vec());
        assert_eq!(written("a, b#'c").unwrap(), b"mysql-password=\"a, b#'c\"\n");
        assert_eq!(written("a\"b").unwrap(), b"mysql-password='a\"b'\n");
        assert_eq!(written("a\"b'c"), None);
        assert_eq!(written("a\nb"), None);
        assert_eq!(written(&"x".repeat(250)), None);

        let (_place, options) = with_socket();
        let secret = Some(Secret::new(b"hunter2".to_vec()));
        let options = Options { user: Some("app".to_owned()), password: secret, ..options };
        let reach = Reach::of(&options, "waggle_lab").unwrap();
        let arguments = reach.arguments().unwrap().join(" ");
        assert!(
            !arguments.contains("hunter2") && arguments.contains("--mysql-socket="),
            "{arguments}"
        );
        assert!(!format!("{reach:?}").contains("hunter2"));
        let file = arguments.split("--config-file=").nth(1).unwrap();
        assert_eq!(std::fs::read(file).unwrap(), b"mysql-password=\"hunter2\"\n");
    }

    #[test]
    fn tls_that_has_to_be_is_refused_over_a_network_and_not_needed_on_a_socket() {
        let (_place, mut options) = with_socket();
        let socket = options.socket.take();
        options.host = Some("db1".to_owned());
        options.tls.mode = TlsMode::VerifyCa;
        assert!(matches!(Reach::of(&options, "s"), Err(LoadError::Tls)));
        options.host = None;
        options.socket = socket;
        assert!(Reach::of(&options, "s").is_ok());
    }

    /// A directory with a socket, and how it is reached.
    fn with_socket() -> (TempDir, Options) {
        let place = tempfile::tempdir().unwrap();
        let socket = Some(place.path().join("s"));
        UnixListener::bind(place.path().join("s")).unwrap();
        (place, Options { socket, ..Options::default() })
    }

    #[test]
    fn the_load_goes_to_the_socket_that_was_there_whatever_takes_its_place() {
        let place = tempfile::tempdir().unwrap();
        let [path, other, link] = ["s", "o", "l"].map(|name| place.path().join(name));
        let real = UnixListener::bind(&path).unwrap();
        let thief = UnixListener::bind(&other).unwrap();
        thief.set_nonblocking(true).unwrap();
        let options = Options { socket: Some(path.clone()), ..Options::default() };
        for reach in [Reach::of(&options, "s").unwrap(), Reach::private(&path).unwrap()] {
            fs::rename(&path, place.path().join("real")).unwrap();
            symlink(&other, &path).unwrap();
            let arguments = reach.arguments().unwrap().join(" ");
            let named = arguments.split("--mysql-socket=").nth(1).unwrap();
            let named = named.split(' ').next().unwrap();
            let _stream = UnixStream::connect(named).unwrap();
            assert!(thief.accept().is_err(), "{named}");
            // sysbench inherits it.
            assert!(Command::new("test").args(["-S", named]).status().unwrap().success());
            real.accept().unwrap();
            fs::remove_file(&path).unwrap();
            fs::rename(place.path().join("real"), &path).unwrap();
        }
        symlink(&path, &link).unwrap();
        assert!(Reach::private(&link).is_err());
    }
}
