//! Asks a server for the hash of a statement's digest. Only the server knows it: it hashes the
//! numbers of its tokens, and these differ by version.

use std::fmt::Write;

use waggle_model::{Flavour, ServerVersion, SessionSettings};

use super::driver::Driver;
use super::{ConnectionError, Endpoint};
use crate::options::Options;

/// The first MySQL that has `STATEMENT_DIGEST()`.
const SINCE: [u32; 3] = [8, 0, 4];

/// The default database of the session. The parser refuses a table without a schema where none is
/// chosen, and most of what is not a query in `information_schema`; the name of the database is not
/// in a digest. It is the one that the account of waggle may read.
const DATABASE: &str = "performance_schema";

/// Why this server cannot answer at all; `None` if it can.
pub fn why_no_digests(flavour: Flavour, version: &str) -> Option<&'static str> {
    match flavour {
        Flavour::Mariadb => Some("MariaDB has no STATEMENT_DIGEST()"),
        Flavour::Mysql if ServerVersion::parse(flavour, version).number < SINCE => {
            Some("this server has no STATEMENT_DIGEST(); MySQL 8.0.4 and later have it")
        }
        Flavour::Mysql => None,
    }
}

/// A session for nothing but such questions. It needs an account that can choose the database
/// `performance_schema`, and no other right.
pub struct DigestSession {
    driver: Driver,
    /// What the session has set now, as far as that is known.
    settings: Option<SessionSettings>,
}

impl DigestSession {
    /// Connects and logs in, as [`Connection::open`](super::Connection::open) does. No statement is
    /// sent.
    ///
    /// # Errors
    /// As there; and the account may not use the database `performance_schema`.
    pub fn open(options: &Options) -> Result<DigestSession, ConnectionError> {
        let mut driver = Driver::start(options, &Endpoint::choose(options)?)?;
        driver.choose_database(DATABASE)?;
        Ok(DigestSession { driver, settings: None })
    }

    /// The id of this connection, as `SHOW PROCESSLIST` shows it.
    pub fn connection_id(&self) -> u32 {
        self.driver.connection_id()
    }

    /// Sends one statement whose text holds `marker`, as
    /// [`Connection::say`](super::Connection::say) does.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn say(&mut self, marker: &str) -> Result<(), ConnectionError> {
        let marker: String =
            marker.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.driver.rows(&format!("SELECT '{marker}'")).map(drop)
    }

    /// `max_digest_length` of the server.
    ///
    /// # Errors
    /// The connection is broken, or the server has no such variable.
    pub fn max_digest_length(&mut self) -> Result<u64, ConnectionError> {
        let mut rows = self.driver.rows("SELECT @@max_digest_length")?;
        let value = rows.pop().and_then(|mut row| row.pop()).flatten().unwrap_or_default();
        let value = String::from_utf8_lossy(&value).into_owned();
        value.parse().map_err(|_| ConnectionError::Unexpected {
            what: format!("max_digest_length {value:?}"),
        })
    }

    /// `STATEMENT_DIGEST()` of a text: 64 hexadecimal digits. The session adopts the mode and the
    /// character set under which the text was sent, because they change its tokens.
    ///
    /// # Errors
    /// The server cannot parse the text, or the text is not valid in its character set. What the
    /// server says then quotes parts of the text, so only its number is fit to be shown. Or the
    /// connection is broken.
    pub fn digest(
        &mut self,
        text: &[u8],
        settings: SessionSettings,
    ) -> Result<String, ConnectionError> {
        let charset = settings.charset.as_str();
        if self.settings != Some(settings) {
            self.settings = None;
            let mode = settings.sql_mode;
            let set = format!("SET character_set_client = '{charset}', sql_mode = {mode}");
            self.driver.rows(&set)?;
            self.settings = Some(settings);
        }
        // In hexadecimal digits, which are the same under every mode and in every character set.
        let mut question = format!("SELECT STATEMENT_DIGEST(_{charset} X'");
        for byte in text {
            // Writing to a `String` cannot fail.
            let _ = write!(question, "{byte:02x}");
        }
        question.push_str("')");
        let mut rows = self.driver.rows(&question)?;
        let value = rows.pop().and_then(|mut row| row.pop()).flatten();
        let digest = value.and_then(|bytes| String::from_utf8(bytes).ok());
        digest.ok_or_else(|| ConnectionError::Unexpected {
            what: "STATEMENT_DIGEST() without a value".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_the_function_are_not_asked() {
        for (version, has_it) in [
            ("5.7.22", false),
            ("8.0.3-rc-log", false),
            ("8.0.4-rc-log", true),
            ("8.0.12", true),
            ("8.4.0", true),
            ("9.7.4-debian", true),
        ] {
            assert_eq!(why_no_digests(Flavour::Mysql, version).is_none(), has_it, "{version}");
        }
        let why = why_no_digests(Flavour::Mariadb, "11.4.5-MariaDB").unwrap();
        assert!(why.contains("MariaDB"), "{why}");
    }
}
