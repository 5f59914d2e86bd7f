//! The hash under which a server files a statement, asked from the server itself: it hashes numbers
//! that it gives to its tokens, other ones in each version.

use std::fmt::Write;
use std::path::Path;

use mysql::Conn;
use waggle_model::{Flavour, ServerVersion, SessionSettings};

use super::{ConnectionError, Endpoint, log_in, send};
use crate::options::Options;

/// The first MySQL that has `STATEMENT_DIGEST()`.
const SINCE: [u32; 3] = [8, 0, 4];

/// The default database of the session. The parser refuses a table without a schema where none is
/// chosen, and most of what is not a query in `information_schema`; the name of the database is not
/// in a digest. It is the one that the account of waggle may read.
const DATABASE: &str = "performance_schema";

/// Why a server cannot be asked, whoever asks; `None` where it can.
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
    conn: Conn,
    /// What the session has set now, as far as that is known.
    settings: Option<SessionSettings>,
}

impl DigestSession {
    /// Connects and logs in, as [`Connection::open`](super::Connection::open) does. No statement is
    /// sent.
    ///
    /// # Errors
    /// As there; and the account may not use the database `performance_schema`.
    pub fn open(options: &Options, hint: Option<&Path>) -> Result<DigestSession, ConnectionError> {
        let mut conn = log_in(options, &Endpoint::choose(options, hint)?)?;
        conn.select_db(DATABASE).map_err(ConnectionError::statement)?;
        Ok(DigestSession { conn, settings: None })
    }

    /// The id of this connection, as `SHOW PROCESSLIST` shows it.
    pub fn connection_id(&self) -> u32 {
        self.conn.connection_id()
    }

    /// Sends one statement whose text holds `marker`, as
    /// [`Connection::say`](super::Connection::say) does.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn say(&mut self, marker: &str) -> Result<(), ConnectionError> {
        let marker: String =
            marker.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        send(&mut self.conn, &format!("SELECT '{marker}'")).map(drop)
    }

    /// `STATEMENT_DIGEST()` of a text: 64 hexadecimal digits. The session takes over the mode and the
    /// character set under which the text was sent, which change what its tokens are.
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
            send(
                &mut self.conn,
                &format!("SET character_set_client = '{charset}', sql_mode = {mode}"),
            )?;
            self.settings = Some(settings);
        }
        // In hexadecimal digits, which are the same under every mode and in every character set.
        let mut question = format!("SELECT STATEMENT_DIGEST(_{charset} X'");
        for byte in text {
            // Writing to a `String` cannot fail.
            let _ = write!(question, "{byte:02x}");
        }
        question.push_str("')");
        let mut rows = send(&mut self.conn, &question)?;
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
