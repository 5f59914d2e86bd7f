//! Where the server is, and how TLS to it is set up.

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

use super::ConnectionError;
use crate::options::{Options, Protocol, Tls, TlsMode};

/// `MYSQL_PORT` of the clients.
const DEFAULT_PORT: u16 = 3306;
/// `MYSQL_UNIX_ADDR` of the usual packages.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// Where a server takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub fn choose(options: &Options, hint: Option<&Path>) -> Result<Endpoint, ConnectionError> {
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
        let named = options.socket.clone().or_else(|| hint.map(Path::to_owned));
        named
            .or_else(usual)
            .map(Endpoint::Socket)
            .ok_or_else(|| ConnectionError::NoSocket { places: USUAL_SOCKETS.join(", ") })
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self, Endpoint::Tcp { .. })
    }

    pub(super) fn apply(&self, builder: OptsBuilder) -> OptsBuilder {
        match self {
            Endpoint::Tcp { host, port } => {
                builder.ip_or_hostname(Some(host.clone())).tcp_port(*port)
            }
            Endpoint::Socket(path) => builder.socket(Some(path.to_string_lossy())),
        }
    }

    /// Where TLS is only preferred: without it if the server has none; and on the loopback interface
    /// also if it speaks only versions that OpenSSL refuses (MySQL 5.7 with yaSSL). Over a network
    /// the latter is an error, since somebody in between could bring it about.
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
    ConnectionError::TlsFile { path: path.to_owned(), reason: reason.to_string() }
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
