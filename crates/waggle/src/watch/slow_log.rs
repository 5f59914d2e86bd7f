//! Statements in the format of the server's slow query log, for tools such as `pt-query-digest` and
//! `mysqldumpslow`.
//!
//! The keys are those of MariaDB's log (`LOGGER::slow_log_print` in `sql/log.cc`), because they name the database and
//! the row counters; where the time went follows them. All stand on the line of `Query_time`, right below the user:
//! `mysqldumpslow` looks there only, and takes any other line for a part of the statement.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waggle_host::monotonic_ns;
use waggle_model::visible::{self, in_lines};
use waggle_model::{Origin, Statement};
use waggle_observe::{Clocks, Queue, Room, Size, Standing, StatementSink};

use super::spent::{attributes, seconds};
use crate::lacking::{OutputName, there_are};
use crate::text::printable;

/// Only its owner may read the file: statements may hold data.
const MODE: u32 = 0o600;

/// Which statements are written, and how.
#[derive(Clone, Debug)]
pub(crate) struct SlowLogOptions {
    /// The file; entries are added to what it holds.
    pub(crate) path: PathBuf,
    /// Statements that took less are left out, and those of which nobody knows how long they took.
    pub(crate) above: Duration,
    /// Literals become `?`.
    pub(crate) redact: bool,
}

/// Bytes of a batch of entries. One entry may make it larger.
const BATCH_BYTES: usize = 256 << 10;
/// Batches that may wait for the disk.
const WAITING_MAX: Room = Room { parcels: 32, bytes: 8 << 20 };
/// How long the last batches may take to be written.
const END_AWAITED: Duration = Duration::from_secs(10);
/// How often the clocks are compared: one of them may be set.
const CLOCKS_EVERY_NS: u64 = 1_000_000_000;

/// A slow query log that is being written, by a thread of its own. Where the disk is full or too slow, entries are
/// left out and counted.
pub(crate) struct SlowLog {
    options: SlowLogOptions,
    entries: Entries,
    queue: Queue<Vec<u8>>,
    name: OutputName,
    /// Statements that were left out because their latency is not known.
    of_unknown_latency: u64,
    has_told_unknown: bool,
    clocks_at_ns: u64,
}

/// Entries that are made of statements, and not handed on yet.
struct Entries {
    redact: bool,
    clocks: Clocks,
    bytes: Vec<u8>,
    count: u64,
}

impl SlowLog {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    ///
    /// Where that cannot be done, with the path.
    pub(crate) fn open(options: SlowLogOptions) -> io::Result<SlowLog> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(&options.path);
        let mut file = file.map_err(|error| at(&options.path, &error))?;
        let write = move |entries: Vec<u8>| append(&mut file, &entries);
        let queue = Queue::start("slow log", WAITING_MAX, write)?;
        let entries =
            Entries { redact: options.redact, clocks: Clocks::look(), bytes: Vec::new(), count: 0 };
        Ok(SlowLog {
            entries,
            queue,
            name: OutputName::new(name_of(&options.path), "statement"),
            of_unknown_latency: 0,
            has_told_unknown: false,
            clocks_at_ns: monotonic_ns(),
            options,
        })
    }

    fn hand_on(&mut self) {
        let Entries { bytes, count, .. } = &mut self.entries;
        if *count > 0 {
            let size = Size { count: std::mem::take(count), bytes: bytes.len() as u64 };
            self.queue.offer(std::mem::take(bytes), size);
        }
    }

    /// Waits until everything is written. Says what is not in the file, in words.
    pub(crate) fn close(mut self) -> Vec<String> {
        self.hand_on();
        match self.name.lack(self.queue.close(END_AWAITED)) {
            Ok(unwritten) => unwritten.into_iter().chain(self.of_unknown_latency()).collect(),
            // The reader of a pipe that has seen enough lacks nothing.
            Err(_) => Vec::new(),
        }
    }

    fn of_unknown_latency(&self) -> Option<String> {
        (self.of_unknown_latency > 0).then(|| {
            format!(
                "{} not in {}: the time it took is not known",
                there_are(self.of_unknown_latency, "statement"),
                name_of(&self.options.path)
            )
        })
    }

    /// Whether a statement took long enough.
    fn is_slow(&mut self, statement: &Statement<'_>) -> bool {
        let above = self.options.above;
        match statement.latency_ns {
            Some(latency) => Duration::from_nanos(latency) >= above,
            None => {
                self.of_unknown_latency += u64::from(!above.is_zero());
                above.is_zero()
            }
        }
    }
}

impl StatementSink for SlowLog {
    fn ended(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        if !is_statement || statement.origin != Origin::Client || !self.is_slow(statement) {
            return;
        }
        self.entries.add(statement);
        if self.entries.bytes.len() >= BATCH_BYTES {
            self.hand_on();
        }
    }

    /// Hands on once a second, so that what waits for the disk is a matter of bytes, not of turns.
    fn turn(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.clocks_at_ns) >= CLOCKS_EVERY_NS {
            self.hand_on();
            self.clocks_at_ns = now_ns;
            self.entries.clocks = Clocks::look();
        }
    }

    fn complaint(&mut self) -> Option<String> {
        if let Some(trouble) = self.queue.trouble() {
            return Some(self.name.trouble(&trouble));
        }
        let is_new = self.of_unknown_latency > 0 && !self.has_told_unknown;
        self.has_told_unknown |= is_new;
        let file = name_of(&self.options.path);
        is_new.then(|| {
            format!(
                "{file}: how long some statements took is not known; --slowlog-above leaves them out, \
                 and they are counted"
            )
        })
    }

    fn standing(&mut self) -> Standing {
        if self.queue.has_ended() { Standing::Ended } else { Standing::Takes }
    }
}

/// Adds whole entries or none: what a full disk took of them is cut off again.
fn append(file: &mut File, entries: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(entries).inspect_err(|_| drop(file.set_len(before)))
}

impl Entries {
    /// Adds a statement.
    fn add(&mut self, statement: &Statement<'_>) {
        let before = self.bytes.len();
        // A vector takes everything.
        let _ = self.write(statement);
        self.count += u64::from(self.bytes.len() > before);
    }

    fn write(&mut self, statement: &Statement<'_>) -> io::Result<()> {
        let redact = self.redact;
        let text = statement
            .text
            .map_or_else(String::new, |text| printable(text.bytes, statement.settings, redact));
        let text = in_lines(text.trim_end().trim_end_matches(';'));
        let text = harmless(&text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let end = self.clocks.time_of(statement.end_ns);
        let started = self.clocks.time_of(statement.start_ns().unwrap_or(statement.end_ns));
        let name = |bytes: &Option<Vec<u8>>| word(bytes.as_deref().unwrap_or_default());
        let identity = statement.identity;
        let user = name(&identity.user);
        let out = &mut self.bytes;
        writeln!(out, "# Time: {}", end.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))?;
        writeln!(out, "# User@Host: {user}[{user}] @ {} []", name(&identity.host))?;
        let database = identity.database.is_some().then(|| name(&identity.database));
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let time = |ns: Option<u64>| ns.map(seconds);
        let known = [
            ("Query_time", time(statement.latency_ns)),
            ("Lock_time", time(statement.lock_ns)),
            ("Rows_sent", number(statement.rows_sent)),
            ("Rows_examined", number(statement.rows_examined)),
            ("Rows_affected", number(statement.rows_affected)),
            ("Bytes_sent", number(statement.bytes_sent)),
            ("Thread_id", number(statement.connection_id)),
            ("Schema", database),
            ("Last_errno", number(statement.error.map(u64::from))),
        ];
        let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        line(out, known.chain(attributes(statement)))?;
        writeln!(out, "SET timestamp={};\n{text};", started.as_second())
    }
}

/// A line of what is known. What was not measured is left out: a tool would take a 0 for a number.
fn line(out: &mut Vec<u8>, known: impl Iterator<Item = (String, String)>) -> io::Result<()> {
    let known: Vec<String> = known.map(|(key, value)| format!("{key}: {value}")).collect();
    match known.is_empty() {
        true => Ok(()),
        false => writeln!(out, "# {}", known.join("  ")),
    }
}

fn name_of(path: &Path) -> String {
    format!("--slowlog {}", path.display())
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", name_of(path)))
}

/// A name as one word of a line: blanks would begin something else.
fn word(name: &[u8]) -> String {
    visible::name(&String::from_utf8_lossy(name)).replace(' ', "<U+0020>")
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
mod tests;
