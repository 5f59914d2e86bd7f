//! Logging in: no password, mysql_native_password, caching_sha2_password.

use openssl::pkey::PKey;
use openssl::rsa::Padding;
use openssl::sha::{sha1, sha256};

use super::Client;
use super::reply::Reader;
use crate::{Account, Error, Result};

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";

/// Answers of caching_sha2_password within an "extra data" packet.
const FAST_OK: u8 = 3;
const FULL: u8 = 4;
const ASK_KEY: u8 = 2;

/// What proves that we know the password, for a plugin and the server's random bytes; empty
/// without a password and for a plugin that is not known here.
pub(super) fn response(plugin: &str, password: &str, salt: &[u8]) -> Vec<u8> {
    let password = password.as_bytes();
    match plugin {
        _ if password.is_empty() => Vec::new(),
        // SHA1(password) XOR SHA1(salt, SHA1(SHA1(password)))
        NATIVE => {
            let once = sha1(password);
            xor(&once, &sha1(&[salt, &sha1(&once)].concat()))
        }
        // SHA256(password) XOR SHA256(SHA256(SHA256(password)), salt)
        CACHING_SHA2 => {
            let once = sha256(password);
            xor(&once, &sha256(&[&sha256(&once), salt].concat()))
        }
        _ => Vec::new(),
    }
}

impl Client {
    /// Talks until the server admits us or refuses.
    pub(super) fn finish_authentication(&mut self, account: Account) -> Result<()> {
        loop {
            let packet = self.read_packet()?;
            let mut reader = Reader::new(&packet);
            match reader.u8()? {
                0 => return Ok(()),
                0xff => return Err(reader.error()?),
                0xfe => {
                    let plugin = String::from_utf8_lossy(reader.until_nul()?).into_owned();
                    let salt = reader.rest();
                    self.salt = salt.strip_suffix(b"\0").unwrap_or(salt).to_vec();
                    self.plugin = plugin;
                    let answer = response(&self.plugin, account.password, &self.salt);
                    self.write_packet(&answer)?;
                }
                1 => match reader.rest() {
                    [FAST_OK] => {}
                    [FULL] => self.send_password(account)?,
                    other => {
                        let text = format!("{} bytes of unknown login data", other.len());
                        return Err(Error::Protocol(text));
                    }
                },
                other => return Err(Error::Protocol(format!("login packet {other:#x}"))),
            }
        }
    }

    /// The password itself: in clear over TLS and the unix socket, else by the server's RSA key.
    fn send_password(&mut self, account: Account) -> Result<()> {
        let clear = [account.password.as_bytes(), b"\0"].concat();
        if self.wire.stream.is_secure() {
            return self.write_packet(&clear);
        }
        self.write_packet(&[ASK_KEY])?;
        let packet = self.read_packet()?;
        let key = PKey::public_key_from_pem(packet.get(1..).unwrap_or_default())?.rsa()?;
        let mixed = xor(&clear, &self.salt.repeat(clear.len().div_ceil(self.salt.len().max(1))));
        let mut sealed = vec![0; usize::try_from(key.size()).unwrap_or(0)];
        key.public_encrypt(&mixed, &mut sealed, Padding::PKCS1_OAEP)?;
        self.write_packet(&sealed)
    }
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}
