//! What a real server says of statements.

use std::fmt::Write;

use waggle_sql::SessionSettings;
use waggle_testkit::Account;
use waggle_testkit::Client;
use waggle_testkit::Server;
use waggle_testkit::Transport;
use waggle_testkit::client::StatementHandle;
use waggle_testkit::client::Value;

/// What a server makes of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The digest text: bytes, as a server may have taken them over.
    pub(crate) text: Vec<u8>,
    /// The digest.
    pub(crate) hash: Vec<u8>,
}

/// A session in which statements are asked for, never run.
pub(crate) struct Oracle {
    client: Client,
    question: StatementHandle,
}

impl Oracle {
    pub(crate) fn open(server: &Server, settings: SessionSettings) -> Oracle {
        let mut client = Client::connect(server, Transport::Unix, Account::ROOT).unwrap();
        // Some statements are not parsed without a default database.
        client.run("CREATE DATABASE IF NOT EXISTS digests").unwrap();
        client.run("USE digests").unwrap();
        client.run(set(settings)).unwrap();
        let question = "SELECT STATEMENT_DIGEST_TEXT(?), STATEMENT_DIGEST(?)";
        let question = client.prepare(question).unwrap();
        Oracle { client, question }
    }

    /// The digest, or the server's error number and message.
    pub(crate) fn ask(&mut self, statement: &[u8]) -> Result<Answer, (u16, String)> {
        let value = Value::Bytes(statement.to_vec());
        let values = [value.clone(), value];
        let asked = self.client.execute(&self.question, &values, false);
        let lost = |error| panic!("{error}: {}", String::from_utf8_lossy(statement));
        let mut results = asked.unwrap_or_else(lost);
        let mut result = results.remove(0);
        if let Some(error) = result.error {
            return Err(error);
        }
        let mut row = result.rows.remove(0).into_iter();
        let mut next = || row.next().unwrap().unwrap_or_default();
        Ok(Answer { text: next(), hash: next() })
    }
}

/// The statement that gives a session these settings; results come unconverted.
pub(crate) fn set(settings: SessionSettings) -> String {
    let modes: Vec<_> = settings.modes.names().collect();
    let charset = settings.charset.name();
    let mut set = format!("SET NAMES {charset}, SESSION sql_mode = '{}'", modes.join(","));
    write!(set, ", SESSION character_set_results = NULL").unwrap();
    set
}
