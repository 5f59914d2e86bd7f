//! The digest of every statement, by the rules of the server that ran it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use waggle_model::{Command, DigestKey, DigestName, Flavour, Server, Statement, Text};
use waggle_sql::{Dialect, Digest, Normaliser};

/// Turns statements into digests. Nothing is allocated for a digest that is known.
pub struct Digests {
    normaliser: Normaliser,
}

impl Digests {
    /// By the rules of one server.
    pub fn of(server: &Server) -> Digests {
        Digests { normaliser: Normaliser::new(dialect_of(server)) }
    }

    /// The key of a statement, and a way to its name for the first time that it is met.
    pub fn digest<'a>(
        &'a mut self,
        statement: &'a Statement<'_>,
    ) -> (DigestKey, impl FnOnce() -> DigestName + 'a) {
        self.digest_of(statement.text, statement.command, statement.identity.database.as_deref())
    }

    /// The digest text of a statement.
    pub fn text_of(&mut self, text: Text<'_>) -> &str {
        self.normalise(text).text
    }

    fn normalise(&mut self, text: Text<'_>) -> Digest<'_> {
        if text.is_truncated() {
            self.normaliser.digest_truncated(text.bytes)
        } else {
            self.normaliser.digest(text.bytes)
        }
    }

    /// The key and the name for a text, a command and a database.
    pub fn digest_of<'a>(
        &'a mut self,
        text: Option<Text<'_>>,
        command: Option<Command>,
        database: Option<&'a [u8]>,
    ) -> (DigestKey, impl FnOnce() -> DigestName + 'a) {
        let digest = text.map(|text| self.normalise(text));
        let hash = match &digest {
            Some(digest) => digest.hash,
            None => hash_of(&command),
        };
        let key = DigestKey { text: hash, schema: hash_of(&database) };
        let name = move || DigestName {
            text: match digest {
                Some(digest) => Arc::from(digest.text),
                None => Arc::from(without_text(command)),
            },
            schema: database.map(|name| Arc::from(String::from_utf8_lossy(name))),
        };
        (key, name)
    }
}

fn without_text(command: Option<Command>) -> String {
    match command {
        Some(command) if command.is_statement() => "(text not captured)".to_owned(),
        Some(command) => format!("({command})"),
        None => "(unknown command)".to_owned(),
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whose rules a server follows.
fn dialect_of(server: &Server) -> Dialect {
    let major: u32 =
        server.version.split('.').next().and_then(|part| part.parse().ok()).unwrap_or(9);
    match (server.flavour, major) {
        (Flavour::Mariadb, ..=10) => Dialect::Mariadb,
        (Flavour::Mariadb, _) => Dialect::Mariadb11,
        (Flavour::Mysql, ..=5) => Dialect::Mysql57,
        (Flavour::Mysql, 8) => Dialect::Mysql80,
        (Flavour::Mysql, _) => Dialect::Mysql9,
    }
}
