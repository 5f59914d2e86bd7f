//! How to reach a server and log in, from MySQL option files as the real clients read them.
//!
//! A password cannot be given as an argument or in the environment.

mod apply;
mod error;
mod files;
#[cfg(test)]
mod fuzz;
mod login_path;
pub mod parse;
mod path;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Secret;

pub use error::OptionsError;
pub use files::{Environment, Sources};

/// What the option files say about reaching one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The user; where no file names one, the name of the user who runs waggle.
    pub user: Option<String>,
    /// The password; `None` if no file gives one. It is never written with the rest.
    #[serde(skip)]
    pub password: Option<Secret>,
    /// The host; `None` and `localhost` mean the unix socket, unless `protocol` says otherwise.
    pub host: Option<String>,
    /// The TCP port; `None` means 3306.
    pub port: Option<u16>,
    /// The unix socket.
    #[serde(with = "path")]
    pub socket: Option<PathBuf>,
    /// The user whose unix socket may be given the password, beside root and the user who runs waggle: a name or a
    /// number; `None` means `mysql`.
    pub server_user: Option<String>,
    /// Whether the socket is that of a private server: what lies beside it is its user's, so that no link is followed.
    pub private: bool,
    /// The server's public key for passwords over TCP without TLS, PEM.
    #[serde(with = "path")]
    pub server_public_key: Option<PathBuf>,
    /// Whether to ask the server for that key. Somebody in between could answer with another one.
    pub get_server_public_key: bool,
    /// The transport.
    pub protocol: Option<Protocol>,
    /// How long a login may take, where that is less than waggle waits anyway.
    pub connect_timeout: Option<Duration>,
    /// TLS over TCP. A unix socket needs none.
    pub tls: Tls,
    /// The files that were read, in order; a later file overrides an earlier one.
    #[serde(skip)]
    pub read_from: Vec<PathBuf>,
    /// What the person who runs waggle should know: files that were left out, and why.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Options {
    /// Whether they say where a server is.
    pub fn names_endpoint(&self) -> bool {
        self.socket.is_some()
            || self.host.is_some()
            || self.port.is_some()
            || self.protocol == Some(Protocol::Tcp)
    }

    /// Reads the option files that `sources` names.
    ///
    /// # Errors
    /// A file that was named does not exist, cannot be read, or says something that is wrong.
    pub fn read(sources: &Sources) -> Result<Options, OptionsError> {
        files::read(sources)
    }
}

/// A transport (`--protocol` of the clients).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP, also to this host.
    Tcp,
    /// A unix socket.
    Socket,
}

/// TLS settings (`--ssl-…` of the clients).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// How much is asked for.
    pub mode: TlsMode,
    /// Certificates of the authorities to trust, PEM.
    #[serde(with = "path")]
    pub ca: Option<PathBuf>,
    /// The client's certificate, PEM.
    #[serde(with = "path")]
    pub cert: Option<PathBuf>,
    /// The key of that certificate, PEM.
    #[serde(with = "path")]
    pub key: Option<PathBuf>,
}

/// How much TLS is asked for (`--ssl-mode` of the MySQL clients).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
