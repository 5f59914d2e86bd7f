//! The address of the server, and the TLS settings.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use mysql::{ClientIdentity, DriverError, OptsBuilder, SslOpts};
use openssl::pkcs12::Pkcs12;
use openssl::pkey::PKey;
use openssl::x509::X509;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use super::ConnectionError;
use super::local_socket::LocalSocket;
use crate::options::{Options, Protocol, Tls, TlsMode};

/// `MYSQL_PORT` of the clients.
const DEFAULT_PORT: u16 = 3306;
/// `MYSQL_UNIX_ADDR` of the usual packages.
/// None in a directory that everybody may write, such as `/tmp`: anybody could answer there.
const USUAL_SOCKETS: [&str; 3] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock"];
/// Where no key is: the driver asks the server for its key unless it is to read one.
const NO_KEY: &str = "/proc/self/no-server-public-key";

/// Where a server takes connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// The name or the address of its host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Socket(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } => write!(out, "{host}:{port}"),
            Endpoint::Socket(path) => path.display().fmt(out),
        }
    }
}

impl Endpoint {
    /// Where [`super::Connection::open`] connects to. The clients' own rule: `localhost`, or no host, is
    /// the unix socket.
    ///
    /// # Errors
    /// It is a unix socket, and none is named or at the usual places.
    pub fn choose(options: &Options) -> Result<Endpoint, ConnectionError> {
        let remote = options.host.as_deref().filter(|host| *host != "localhost");
        let tcp = match options.protocol {
            Some(protocol) => protocol == Protocol::Tcp,
            None => remote.is_some(),
        };
        if tcp {
            let host = remote.unwrap_or("127.0.0.1").to_owned();
            return Ok(Endpoint::Tcp { host, port: options.port.unwrap_or(DEFAULT_PORT) });
        }
        let usual = || USUAL_SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
        let named = options.socket.clone();
        named
            .or_else(usual)
            .map(Endpoint::Socket)
            .ok_or_else(|| ConnectionError::NoSocket { places: USUAL_SOCKETS.join(", ") })
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self, Endpoint::Tcp { .. })
    }

    /// Has the driver connect to it. A unix socket is that of `socket`.
    pub(super) fn apply(
        &self,
        builder: OptsBuilder,
        socket: Option<&LocalSocket>,
        options: &Options,
    ) -> OptsBuilder {
        match (self, socket) {
            (Endpoint::Tcp { host, port }, _) => builder
                .ip_or_hostname(Some(host.clone()))
                .tcp_port(*port)
                .server_key_path(key_path(options)),
            (Endpoint::Socket(path), None) => builder.socket(Some(path.to_string_lossy())),
            (Endpoint::Socket(_), Some(socket)) => {
                builder.socket(Some(socket.path().to_string_lossy()))
            }
        }
    }

    /// Whether a login failed because the server wanted the password itself, and the connection is not encrypted.
    pub(super) fn lacks_key(&self, options: &Options, error: &mysql::Error) -> bool {
        let is_missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        self.is_tcp()
            && key_path(options).is_some_and(|path| path == Path::new(NO_KEY))
            && matches!(error, mysql::Error::IoError(error) if is_missing(error))
    }

    /// If TLS is only preferred, waggle connects without it to a server that has none. On the
    /// loopback interface it also does so if the server speaks only versions that OpenSSL refuses
    /// (MySQL 5.7 with yaSSL). Over a network that is an error, because an attacker in between
    /// could force it.
    pub(super) fn may_go_without_tls(&self, mode: TlsMode, error: &mysql::Error) -> bool {
        let Endpoint::Tcp { host, .. } = self else { return false };
        let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        mode == TlsMode::Preferred
            && match error {
                mysql::Error::DriverError(DriverError::TlsNotSupported) => true,
                mysql::Error::TlsError(_) => loopback,
                _ => false,
            }
    }
}

/// The file of the key with which a password is encrypted where TLS does not. As the clients do, the server is
/// asked for it only where that is wanted.
fn key_path(options: &Options) -> Option<PathBuf> {
    let named = options.server_public_key.clone();
    named.or_else(|| (!options.get_server_public_key).then(|| PathBuf::from(NO_KEY)))
}

/// The client's certificate and key in the form that the driver takes: a PKCS#12 file. It is made in
/// memory, so that the key never lies on a disk in a second place.
pub(super) struct TlsFiles {
    identity: Option<File>,
}

impl TlsFiles {
    pub(super) fn read(tls: &Tls) -> Result<TlsFiles, ConnectionError> {
        let identity = match (&tls.cert, &tls.key) {
            _ if tls.mode == TlsMode::Disabled => None,
            (Some(cert), Some(key)) => Some(pkcs12(cert, key)?),
            (Some(path), None) => {
                return Err(file_fault(path, "a certificate needs its key; add ssl-key"));
            }
            (None, Some(path)) => {
                return Err(file_fault(path, "a key needs its certificate; add ssl-cert"));
            }
            (None, None) => None,
        };
        Ok(TlsFiles { identity })
    }

    pub(super) fn driver_options(&self, tls: &Tls) -> SslOpts {
        // As the clients do: a named authority is checked even where it is only required.
        let checks = match tls.mode {
            TlsMode::VerifyCa | TlsMode::VerifyIdentity => true,
            TlsMode::Required => tls.ca.is_some(),
            TlsMode::Preferred | TlsMode::Disabled => false,
        };
        let identity = self.identity.as_ref().map(|file| {
            ClientIdentity::new(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
        });
        SslOpts::default()
            .with_root_cert_path(tls.ca.clone())
            .with_client_identity(identity)
            .with_danger_accept_invalid_certs(!checks)
            .with_danger_skip_domain_validation(tls.mode != TlsMode::VerifyIdentity)
    }
}

fn file_fault(path: &Path, reason: impl fmt::Display) -> ConnectionError {
    ConnectionError::TlsFile { path: path.display().to_string(), reason: reason.to_string() }
}

fn pkcs12(cert: &Path, key: &Path) -> Result<File, ConnectionError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| file_fault(path, error));
    let certificates = X509::stack_from_pem(&read(cert)?)
        .map_err(|error| file_fault(cert, format!("is not a PEM certificate: {error}")))?;
    let private = PKey::private_key_from_pem(&read(key)?)
        .map_err(|error| file_fault(key, format!("is not a PEM key without password: {error}")))?;
    let own = certificates.first().ok_or_else(|| file_fault(cert, "holds no certificate"))?;
    let archive = Pkcs12::builder()
        .pkey(&private)
        .cert(own)
        .build2("")
        .and_then(|archive| archive.to_der())
        .map_err(|error| file_fault(cert, format!("does not go with the key: {error}")))?;
    let in_memory = memfd_create("client-identity", MemfdFlags::CLOEXEC)
        .map_err(|error| file_fault(cert, format!("no memory file: {error}")))?;
    let mut file = File::from(in_memory);
    file.write_all(&archive).map_err(|error| file_fault(cert, error))?;
    Ok(file)
}
