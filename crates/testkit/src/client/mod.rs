//! A client that can send any packet, since tests need what libraries hide.
//!
//! Packets and numbers: MySQL source documentation, "Client/Server Protocol"
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>).

mod auth;
mod connect;
mod reply;
mod statement;
mod stream;
mod value;
mod wire;

use std::net::Shutdown;

pub use connect::{ClientBuilder, Transport};
pub use reply::{Column, ResultSet, Row};
pub use statement::StatementHandle;
pub use value::Value;

use crate::{Account, Error, Result, Server};
use wire::Wire;

/// The first byte of a command packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the protocol's own names and numbers")]
pub enum Command {
    Quit = 1,
    InitDb = 2,
    Query = 3,
    FieldList = 4,
    Statistics = 9,
    ProcessKill = 12,
    Ping = 14,
    ChangeUser = 17,
    BinlogDump = 18,
    RegisterSlave = 21,
    StmtPrepare = 22,
    StmtExecute = 23,
    StmtSendLongData = 24,
    StmtClose = 25,
    StmtReset = 26,
    SetOption = 27,
    StmtFetch = 28,
    ResetConnection = 31,
    StmtBulkExecute = 250,
}

/// One session. Dropping it says COM_QUIT; see [`Client::hang_up`] and [`Client::abort`] for
/// clients that do not.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    connection_id: u32,
    /// What both sides agreed on (`CLIENT_*` flags).
    capabilities: u32,
    /// The server's random bytes of the handshake.
    salt: Vec<u8>,
    /// The server's default authentication plugin.
    plugin: String,
    quit_at_drop: bool,
}

impl Client {
    /// Opens a session without a default database, with multi-statements on.
    pub fn connect(server: &Server, transport: Transport, account: Account) -> Result<Self> {
        Self::builder().connect(server, transport, account)
    }

    /// For a session with a default database or other capabilities.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The server's id of this session (`CONNECTION_ID()`).
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The protocol version of TLS, such as `TLSv1.3`; none without TLS.
    pub fn tls_version(&self) -> Option<&'static str> {
        self.wire.tls_version()
    }

    /// Sends a statement and reads all its results. An error of the server is in the last result.
    pub fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<ResultSet>> {
        self.send(Command::Query, sql.as_ref())?;
        self.read_reply()
    }

    /// As [`Client::query`]; an error of the server is an error here.
    pub fn run(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<ResultSet>> {
        let results = self.query(sql)?;
        match results.iter().find_map(|result| result.error.clone()) {
            Some((code, message)) => Err(Error::Refused { code, message }),
            None => Ok(results),
        }
    }

    /// Sends a statement and counts the rows of all its results without keeping them.
    pub fn query_discard(&mut self, sql: impl AsRef<[u8]>) -> Result<u64> {
        self.send(Command::Query, sql.as_ref())?;
        let mut rows = 0;
        let mut count = |_: &[u8]| rows += 1;
        while self.read_result(&mut count)?.refused()?.more {}
        Ok(rows)
    }

    /// Sends a `LOAD DATA LOCAL` statement; the server gets `data` as the content of the file.
    pub fn load_local(&mut self, sql: impl AsRef<[u8]>, data: &[u8]) -> Result<Vec<ResultSet>> {
        self.send(Command::Query, sql.as_ref())?;
        self.wire.local_data = data.to_vec();
        let results = self.read_reply();
        self.wire.local_data.clear();
        results
    }

    /// Sends a command packet and reads nothing.
    pub fn send(&mut self, command: Command, payload: &[u8]) -> Result<()> {
        self.wire.begin_command();
        self.wire.write_packet(&[&[command as u8], payload].concat())
    }

    /// Reads one packet without its header, whatever it means.
    pub fn read_packet(&mut self) -> Result<Vec<u8>> {
        self.wire.read_packet()
    }

    /// Sends any bytes as the content of a packet, which continues the sequence of the last one.
    pub fn write_packet(&mut self, payload: &[u8]) -> Result<()> {
        self.wire.write_packet(payload)
    }

    /// Changes the default database (COM_INIT_DB).
    pub fn init_db(&mut self, database: &str) -> Result<ResultSet> {
        self.simple(Command::InitDb, database.as_bytes())
    }

    /// Asks whether the server is there (COM_PING).
    pub fn ping(&mut self) -> Result<ResultSet> {
        self.simple(Command::Ping, &[])
    }

    /// Resets the session's state (COM_RESET_CONNECTION).
    pub fn reset_connection(&mut self) -> Result<ResultSet> {
        self.simple(Command::ResetConnection, &[])
    }

    /// Switches multi-statements on or off (COM_SET_OPTION).
    pub fn set_option_multi_statements(&mut self, on: bool) -> Result<ResultSet> {
        // MYSQL_OPTION_MULTI_STATEMENTS_ON is 0, _OFF is 1.
        self.simple(Command::SetOption, &u16::from(!on).to_le_bytes())
    }

    /// The server's line of statistics (COM_STATISTICS).
    pub fn statistics(&mut self) -> Result<String> {
        self.send(Command::Statistics, &[])?;
        Ok(String::from_utf8_lossy(&self.read_packet()?).into_owned())
    }

    /// Statements of all sessions so far, by COM_STATISTICS, which is not counted itself.
    pub fn questions(&mut self) -> Result<u64> {
        let line = self.statistics()?;
        questions_of(&line).ok_or_else(|| Error::Protocol(format!("no questions in: {line}")))
    }

    /// Becomes another user in the same session (COM_CHANGE_USER).
    pub fn change_user(&mut self, account: Account, database: &str) -> Result<()> {
        let response = auth::response(&self.plugin, account.password, &self.salt);
        let mut payload = [account.user.as_bytes(), b"\0"].concat();
        payload.push(u8::try_from(response.len()).unwrap_or(0));
        payload.extend(&response);
        payload.extend([database.as_bytes(), b"\0"].concat());
        payload.extend(connect::UTF8MB4.to_le_bytes());
        payload.extend([self.plugin.as_bytes(), b"\0"].concat());
        self.send(Command::ChangeUser, &payload)?;
        self.finish_authentication(account)
    }

    /// Says COM_QUIT and waits until the server has closed the session.
    pub fn quit(mut self) -> Result<()> {
        self.quit_at_drop = false;
        self.send(Command::Quit, &[])?;
        self.wire.read_to_close();
        Ok(())
    }

    /// Closes the connection without COM_QUIT, as a client that ends does.
    pub fn hang_up(mut self) {
        self.quit_at_drop = false;
        self.wire.shutdown(Shutdown::Both);
    }

    /// Resets a TCP connection (RST, by `SO_LINGER` 0; socket(7)), as a crashed host does.
    /// A unix socket has no such thing: it is closed, and unread data makes that a reset.
    pub fn abort(mut self) -> Result<()> {
        self.quit_at_drop = false;
        self.wire.reset_at_close()
    }

    /// A command that is answered by one OK, EOF or ERR packet.
    fn simple(&mut self, command: Command, payload: &[u8]) -> Result<ResultSet> {
        self.send(command, payload)?;
        self.read_result(&mut |_| ())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.quit_at_drop {
            // The server may have closed the session already.
            let _ = self.send(Command::Quit, &[]);
        }
    }
}

/// `Uptime: 5  Threads: 2  Questions: 12  …`
fn questions_of(line: &str) -> Option<u64> {
    let rest = line.split_once("Questions:")?.1;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_from_the_line_of_every_family() {
        let mysql = "Uptime: 3  Threads: 2  Questions: 42  Slow queries: 0  Opens: 120";
        assert_eq!(questions_of(mysql), Some(42));
        assert_eq!(questions_of("Uptime: 3"), None);
    }
}
