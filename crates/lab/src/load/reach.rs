//! How the sessions of a load reach their server.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};
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
    schema: String,
    /// A file of options for sysbench that has no name, inherited by the processes that we start: the
    /// password never is an argument, and never lies on a disk in a second place.
    password: Option<File>,
}

impl Reach {
    /// The socket of a private server, where `root` has no password.
    pub fn private(socket: &Path) -> Reach {
        Reach {
            options: measured_server::options(socket),
            schema: SCHEMA.to_owned(),
            password: None,
        }
    }

    /// The server and the account of option files.
    ///
    /// # Errors
    /// sysbench cannot be told of such a password, or cannot use TLS as they ask.
    pub fn of(options: &Options, schema: &str) -> Result<Reach, LoadError> {
        let asks_for_tls = !matches!(options.tls.mode, TlsMode::Disabled | TlsMode::Preferred);
        let endpoint = Endpoint::choose(options)?;
        if asks_for_tls && matches!(endpoint, Endpoint::Tcp { .. }) {
            return Err(LoadError::Tls);
        }
        let password = options.password.as_ref().filter(|secret| !secret.reveal().is_empty());
        let password = password.map(keep).transpose()?;
        Ok(Reach { options: options.clone(), schema: schema.to_owned(), password })
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
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_password_is_quoted_by_what_it_does_not_hold_and_no_argument_has_it() {
        let written = |password: &str| line(password.as_bytes()).map(|it| it.reveal().to_vec());
        assert_eq!(written("a, b#'c").unwrap(), b"mysql-password=\"a, b#'c\"\n");
        assert_eq!(written("a\"b").unwrap(), b"mysql-password='a\"b'\n");
        assert_eq!(written("a\"b'c"), None);
        assert_eq!(written("a\nb"), None);
        assert_eq!(written(&"x".repeat(250)), None);

        let options = Options {
            user: Some("app".to_owned()),
            password: Some(Secret::new(b"hunter2".to_vec())),
            socket: Some(PathBuf::from("/run/x.sock")),
            ..Options::default()
        };
        let reach = Reach::of(&options, "waggle_lab").unwrap();
        let arguments = reach.arguments().unwrap().join(" ");
        assert!(!arguments.contains("hunter2") && arguments.contains("/run/x.sock"), "{arguments}");
        assert!(!format!("{reach:?}").contains("hunter2"));
        let file = arguments.split("--config-file=").nth(1).unwrap();
        assert_eq!(std::fs::read(file).unwrap(), b"mysql-password=\"hunter2\"\n");
    }

    #[test]
    fn tls_that_has_to_be_is_refused_over_a_network_and_not_needed_on_a_socket() {
        let mut options = Options { host: Some("db1".to_owned()), ..Options::default() };
        options.tls.mode = TlsMode::VerifyCa;
        assert!(matches!(Reach::of(&options, "s"), Err(LoadError::Tls)));
        options.host = None;
        options.socket = Some(PathBuf::from("/run/x.sock"));
        assert!(Reach::of(&options, "s").is_ok());
    }
}
