//! Opening a session: greeting, change to TLS, login.

use std::fmt;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use openssl::ssl::{Ssl, SslContext, SslMethod, SslOptions, SslVerifyMode, SslVersion};

use super::reply::Reader;
use super::stream::Stream;
use super::wire::Wire;
use super::{Client, auth};
use crate::{Account, Error, Result, Server, Version};

/// utf8mb4_general_ci, which all five know.
pub(super) const UTF8MB4: u16 = 45;
/// The largest packet that we announce: the server's own limit.
const MAX_PACKET: u32 = 1 << 30;
/// A reply that takes longer is an error, so that a test cannot hang.
const READ_LIMIT: Duration = Duration::from_secs(300);

pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
const COMPRESS: u32 = 1 << 5;
const SSL: u32 = 1 << 11;
pub(super) const DEPRECATE_EOF: u32 = 1 << 24;
/// LONG_PASSWORD, LONG_FLAG, LOCAL_FILES, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
/// MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH.
const ALWAYS: u32 = 1 | 1 << 2 | 1 << 7 | 1 << 9 | 1 << 13 | 0b11111 << 15;

/// Also the flag of MySQL's own clients: a client of MariaDB leaves it out, and says in its place what
/// else it can (`CLIENT_MYSQL` in include/mysql_com.h).
const LONG_PASSWORD: u32 = 1;
/// `MARIADB_CLIENT_PROGRESS`, in the second half of the capabilities.
const PROGRESS: u32 = 1;
/// `MARIADB_CLIENT_STMT_BULK_OPERATIONS`, in the second half of the capabilities.
const BULK: u32 = 1 << 2;

/// How the packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP to 127.0.0.1.
    Tcp,
    /// The unix socket.
    Unix,
    /// TCP with TLS: 1.1 to MySQL 5.7 (its yaSSL knows no other), 1.2 to 8.0, 1.3 to the others.
    Tls,
    /// TCP with the compressed protocol (zlib).
    Compressed,
    /// Both.
    TlsCompressed,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Tcp, Self::Unix, Self::Tls, Self::Compressed, Self::TlsCompressed];

    fn has_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsCompressed)
    }

    fn is_compressed(self) -> bool {
        matches!(self, Self::Compressed | Self::TlsCompressed)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Tls => "tls",
            Self::Compressed => "compressed",
            Self::TlsCompressed => "tls+compressed",
        })
    }
}

/// A session to be opened with more than the defaults.
#[derive(Clone, Debug, Default)]
pub struct ClientBuilder {
    database: Option<String>,
    deprecate_eof: bool,
    progress: bool,
}

impl ClientBuilder {
    /// The default database.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>) -> Self {
        self.database = Some(name.into());
        self
    }

    /// Whether results end with an OK packet (`CLIENT_DEPRECATE_EOF`), as with today's libraries;
    /// off by default.
    #[must_use]
    pub fn deprecate_eof(mut self, on: bool) -> Self {
        self.deprecate_eof = on;
        self
    }

    /// Whether a server of MariaDB may report the progress of a statement, in error packets with the number 0xffff, before
    /// it replies ([`Client::run`] knows none of these); off by default.
    #[must_use]
    pub fn progress(mut self, on: bool) -> Self {
        self.progress = on;
        self
    }

    /// Opens the session.
    pub fn connect(
        self,
        server: &Server,
        transport: Transport,
        account: Account,
    ) -> Result<Client> {
        let mut wire = Wire::new(open(server, transport)?);
        let greeting = Greeting::parse(&wire.read_packet()?)?;
        let mut wanted = ALWAYS;
        wanted |= if self.database.is_some() { CONNECT_WITH_DB } else { 0 };
        wanted |= if self.deprecate_eof { DEPRECATE_EOF } else { 0 };
        wanted |= if transport.has_tls() { SSL } else { 0 };
        wanted |= if transport.is_compressed() { COMPRESS } else { 0 };
        // The plugin's name must not be sent to a server that does not know the flag, and so on;
        // what a test asks for must not be dropped silently.
        let mut capabilities = wanted & (greeting.capabilities | LONG_PASSWORD);
        if capabilities != wanted {
            let missing = wanted & !capabilities;
            return Err(Error::Protocol(format!(
                "{} does not offer the capabilities {missing:#x} that {transport} needs",
                server.version()
            )));
        }

        let mut of_mariadb = 0u32;
        if server.version().is_mariadb() {
            capabilities &= !LONG_PASSWORD;
            of_mariadb = BULK | if self.progress { PROGRESS } else { 0 };
        }
        // SSLRequest is the head of the login packet without the user.
        let mut login = capabilities.to_le_bytes().to_vec();
        login.extend(MAX_PACKET.to_le_bytes());
        login.push(UTF8MB4.to_le_bytes()[0]);
        login.extend([0; 19]);
        login.extend(of_mariadb.to_le_bytes());
        if transport.has_tls() {
            wire.write_packet(&login)?;
            wire = wire.over(|stream| upgrade(stream, server))?;
        }
        let response = auth::response(&greeting.plugin, account.password, &greeting.salt);
        login.extend([account.user.as_bytes(), b"\0"].concat());
        login.push(u8::try_from(response.len()).unwrap_or(0));
        login.extend(&response);
        if let Some(database) = &self.database {
            login.extend([database.as_bytes(), b"\0"].concat());
        }
        login.extend([greeting.plugin.as_bytes(), b"\0"].concat());
        wire.write_packet(&login)?;

        let mut client = Client {
            wire,
            connection_id: greeting.connection_id,
            capabilities,
            salt: greeting.salt,
            plugin: greeting.plugin,
            quit_at_drop: false,
        };
        client.finish_authentication(account)?;
        client.quit_at_drop = true;
        if transport.is_compressed() {
            client.wire.compress();
        }
        Ok(client)
    }
}

fn open(server: &Server, transport: Transport) -> Result<Stream> {
    if transport == Transport::Unix {
        let stream = UnixStream::connect(server.socket()).map_err(Error::connection)?;
        stream.set_read_timeout(Some(READ_LIMIT)).map_err(Error::connection)?;
        return Ok(Stream::Unix(stream));
    }
    let stream = TcpStream::connect(("127.0.0.1", server.port())).map_err(Error::connection)?;
    stream.set_nodelay(true).map_err(Error::connection)?;
    stream.set_read_timeout(Some(READ_LIMIT)).map_err(Error::connection)?;
    Ok(Stream::Tcp(stream))
}

/// Turns TCP into TLS and checks the server's certificate.
///
/// OpenSSL 3 can speak to the yaSSL of MySQL 5.7.22 if it is allowed what it refuses by default:
/// TLS 1.1 with its MD5 and SHA-1 signatures (security level 0), and a server that does not know
/// secure renegotiation (RFC 5746).
fn upgrade(stream: Stream, server: &Server) -> Result<Stream> {
    let Stream::Tcp(stream) = stream else {
        return Err(Error::Protocol("only TCP is turned into TLS".to_owned()));
    };
    let mut context = SslContext::builder(SslMethod::tls_client())?;
    context.set_ca_file(server.ca_certificate())?;
    context.set_verify(SslVerifyMode::PEER);
    if server.version() == Version::Mysql57 {
        context.set_min_proto_version(Some(SslVersion::TLS1_1))?;
        context.set_max_proto_version(Some(SslVersion::TLS1_1))?;
        context.set_cipher_list("ALL:@SECLEVEL=0")?;
        // SSL_OP_LEGACY_SERVER_CONNECT (openssl/ssl.h), which the crate has no name for.
        context.set_options(SslOptions::from_bits_retain(1 << 2));
    }
    let ssl = Ssl::new(&context.build())?;
    let stream = ssl.connect(stream).map_err(|error| Error::Handshake(error.to_string()))?;
    Ok(Stream::Tls(Box::new(stream)))
}

/// The server's first packet ("Protocol::HandshakeV10").
struct Greeting {
    connection_id: u32,
    capabilities: u32,
    salt: Vec<u8>,
    plugin: String,
}

impl Greeting {
    fn parse(packet: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            10 => {}
            0xff => return Err(reader.error()?),
            other => return Err(Error::Protocol(format!("a greeting of version {other}"))),
        }
        reader.until_nul()?;
        let connection_id = reader.u32()?;
        let mut salt = reader.bytes(8)?.to_vec();
        reader.bytes(1)?;
        let low = reader.u16()?;
        reader.bytes(3)?;
        let high = reader.u16()?;
        let salt_length = usize::from(reader.u8()?);
        reader.bytes(10)?;
        // The second part has at least 13 bytes, the last of them a NUL.
        salt.extend(reader.bytes(salt_length.saturating_sub(8).max(13))?);
        salt.truncate(20);
        let plugin = String::from_utf8_lossy(reader.until_nul()?).into_owned();
        let capabilities = u32::from(low) | u32::from(high) << 16;
        Ok(Self { connection_id, capabilities, salt, plugin })
    }
}
