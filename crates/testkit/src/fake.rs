//! The server's half of the protocol, for servers that mean harm.
//!
//! Source: "Client/Server Protocol" of the MySQL source documentation.

use std::io::{self, Read, Write};

use openssl::pkey::Private;
use openssl::rsa::{Padding, Rsa};

use crate::Result;

/// Offers `mysql_native_password`.
pub const NATIVE: &str = "mysql_native_password";
/// Offers `caching_sha2_password`.
pub const CACHING_SHA2: &str = "caching_sha2_password";
/// The bytes with which a password is mixed.
const NONCE: &[u8] = b"01234567890123456789";

/// `Protocol::HandshakeV10` of a server without TLS.
pub fn greeting(plugin: &str) -> Vec<u8> {
    let mut packet = vec![10];
    packet.extend(b"8.0.12\0");
    packet.extend(7_u32.to_le_bytes());
    packet.extend(&NONCE[..8]);
    // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION; utf8mb4; autocommit; CLIENT_PLUGIN_AUTH; length of the nonce.
    packet.extend([0, 0x00, 0x82, 45, 2, 0, 0x08, 0x00, 21]);
    packet.extend([0; 10]);
    packet.extend(&NONCE[8..]);
    packet.push(0);
    packet.extend(plugin.as_bytes());
    packet.push(0);
    packet
}

/// A client that has connected to a server of ours.
#[derive(Debug)]
pub struct Peer<S> {
    stream: S,
    /// The number of the next packet.
    number: u8,
}

impl<S: Read + Write> Peer<S> {
    /// Nothing was said yet.
    pub fn new(stream: S) -> Peer<S> {
        Peer { stream, number: 0 }
    }

    /// Sends a packet of less than 16 MiB.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let length = (packet.len() as u32).to_le_bytes();
        self.stream.write_all(&[&length[..3], &[self.number], packet].concat())?;
        self.number = self.number.wrapping_add(1);
        Ok(())
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// What the client sends.
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.number = head[3].wrapping_add(1);
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut packet = vec![0; length as usize];
        self.stream.read_exact(&mut packet)?;
        Ok(packet)
    }

    /// Greets, and lets anybody in.
    pub fn admit(&mut self) -> io::Result<()> {
        self.send(&greeting(NATIVE))?;
        self.receive()?;
        self.send_ok()
    }

    /// Sends that all is well.
    pub fn send_ok(&mut self) -> io::Result<()> {
        self.send(&[0, 0, 0, 2, 0, 0, 0])
    }

    /// The text of the next statement; none where the client asks for something else.
    pub fn statement(&mut self) -> io::Result<String> {
        let packet = self.receive()?;
        let text = packet.strip_prefix(&[3]).unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Begins a result with `columns` columns (at most 250): their number, `Protocol::ColumnDefinition41` of each, and the
    /// end of those.
    pub fn begin_rows(&mut self, columns: u8) -> io::Result<()> {
        self.send(&[columns])?;
        let mut column = Vec::new();
        for text in ["def", "", "", "", "c", ""] {
            column.push(text.len() as u8);
            column.extend(text.as_bytes());
        }
        column.extend([12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]);
        for _ in 0..columns {
            self.send(&column)?;
        }
        self.send_end()
    }

    /// Sends a row of values of at most 250 bytes; `None` is NULL.
    pub fn send_row(&mut self, values: &[Option<&[u8]>]) -> io::Result<()> {
        let mut row = Vec::new();
        for value in values {
            match value {
                Some(value) => {
                    row.push(value.len() as u8);
                    row.extend(*value);
                }
                None => row.push(0xfb),
            }
        }
        self.send(&row)
    }

    /// Ends the definitions of a result, or its rows.
    pub fn send_end(&mut self) -> io::Result<()> {
        self.send(&[0xfe, 0, 0, 2, 0])
    }

    /// Sends a whole result of one row.
    pub fn answer(&mut self, values: &[Option<&[u8]>]) -> io::Result<()> {
        self.begin_rows(values.len() as u8)?;
        self.send_row(values)?;
        self.send_end()
    }
}

/// A key that is offered in the place of the server's.
#[derive(Debug)]
pub struct Key(Rsa<Private>);

impl Key {
    /// A new one.
    ///
    /// # Errors
    /// OpenSSL refuses.
    pub fn new() -> Result<Key> {
        Ok(Key(Rsa::generate(2048)?))
    }

    /// The packet that offers it.
    ///
    /// # Errors
    /// OpenSSL refuses.
    pub fn offer(&self) -> Result<Vec<u8>> {
        Ok([&[1][..], &self.0.public_key_to_pem()?].concat())
    }

    /// The password in what a client has sealed with a key, if it was this one.
    pub fn open(&self, sealed: &[u8], nonce: &[u8]) -> Option<Vec<u8>> {
        let mut clear = vec![0; self.0.size() as usize];
        let length = self.0.private_decrypt(sealed, &mut clear, Padding::PKCS1_OAEP).ok()?;
        let mixed = clear.get(..length)?.iter().zip(nonce.iter().cycle());
        Some(mixed.map(|(byte, mix)| byte ^ mix).collect())
    }
}
