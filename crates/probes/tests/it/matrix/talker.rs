//! A client that notes what the server must have run for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use waggle_model::Command;
use waggle_testkit::client::{ResultSet, StatementHandle, Transport, Value};
use waggle_testkit::{Account, Client, Error, Server};

use super::expected::{Expected, Who};

/// What each connection must show, in order.
pub(crate) type Log = Rc<RefCell<BTreeMap<u64, Vec<Expected>>>>;

/// How a session is opened.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) transport: Transport,
    pub(crate) account: Account,
    pub(crate) database: Option<&'static str>,
    pub(crate) host: String,
    pub(crate) deprecate_eof: bool,
}

/// One session and its notes.
pub(crate) struct Talker {
    pub(crate) client: Client,
    pub(crate) who: Who,
    log: Log,
}

impl Talker {
    pub(crate) fn open(server: &Server, login: &Login, log: &Log) -> Result<Self, Error> {
        let mut builder = Client::builder().deprecate_eof(login.deprecate_eof);
        if let Some(database) = login.database {
            builder = builder.database(database);
        }
        let who = Who {
            user: login.account.user.to_owned(),
            host: login.host.clone(),
            database: login.database.map(str::to_owned),
        };
        let connected = Expected::ok(Command::CONNECT, None, &who);
        let client = builder.connect(server, login.transport, login.account)?;
        let talker = Self { client, who, log: log.clone() };
        talker.expect(connected);
        Ok(talker)
    }

    pub(crate) fn id(&self) -> u64 {
        u64::from(self.client.connection_id())
    }

    /// Notes one more that must be captured.
    pub(crate) fn expect(&self, expected: Expected) {
        self.log.borrow_mut().entry(self.id()).or_default().push(expected);
    }

    /// Changes the last note, where the client cannot know by itself.
    pub(crate) fn last(&self, change: impl FnOnce(&mut Expected)) {
        if let Some(last) = self.log.borrow_mut().get_mut(&self.id()).and_then(|log| log.last_mut())
        {
            change(last);
        }
    }

    /// A note for a command that is about to be sent.
    pub(crate) fn note(&self, command: Command, text: Option<&[u8]>) -> Expected {
        Expected::ok(command, text, &self.who)
    }

    /// Sends a statement with one result.
    pub(crate) fn query(&mut self, sql: impl AsRef<[u8]>) -> ResultSet {
        let note = self.note(Command::QUERY, Some(sql.as_ref()));
        let results = self.client.query(sql).unwrap();
        assert_eq!(results.len(), 1, "{results:?}");
        self.expect(note.answered(&results[0]));
        results.into_iter().next().unwrap()
    }

    /// As [`Talker::query`], for a statement that must succeed.
    pub(crate) fn run(&mut self, sql: &str) -> ResultSet {
        self.query(sql).refused().unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Sends several statements in one packet, of which each has one result.
    pub(crate) fn packet(&mut self, texts: &[&str]) -> Vec<ResultSet> {
        let notes = texts.iter().map(|text| self.note(Command::QUERY, Some(text.as_bytes())));
        let notes: Vec<Expected> = notes.collect();
        let results = self.client.query(texts.join(";")).unwrap();
        for (note, result) in notes.into_iter().zip(&results) {
            self.expect(note.answered(result));
        }
        results
    }

    /// Sends a CALL: its own end is its last result.
    pub(crate) fn call(&mut self, sql: &str) -> Vec<ResultSet> {
        let note = self.note(Command::QUERY, Some(sql.as_bytes()));
        let results = self.client.query(sql).unwrap();
        self.expect(note.answered(results.last().unwrap()));
        results
    }

    /// Prepares a statement: not a statement itself, and answered without a status.
    pub(crate) fn prepare(&mut self, sql: &str) -> StatementHandle {
        self.client.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs a prepared statement, which the server shows as `text`.
    pub(crate) fn execute(
        &mut self,
        statement: &StatementHandle,
        values: &[Value],
        text: &str,
    ) -> Vec<ResultSet> {
        let note = self.note(Command::EXECUTE, Some(text.as_bytes()));
        let results = self.client.execute(statement, values, false).unwrap();
        self.expect(note.answered(results.last().unwrap()));
        results
    }

    /// Sends a command without text that is answered by one packet.
    pub(crate) fn command(
        &mut self,
        command: Command,
        send: impl FnOnce(&mut Client) -> Result<ResultSet, Error>,
    ) -> ResultSet {
        let note = self.note(command, None);
        let result = send(&mut self.client).unwrap();
        self.expect(note.answered(&result));
        result
    }

    /// Ends the session politely.
    pub(crate) fn quit(self) {
        self.client.quit().unwrap();
    }
}
