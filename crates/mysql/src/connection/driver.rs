//! The driver in a process of its own. A server that answers without end, or with something that the driver does not
//! bear, costs its connection and nothing else.

use std::time::Duration;

use mysql::Conn;
use serde_bytes::ByteBuf;

use super::frame::{Ask, Said};
use super::peer::Peer;
use super::served::each_row;
use super::{ConnectionError, Endpoint, Row, log_in};
use crate::options::Options;

/// How long a login may take, and a whole answer: also one of which a part comes now and then.
const LOGIN_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
const ANSWER_MAX: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 120 });
/// Bytes of an answer. The largest that we ask for, every digest with its text, has a tenth.
const ANSWER_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// What a row and a value need beside their bytes.
const ROW_BYTES: usize = size_of::<Row>();
const VALUE_BYTES: usize = size_of::<Option<Vec<u8>>>();

/// A connection, as the rest of this room uses it.
pub(super) enum Driver {
    /// On the thread that asks, for a server that we started ourselves.
    Here(Box<Conn>),
    Apart(Apart),
}

pub(super) struct Apart {
    /// `None` after an answer that was given up: what is left of it would be taken for that of the next statement.
    peer: Option<Peer>,
    connection_id: u32,
}

impl Driver {
    /// Connects and logs in, without any statement.
    pub(super) fn start(options: &Options, endpoint: &Endpoint) -> Result<Driver, ConnectionError> {
        let longest = options.connect_timeout.map_or(LOGIN_MAX, |most| most.min(LOGIN_MAX));
        let mut peer = Peer::start(options, endpoint, longest)?;
        match peer.hear()? {
            Said::LoggedIn(connection_id) => {
                Ok(Driver::Apart(Apart { peer: Some(peer), connection_id }))
            }
            Said::Failed(error) => Err(error),
            Said::Row(_) | Said::Done => Err(ConnectionError::NotBorne),
        }
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
    pub(super) fn rows(&mut self, statement: &str) -> Result<Vec<Row>, ConnectionError> {
        match self {
            Driver::Here(conn) => {
                let mut gathered = Gathered::default();
                each_row(conn, statement, |row| gathered.add(row))?;
                Ok(gathered.rows)
            }
            Driver::Apart(apart) => apart.ask(&Ask::Rows(statement.to_owned())),
        }
    }

    /// Chooses the default database.
    pub(super) fn choose_database(&mut self, name: &str) -> Result<(), ConnectionError> {
        match self {
            Driver::Here(conn) => conn.select_db(name).map_err(ConnectionError::statement),
            Driver::Apart(apart) => apart.ask(&Ask::Database(name.to_owned())).map(drop),
        }
    }
}

impl Apart {
    fn ask(&mut self, ask: &Ask) -> Result<Vec<Row>, ConnectionError> {
        let mut peer = self.peer.take().ok_or(ConnectionError::NotBorne)?;
        peer.say(ask, ANSWER_MAX)?;
        let mut gathered = Gathered::default();
        let answer = loop {
            match peer.hear()? {
                Said::Row(row) => {
                    gathered
                        .add(row.into_iter().map(|value| value.map(ByteBuf::into_vec)).collect())?;
                }
                Said::Done => break Ok(gathered.rows),
                Said::Failed(ConnectionError::NotBorne) | Said::LoggedIn(_) => {
                    return Err(ConnectionError::NotBorne);
                }
                Said::Failed(error) => break Err(error),
            }
        };
        self.peer = Some(peer);
        answer
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.take_leave();
        }
    }
}

/// The rows of an answer so far.
#[derive(Default)]
struct Gathered {
    rows: Vec<Row>,
    bytes: usize,
}

impl Gathered {
    fn add(&mut self, row: Row) -> Result<(), ConnectionError> {
        let values = row.iter().flatten().map(Vec::len).sum::<usize>();
        self.bytes += ROW_BYTES + row.capacity() * VALUE_BYTES + values;
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(ConnectionError::TooMuch { most: ANSWER_BYTES_MAX >> 20 });
        }
        self.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
