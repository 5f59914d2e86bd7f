//! The redo log of a server that has just been started.
//!
//! Since MySQL 8.0.30 the log has many files. A start keeps the one in use and creates the others again, and writing into
//! a new file costs the file system more than writing over an old one. With 8 sessions of `oltp_write_only` a server did
//! 5,500 transactions per second until it had written the log through once, and 7,400 from then on (MySQL 9.7, a log of
//! 64 MiB on ext4). A server that several arms share gets there sooner than one with a single arm.

use waggle_mysql::{Connection, ConnectionError};

/// How often the log is written through: after one and a half times no file is new.
const ROUNDS: u64 = 2;
/// Bytes that one statement writes. What it may have is limited (`max_allowed_packet`).
const BYTES: u64 = 1_000_000;

/// Writes the redo log through, so that none of its files is new. It takes up to 40 MB of the disk meanwhile, and nothing
/// stays. A server that keeps all files of its log is left alone.
///
/// # Errors
/// The connection is broken, or the server refuses something.
pub fn write_through(connection: &mut Connection) -> Result<(), ConnectionError> {
    let capacity = connection.global_status("Innodb_redo_log_capacity_resized")?;
    let Some(capacity) = capacity else { return Ok(()) };
    connection.rows("CREATE DATABASE waggle_redo")?;
    connection
        .rows("CREATE TABLE waggle_redo.one (id INT PRIMARY KEY, bytes LONGBLOB) ENGINE=InnoDB")?;
    connection.rows("INSERT INTO waggle_redo.one VALUES (1, '')")?;
    for _ in 0..(ROUNDS * capacity).div_ceil(BYTES) {
        // Another value each time: an equal one is not written.
        let value = format!("REPEAT(IF(bytes LIKE 'a%', 'b', 'a'), {BYTES})");
        connection.rows(&format!("UPDATE waggle_redo.one SET bytes = {value}"))?;
    }
    connection.rows("DROP DATABASE waggle_redo").map(drop)
}
