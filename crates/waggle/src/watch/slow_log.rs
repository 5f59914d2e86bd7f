//! Statements in the format of the server's slow query log, so that the tools that read one go on
//! working: `pt-query-digest`, `mysqldumpslow`.
//!
//! The lines of an entry are those of MariaDB's log (`LOGGER::slow_log_print` in `sql/log.cc`),
//! which name the database and the counters of rows; readers of MySQL's log skip what they do not
//! know.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use waggle_model::{Origin, Statement};

use super::printable;
use crate::capture::monotonic_ns;

/// Only its owner may read the file: statements may hold data.
const MODE: u32 = 0o600;

/// Which statements are written, and how.
#[derive(Clone, Debug)]
pub(crate) struct SlowLogOptions {
    /// The file; entries are added to what it holds.
    pub(crate) path: PathBuf,
    /// Statements that took less are left out.
    pub(crate) above: Duration,
    /// Literals become `?`.
    pub(crate) redact: bool,
}

/// A slow query log that is being written.
pub(crate) struct SlowLog {
    options: SlowLogOptions,
    out: BufWriter<File>,
    /// `CLOCK_MONOTONIC` nanoseconds and the time of day of one moment.
    clocks: (u64, Timestamp),
    /// Why the file could not be written, until that is told.
    failed: Option<io::Error>,
}

impl SlowLog {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    ///
    /// Where that cannot be done, with the path.
    pub(crate) fn open(options: SlowLogOptions) -> io::Result<SlowLog> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(&options.path);
        let file = file.map_err(|error| at(&options.path, &error))?;
        let clocks = (monotonic_ns(), Timestamp::now());
        Ok(SlowLog { options, out: BufWriter::new(file), clocks, failed: None })
    }

    /// Adds a statement that ended, if it is one that is wanted. An error is kept for
    /// [`SlowLog::flush`].
    pub(crate) fn add(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        let took = Duration::from_nanos(statement.latency_ns.unwrap_or(0));
        if !is_statement || statement.origin != Origin::Client || took < self.options.above {
            return;
        }
        if self.failed.is_none() {
            self.failed = self.write(statement).err();
        }
    }

    /// Hands everything to the file, and reads the clocks again.
    ///
    /// # Errors
    ///
    /// Where anything since the last call could not be written, with the path.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.clocks = (monotonic_ns(), Timestamp::now());
        let written = match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        };
        written.map_err(|error| at(&self.options.path, &error))
    }

    fn time_of(&self, at_ns: u64) -> Timestamp {
        let (now_ns, now) = self.clocks;
        let distance = i128::from(at_ns) - i128::from(now_ns);
        now + SignedDuration::from_nanos(i64::try_from(distance).unwrap_or(0))
    }

    fn write(&mut self, statement: &Statement<'_>) -> io::Result<()> {
        let redact = self.options.redact;
        let text = statement
            .text
            .map_or_else(String::new, |text| printable(text.bytes, statement.settings, redact));
        let text = harmless(text.trim_end().trim_end_matches(';'));
        if text.trim().is_empty() {
            return Ok(());
        }
        let end = self.time_of(statement.end_ns);
        let started = self.time_of(statement.start_ns().unwrap_or(statement.end_ns));
        let name = |bytes: &Option<Vec<u8>>| word(bytes.as_deref().unwrap_or_default());
        let identity = statement.identity;
        let user = name(&identity.user);
        let out = &mut self.out;
        writeln!(out, "# Time: {}", end.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))?;
        writeln!(out, "# User@Host: {user}[{user}] @ {} []", name(&identity.host))?;
        write!(out, "# Thread_id: {}", statement.connection_id.unwrap_or(0))?;
        if identity.database.is_some() {
            write!(out, "  Schema: {}", name(&identity.database))?;
        }
        writeln!(out, "  Last_errno: {}", statement.error.unwrap_or(0))?;
        write!(out, "# Query_time: {:.6}", seconds(statement.latency_ns.unwrap_or(0)))?;
        // What was not measured is left out: a tool would take a 0 for a number.
        if let Some(lock_ns) = statement.lock_ns {
            write!(out, "  Lock_time: {:.6}", seconds(lock_ns))?;
        }
        for (key, value) in [
            ("Rows_sent", statement.rows_sent),
            ("Rows_examined", statement.rows_examined),
            ("Rows_affected", statement.rows_affected),
            ("Bytes_sent", statement.bytes_sent),
        ] {
            if let Some(value) = value {
                write!(out, "  {key}: {value}")?;
            }
        }
        writeln!(out, "\nSET timestamp={};\n{text};", started.as_second())
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("--slowlog {}: {error}", path.display()))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A name as one word of a line: blanks and control characters would begin something else.
fn word(name: &[u8]) -> String {
    let strange = |c: char| c.is_whitespace() || c.is_control();
    String::from_utf8_lossy(name).replace(strange, "_")
}

/// A text in which no line looks like the head of an entry.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_head = |line: &str| line.starts_with('#');
    if text.lines().any(is_head) {
        Cow::Owned(text.replace("\n#", "\n #").trim_start_matches('#').to_owned())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use waggle_model::{Command, Identity, Text};

    use super::*;

    fn log(folder: &Path, above: Duration, redact: bool) -> SlowLog {
        let path = folder.join("slow.log");
        SlowLog::open(SlowLogOptions { path, above, redact }).unwrap()
    }

    fn written(above: Duration, redact: bool, statements: &[Statement<'_>]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(folder.path(), above, redact);
        log.clocks = (5_000_000_000, "2026-01-02T03:04:05.5Z".parse().unwrap());
        statements.iter().for_each(|statement| log.add(statement));
        log.flush().unwrap();
        fs::read_to_string(folder.path().join("slow.log")).unwrap()
    }

    fn statement<'a>(text: &'a str, identity: &'a Identity) -> Statement<'a> {
        Statement {
            connection_id: Some(8),
            command: Some(Command::QUERY),
            latency_ns: Some(1_500_000),
            text: Some(Text { bytes: text.as_bytes(), length: text.len() as u64 }),
            lock_ns: Some(2_000),
            rows_sent: Some(1),
            rows_examined: Some(43),
            error: Some(0),
            ..Statement::unread(4_000_000_000, identity)
        }
    }

    fn identity() -> Identity {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        Identity { user: bytes("app"), host: bytes("web 1"), database: bytes("shop") }
    }

    #[test]
    fn an_entry_has_the_lines_that_readers_of_slow_logs_know() {
        let identity = identity();
        let text = written(Duration::ZERO, true, &[statement("SELECT 'x' FROM t;", &identity)]);
        let expected = "# Time: 2026-01-02T03:04:04.500000Z\n\
                        # User@Host: app[app] @ web_1 []\n\
                        # Thread_id: 8  Schema: shop  Last_errno: 0\n\
                        # Query_time: 0.001500  Lock_time: 0.000002  Rows_sent: 1  Rows_examined: 43\n\
                        SET timestamp=1767323044;\n\
                        SELECT ? FROM t;\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn quick_statements_and_commands_are_left_out_and_literals_are_kept_on_request() {
        let identity = identity();
        let quick = statement("SELECT 1", &identity);
        let slow = Statement { latency_ns: Some(2_000_000), ..statement("SELECT 'é'", &identity) };
        let ping = Statement { command: Some(Command(14)), ..slow };
        let text = written(Duration::from_millis(2), false, &[quick, slow, ping]);
        assert_eq!(text.matches("# Time").count(), 1, "{text}");
        assert!(text.ends_with("\nSELECT 'é';\n"), "{text}");
    }

    #[test]
    fn no_text_can_look_like_an_entry_and_no_secret_is_written() {
        let identity = identity();
        let forged = statement("SELECT '\n# Time: 1\n# Query_time: 9'", &identity);
        let secret = statement("CREATE USER a IDENTIFIED BY 'tell nobody'", &identity);
        let text = written(Duration::ZERO, false, &[forged, secret]);
        let heads = text.lines().filter(|line| line.starts_with("# Time")).count();
        assert_eq!(heads, 2, "{text}");
        assert!(!text.contains("tell nobody"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let options =
            SlowLogOptions { path: "/dev/full".into(), above: Duration::ZERO, redact: true };
        let mut log = SlowLog::open(options).unwrap();
        log.add(&statement("SELECT 1", &identity()));
        let error = log.flush().unwrap_err().to_string();
        assert!(error.contains("--slowlog /dev/full: No space left"), "{error}");
        let missing = SlowLogOptions {
            path: "/nowhere/slow.log".into(),
            above: Duration::ZERO,
            redact: true,
        };
        let error = SlowLog::open(missing).err().unwrap().to_string();
        assert!(error.contains("--slowlog /nowhere/slow.log"), "{error}");
    }
}
