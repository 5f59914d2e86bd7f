//! How to reach and log in to a server, from MySQL option files as the real clients read them.
//!
//! There is no way to give a password by argument or environment.

mod apply;
mod error;
mod files;
mod login_path;
pub mod parse;

use std::path::PathBuf;

use crate::Secret;

pub use error::OptionsError;
pub use files::{Environment, Sources};

/// What the option files say about reaching one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The user; where no file names one, the name of the user who runs waggle.
    pub user: Option<String>,
    /// The password; `None` where no file gives one.
    pub password: Option<Secret>,
    /// The host; `None` and `localhost` mean the unix socket, unless `protocol` says otherwise.
    pub host: Option<String>,
    /// The TCP port; `None` means 3306.
    pub port: Option<u16>,
    /// The unix socket.
    pub socket: Option<PathBuf>,
    /// The transport.
    pub protocol: Option<Protocol>,
    /// TLS over TCP. A unix socket needs none.
    pub tls: Tls,
    /// The files that were read, in order; a later file overrides an earlier one.
    pub read_from: Vec<PathBuf>,
    /// What the person who runs waggle should know: files that were left out, and why.
    pub notes: Vec<String>,
}

impl Options {
    /// Reads the option files that `sources` names.
    ///
    /// # Errors
    /// A file that was named does not exist, cannot be read, or says something that is wrong.
    pub fn read(sources: &Sources) -> Result<Options, OptionsError> {
        files::read(sources)
    }
}

/// A transport (`--protocol` of the clients).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, also to this host.
    Tcp,
    /// A unix socket.
    Socket,
}

/// TLS settings (`--ssl-…` of the clients).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// How much is asked for.
    pub mode: TlsMode,
    /// Certificates of the authorities to trust, PEM.
    pub ca: Option<PathBuf>,
    /// The client's certificate, PEM.
    pub cert: Option<PathBuf>,
    /// The key of that certificate, PEM.
    pub key: Option<PathBuf>,
}

/// How much TLS is asked for (`--ssl-mode` of the MySQL clients).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// None.
    Disabled,
    /// Where the server offers it.
    #[default]
    Preferred,
    /// Always; the server's certificate is not checked.
    Required,
    /// Always, and the certificate is signed by one of `ca`.
    VerifyCa,
    /// As above, and the certificate is that of the host.
    VerifyIdentity,
}
