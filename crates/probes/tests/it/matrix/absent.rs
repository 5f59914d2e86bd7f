//! What is not captured, because the server or the kernel lacks the thing itself. Every exception
//! that the matrix makes is in this table.

use waggle_testkit::Version;
use waggle_testkit::client::Transport;

/// An exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// A statement whose connection was killed.
    KilledConnection,
    /// The numbers of a statement that the query cache answers.
    NumbersFromCache,
    /// The number of rows of a statement that calls stored functions.
    RowsOfFunctions,
    /// The text of a statement that could not be prepared.
    RefusedText,
    /// The values of a prepared statement in its text, where no query cache needs them.
    PreparedValues,
    /// The same, of a statement that changes data.
    PreparedValuesOfChanges,
    /// The statements inside routines, triggers and events.
    Nested,
    /// The reset of a connection.
    Reset,
}

impl Absent {
    /// Why it is absent on this server over this transport; `None` if it is there.
    pub(crate) fn reason(self, version: Version, transport: Transport) -> Option<&'static str> {
        match self {
            Self::KilledConnection if !version.is_mariadb() => {
                Some("MySQL closes the socket first and sends nothing")
            }
            Self::NumbersFromCache => Some(
                "the server counts no rows and sets no status: only the first send is recorded",
            ),
            Self::RowsOfFunctions if version.is_mariadb() => {
                Some("MariaDB counts what the functions return as rows that were sent")
            }
            Self::RefusedText if !version.is_mariadb() => {
                Some("MySQL drops the text before it sends the error")
            }
            Self::PreparedValues if version == Version::Mysql57 || version.is_mariadb() => {
                Some("the server keeps the text with ? where no log needs the values")
            }
            Self::PreparedValuesOfChanges if version == Version::Mysql57 => {
                Some("the server keeps the text with ?: the binary log has rows")
            }
            Self::Nested => Some("no reply of its own; `--nested` adds it by another probe"),
            Self::Reset if transport == Transport::Unix => {
                Some("a unix socket knows no reset: it is closed")
            }
            _ => None,
        }
    }
}
