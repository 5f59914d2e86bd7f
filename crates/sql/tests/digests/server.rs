//! What a real server says of statements.

use std::fmt::Write;

use waggle_sql::SessionSettings;
use waggle_testkit::client::{StatementHandle, Value};
use waggle_testkit::{Client, Server};

/// What a server makes of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The digest text: bytes, as a server may have taken them over.
    pub(crate) text: Vec<u8>,
    /// The digest.
    pub(crate) hash: Vec<u8>,
    /// The statement failed, perhaps before all of it was parsed.
    pub(crate) failed: bool,
}

/// What comes back from the server.
pub(crate) enum Reply {
    Answer(Answer),
    /// The statement is none for the server.
    Refused(String),
    /// The server ended over it.
    Lost,
}

/// A session in which statements are asked for, never run.
pub(crate) struct Oracle {
    client: Client,
    question: StatementHandle,
}

impl Oracle {
    pub(crate) fn open(server: &Server, settings: SessionSettings) -> Oracle {
        let mut client = session(server, settings);
        let question = "SELECT STATEMENT_DIGEST_TEXT(?), STATEMENT_DIGEST(?)";
        let question = client.prepare(question).unwrap();
        Oracle { client, question }
    }

    /// Asks for the digest of a statement.
    pub(crate) fn ask(&mut self, statement: &[u8]) -> Reply {
        let value = Value::Bytes(statement.to_vec());
        let values = [value.clone(), value];
        let Ok(mut results) = self.client.execute(&self.question, &values, false) else {
            return Reply::Lost;
        };
        let mut result = results.remove(0);
        if let Some((number, message)) = result.error {
            return Reply::Refused(format!("{number} {message}"));
        }
        let mut row = result.rows.remove(0).into_iter();
        let mut next = || row.next().unwrap().unwrap_or_default();
        Reply::Answer(Answer { text: next(), hash: next(), failed: false })
    }
}

/// A session with a default database, without which some statements are not parsed.
pub(crate) fn session(server: &Server, settings: SessionSettings) -> Client {
    let mut client = server.root().unwrap();
    client.run("CREATE DATABASE IF NOT EXISTS digests").unwrap();
    client.run("USE digests").unwrap();
    client.run(set(settings)).unwrap();
    client
}

/// The statement that gives a session these settings; results come unconverted.
fn set(settings: SessionSettings) -> String {
    let modes: Vec<_> = settings.modes.names().collect();
    let charset = settings.charset.name();
    let mut set = format!("SET NAMES {charset}, SESSION sql_mode = '{}'", modes.join(","));
    write!(set, ", SESSION character_set_results = NULL").unwrap();
    set
}
