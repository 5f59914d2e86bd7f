//! The connection of a process that is gone.
//!
//! A journal names the connection that made its changes. Every connection that begins one also takes a lock of
//! the server (`GET_LOCK()`), named after the first line of that journal, and has it as long as it exists. So it
//! is the server, and not a file, that says whose connection may be ended.

use std::path::Path;
use std::time::Duration;

use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::hold::HoldError;
use crate::journal::Header;

/// The name of that lock. It has at most 64 bytes, as the servers want, and no quote.
fn lock_of(header: &Header) -> String {
    format!("waggle-{}-{}-{}", header.connection, header.pid, header.at.as_nanosecond())
}

/// Takes the lock for a journal that this connection begins. Without one, which some clusters refuse, nobody ends
/// the connection for us.
///
/// # Errors
/// The connection is broken.
pub(crate) fn mark(connection: &mut Connection, header: &Header) -> Result<(), ConnectionError> {
    let taken = connection.rows(&format!("SELECT GET_LOCK('{}', 0) AS {MARK}", lock_of(header)));
    match taken {
        Err(error) if error.number().is_none() => Err(error),
        _ => Ok(()),
    }
}

/// Whether the connection that a journal names has its lock.
fn is_ours(connection: &mut Connection, header: &Header) -> Result<bool, ConnectionError> {
    let rows = connection.rows(&format!("SELECT IS_USED_LOCK('{}') AS {MARK}", lock_of(header)))?;
    let holder = rows.first().and_then(|row| text(row, 0).parse().ok());
    Ok(holder == Some(header.connection))
}

/// Waits until the server has ended the connection of a journal whose process is gone: its last statement may
/// still run, and would be made after it was undone. A server that nobody schedules can take long.
pub(crate) fn wait_for_end(
    connection: &mut Connection,
    header: &Header,
    journal: &Path,
) -> Result<(), HoldError> {
    const LOOKS: u32 = 3_000;
    const LOOKS_BEFORE_KILL: u32 = 50;
    /// One that ends gives its lock back before it is gone.
    const LOOKS_AT_OTHERS: u32 = 300;
    const BETWEEN: Duration = Duration::from_millis(10);
    let other = header.connection;
    let (mut is_ours_then, mut was_killed) = (false, false);
    for look in 0..LOOKS {
        if !is_there(connection, other)? {
            return Ok(());
        }
        if look == LOOKS_BEFORE_KILL {
            is_ours_then = is_ours(connection, header)?;
            was_killed = is_ours_then && kill(connection, other)?;
        }
        if look == LOOKS_AT_OTHERS && !is_ours_then {
            return Err(HoldError::NotOurs { path: journal.to_owned(), connection: other });
        }
        std::thread::sleep(BETWEEN);
    }
    Err(HoldError::StillRuns { connection: other, was_killed })
}

/// Whether a connection exists. An account without PROCESS sees other accounts' connections in only
/// one of the two tables.
fn is_there(connection: &mut Connection, other: u64) -> Result<bool, ConnectionError> {
    let mut rows = connection.rows(&format!(
        "SELECT ID AS {MARK} FROM information_schema.PROCESSLIST WHERE ID = {other}"
    ))?;
    let threads = connection.rows(&format!(
        "SELECT PROCESSLIST_ID AS {MARK} FROM performance_schema.threads WHERE PROCESSLIST_ID = {other}"
    ));
    if let Reading::Value(threads) = absent_or(connection, "the threads", threads)? {
        rows.extend(threads);
    }
    Ok(!rows.is_empty())
}

/// `ER_NO_SUCH_THREAD`: it ended meanwhile. `ER_KILL_DENIED_ERROR`: waggle waits for it anyway.
const NOT_KILLED: [u16; 2] = [1094, 1095];

/// Whether the server took it.
fn kill(connection: &mut Connection, other: u64) -> Result<bool, ConnectionError> {
    match connection.rows(&format!("KILL {other}")) {
        Ok(_) => Ok(true),
        Err(error) if error.number().is_some_and(|it| NOT_KILLED.contains(&it)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What has to come before the undo. To kill it once more changes nothing.
pub(crate) fn in_words(connection: u64, was_killed: bool) -> String {
    match was_killed {
        true => "was killed and has not ended yet; wait until it has".to_owned(),
        false => format!("still runs on the server; end it with KILL {connection}"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::server_start::ServerStart;

    #[test]
    fn a_lock_is_named_by_all_that_tells_a_journal_from_others_and_not_too_long() {
        let header = Header {
            start: ServerStart { server: "a".into(), began_s: 1, process: None },
            command: "x".into(),
            account: "y".into(),
            user: 0,
            pid: u32::MAX,
            connection: u64::MAX,
            at: Timestamp::MAX,
        };
        let name = lock_of(&header);
        assert!(name.len() <= 64, "{name}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        assert!(name.chars().all(is_plain), "{name}");
        assert!(lock_of(&Header { at: Timestamp::MIN, ..header }).chars().all(is_plain));
    }

    #[test]
    fn who_was_killed_already_is_not_to_be_killed_again() {
        let said = |was_killed| HoldError::StillRuns { connection: 7, was_killed }.to_string();
        assert!(said(false).contains("KILL 7"), "{}", said(false));
        assert!(
            !said(true).contains("KILL") && said(true).contains("was killed"),
            "{}",
            said(true)
        );
    }
}
