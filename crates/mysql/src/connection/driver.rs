//! The driver on a thread of its own. A server that answers without end, or with something that the
//! driver does not bear, costs its connection and nothing else.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use super::{ConnectionError, Endpoint, Row, log_in};
use crate::options::Options;

/// The name of the threads. If one panics, its connection says so: the message of the panic is for nobody.
pub const DRIVER_THREAD: &str = "server driver";

/// How long a login may take, and a whole answer: also one of which a part comes now and then.
const LOGIN_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
const ANSWER_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 120 });
/// How long the server may take to hear that we leave.
const QUIT_MAX: Duration = Duration::from_secs(1);
/// Bytes of an answer. The largest that we ask for, every digest with its text, has a tenth.
const ANSWER_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// What a row and a value need beside their bytes.
const ROW_BYTES: usize = size_of::<Row>();
const VALUE_BYTES: usize = size_of::<Option<Vec<u8>>>();

enum Ask {
    Rows(String),
    Database(String),
}

type Answer = Result<Vec<Row>, ConnectionError>;

/// A connection, as the rest of this room uses it.
pub(super) enum Driver {
    /// On the thread that asks, for a server that we started ourselves.
    Here(Box<Conn>),
    Apart(Apart),
}

pub(super) struct Apart {
    asks: Option<SyncSender<Ask>>,
    answers: Receiver<Answer>,
    connection_id: u32,
}

impl Driver {
    /// Connects and logs in, without any statement.
    pub(super) fn start(options: &Options, endpoint: &Endpoint) -> Result<Driver, ConnectionError> {
        let (asks, asked) = sync_channel(0);
        let (answer, answers) = sync_channel(1);
        let (greet, greeted) = sync_channel(1);
        let longest = options.connect_timeout.map_or(LOGIN_MAX, |most| most.min(LOGIN_MAX));
        let (options, endpoint) = (options.clone(), endpoint.clone());
        let serve = move || match log_in(&options, &endpoint) {
            Ok(conn) => {
                // Whoever asked may be gone.
                let _ = greet.send(Ok(conn.connection_id()));
                serve(conn, &asked, &answer);
            }
            Err(error) => drop(greet.send(Err(error))),
        };
        let named = thread::Builder::new().name(DRIVER_THREAD.to_owned());
        named.spawn(serve).map_err(|error| ConnectionError::Broken {
            error: Box::new(mysql::Error::IoError(error)),
        })?;
        let connection_id = greeted.recv_timeout(longest).map_err(lost)??;
        Ok(Driver::Apart(Apart { asks: Some(asks), answers, connection_id }))
    }

    /// The same on the thread that asks.
    pub(super) fn start_here(
        options: &Options,
        endpoint: &Endpoint,
    ) -> Result<Driver, ConnectionError> {
        log_in(options, endpoint).map(|conn| Driver::Here(Box::new(conn)))
    }

    pub(super) fn connection_id(&self) -> u32 {
        match self {
            Driver::Here(conn) => conn.connection_id(),
            Driver::Apart(apart) => apart.connection_id,
        }
    }

    /// Sends one statement and returns all rows of its result.
    pub(super) fn rows(&mut self, statement: &str) -> Answer {
        match self {
            Driver::Here(conn) => rows(conn, statement),
            Driver::Apart(apart) => apart.ask(Ask::Rows(statement.to_owned())),
        }
    }

    /// Chooses the default database.
    pub(super) fn choose_database(&mut self, name: &str) -> Result<(), ConnectionError> {
        match self {
            Driver::Here(conn) => conn.select_db(name).map_err(ConnectionError::statement),
            Driver::Apart(apart) => apart.ask(Ask::Database(name.to_owned())).map(drop),
        }
    }
}

impl Apart {
    fn ask(&mut self, ask: Ask) -> Answer {
        let gone = || lost(RecvTimeoutError::Disconnected);
        self.asks.as_ref().ok_or_else(gone)?.send(ask).map_err(|_| gone())?;
        let answer = self.answers.recv_timeout(ANSWER_MAX).map_err(lost).flatten();
        if matches!(answer, Err(ConnectionError::TooSlow | ConnectionError::TooMuch { .. })) {
            self.asks = None;
        }
        answer
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if self.asks.take().is_some() {
            // The thread tells the server that we leave, and ends.
            let _ = self.answers.recv_timeout(QUIT_MAX);
        }
    }
}

fn lost(error: RecvTimeoutError) -> ConnectionError {
    match error {
        RecvTimeoutError::Timeout => ConnectionError::TooSlow,
        RecvTimeoutError::Disconnected => ConnectionError::NotBorne,
    }
}

fn serve(mut conn: Conn, asked: &Receiver<Ask>, answer: &SyncSender<Answer>) {
    for ask in asked {
        let got = match ask {
            Ask::Rows(statement) => rows(&mut conn, &statement),
            Ask::Database(name) => {
                let chosen = conn.select_db(&name);
                chosen.map(|()| Vec::new()).map_err(ConnectionError::statement)
            }
        };
        // What is left of an answer would be taken for that of the next statement.
        let is_whole = !matches!(got, Err(ConnectionError::TooMuch { .. }));
        if answer.send(got).is_err() || !is_whole {
            return;
        }
    }
}

fn rows(conn: &mut Conn, statement: &str) -> Answer {
    let bytes = |value| match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    };
    let (mut rows, mut size) = (Vec::new(), 0);
    let mut result = conn.query_iter(statement).map_err(ConnectionError::statement)?;
    for row in result.by_ref() {
        let row = row.map_err(ConnectionError::statement)?;
        let row: Row = row.unwrap().into_iter().map(bytes).collect();
        let values = row.iter().flatten().map(Vec::len).sum::<usize>();
        size += ROW_BYTES + row.len() * VALUE_BYTES + values;
        if size > ANSWER_BYTES_MAX {
            // Dropping it would read the rest, which may have no end.
            std::mem::forget(result);
            return Err(ConnectionError::TooMuch { most: ANSWER_BYTES_MAX >> 20 });
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
