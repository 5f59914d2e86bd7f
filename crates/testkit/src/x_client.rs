//! A client of the X protocol of MySQL 8 and later: it logs in and runs statements.
//!
//! Messages: MySQL source documentation, "X Protocol"
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_mysqlx_protocol.html>).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use openssl::sha::sha256;

use crate::{Account, Error, Result};

/// Messages of a client.
const AUTHENTICATE_START: u8 = 4;
const AUTHENTICATE_CONTINUE: u8 = 5;
const STATEMENT_EXECUTE: u8 = 12;
const CLOSE: u8 = 3;
/// Messages of a server.
const ERROR: u8 = 1;
const ASKED_TO_CONTINUE: u8 = 3;
const AUTHENTICATED: u8 = 4;
const EXECUTED: u8 = 17;

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// One session. Dropping it hangs up.
pub struct XClient(Box<dyn Stream>);

impl XClient {
    /// Logs in over a unix socket, with the password in clear. The server remembers it for logins over TCP.
    ///
    /// # Errors
    /// Nobody answers, or the login is refused.
    pub fn over_unix(socket: &Path, account: Account) -> Result<XClient> {
        let stream = UnixStream::connect(socket).map_err(Error::io("connect to", socket))?;
        let Account { user, password } = account;
        let proof = format!("\0{user}\0{password}");
        let mut client = XClient(Box::new(stream));
        client.log_in(&[field(1, b"PLAIN"), field(2, proof.as_bytes())].concat(), account)?;
        Ok(client)
    }

    /// Logs in over TCP, where the server remembers the password.
    ///
    /// # Errors
    /// As [`XClient::over_unix`].
    pub fn over_tcp(port: u16, account: Account) -> Result<XClient> {
        let stream = TcpStream::connect(("127.0.0.1", port));
        let stream = stream.map_err(Error::io("connect to", Path::new("127.0.0.1")))?;
        let mut client = XClient(Box::new(stream));
        client.log_in(&field(1, b"SHA256_MEMORY"), account)?;
        Ok(client)
    }

    /// Runs a statement and reads its whole result.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        self.send(STATEMENT_EXECUTE, &field(1, sql.as_bytes()))?;
        self.receive(EXECUTED).map(drop)
    }

    /// Ends the session, and waits until the server has heard it.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn close(mut self) -> Result<()> {
        self.send(CLOSE, &[])?;
        self.0.read_to_end(&mut Vec::new()).map(drop).map_err(failed)
    }

    fn log_in(&mut self, start: &[u8], Account { user, password }: Account) -> Result<()> {
        self.send(AUTHENTICATE_START, start)?;
        let (kind, asked) = self.receive(AUTHENTICATED)?;
        if kind == AUTHENTICATED {
            return Ok(());
        }
        // Its only field: a length of one byte, and as many.
        let nonce = asked.get(2..).unwrap_or_default();
        let once = sha256(password.as_bytes());
        let mixed = sha256(&[&sha256(&once), nonce].concat());
        let proof: String =
            once.iter().zip(mixed).map(|(own, mixed)| format!("{:02X}", own ^ mixed)).collect();
        self.send(AUTHENTICATE_CONTINUE, &field(1, format!("\0{user}\0{proof}").as_bytes()))?;
        self.receive(AUTHENTICATED).map(drop)
    }

    fn send(&mut self, kind: u8, message: &[u8]) -> Result<()> {
        let length = (message.len() as u32 + 1).to_le_bytes();
        self.0.write_all(&[&length[..], &[kind], message].concat()).map_err(failed)
    }

    /// Reads on to a message of this kind, or one that asks for more of the login.
    fn receive(&mut self, wanted: u8) -> Result<(u8, Vec<u8>)> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).map_err(failed)?;
            let [a, b, c, d, kind] = head;
            let mut message = vec![0; u32::from_le_bytes([a, b, c, d]).saturating_sub(1) as usize];
            self.0.read_exact(&mut message).map_err(failed)?;
            match kind {
                ERROR => {
                    return Err(Error::Protocol(String::from_utf8_lossy(&message).into_owned()));
                }
                kind if kind == wanted || kind == ASKED_TO_CONTINUE => return Ok((kind, message)),
                _ => {}
            }
        }
    }
}

/// A field of a message: its number, and bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        field.push(length as u8 | 128);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

fn failed(source: io::Error) -> Error {
    Error::Protocol(format!("X protocol: {source}"))
}
