//! What the reader does with each statement: the same work that `waggle watch` does, digest and
//! totals, so that the price of an arm is that of the whole.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use waggle_model::{
    Command, DigestKey, DigestName, DigestsMax, Flavour, Identity, Interval, Origin, Server,
    Statement, Text,
};
use waggle_sql::{Dialect, Normaliser};

/// As in `waggle watch`.
const DIGESTS_MAX: DigestsMax = DigestsMax(5_000);

/// The account of one arm.
pub(crate) struct Account {
    normaliser: Normaliser,
    interval: Interval,
    nobody: Identity,
}

impl Account {
    /// An empty account by the rules of a server.
    pub(crate) fn of(server: &Server) -> Account {
        let major = server.version.split('.').next().and_then(|part| part.parse().ok());
        let dialect = match (server.flavour, major.unwrap_or(9)) {
            (Flavour::Mariadb, _) => Dialect::Mariadb,
            (Flavour::Mysql, ..=5) => Dialect::Mysql57,
            (Flavour::Mysql, 8) => Dialect::Mysql80,
            (Flavour::Mysql, _) => Dialect::Mysql9,
        };
        Account {
            normaliser: Normaliser::new(dialect),
            interval: Interval::begin(0),
            nobody: Identity::default(),
        }
    }

    /// Statements counted since the account was opened.
    pub(crate) fn statements(&self) -> u64 {
        self.interval.statements
    }

    /// Counts a statement, unless the server does not call it one.
    pub(crate) fn count(&mut self, statement: &Statement<'_>) {
        if statement.command.is_some_and(|command| !command.is_statement()) {
            return;
        }
        let digest = statement.text.map(|text| self.normaliser.digest(text.bytes));
        let schema = statement.identity.database.as_deref();
        let key = DigestKey {
            text: digest.as_ref().map_or(0, |digest| digest.hash),
            schema: hash_of(&schema),
        };
        let name = || DigestName {
            text: Arc::from(digest.map_or("", |digest| digest.text)),
            schema: schema.map(|name| Arc::from(String::from_utf8_lossy(name))),
        };
        self.interval.count(statement, key, DIGESTS_MAX, name);
    }

    /// Counts what the reference knows of a statement.
    pub(crate) fn count_text(&mut self, command: Command, text: &[u8], end: u64, latency: u64) {
        let nobody = std::mem::take(&mut self.nobody);
        self.count(&Statement {
            pid: 0,
            thd: 0,
            connection_id: None,
            command: Some(command),
            origin: Origin::Client,
            end_ns: end,
            latency_ns: Some(latency),
            noted_start_us: None,
            first_byte_ns: None,
            text: (!text.is_empty()).then_some(Text { bytes: text, length: text.len() as u64 }),
            identity: &nobody,
            rows_sent: None,
            rows_examined: None,
            rows_affected: None,
            lock_ns: None,
            error: None,
            server_status: None,
            bytes_sent: None,
            client_gone: false,
        });
        self.nobody = nobody;
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
