//! The journal of changes. It is written before a change is made, so the change can always be
//! undone.
//!
//! Each command has one file of JSON lines. Each line is forced to disk before its change is made.
//! The process that holds the lock of the file is responsible for the changes. The kernel releases
//! the lock when that process ends, for whatever reason. A process that gets the lock of an open
//! journal knows that nobody else will undo it, and undoes it.

mod contents;
mod valid;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::server_start::ServerStart;
use crate::trusted;

use contents::whole_lines;
pub use contents::{Contents, all, read};

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The first.
    #[serde(rename = "begun")]
    Header(Header),
    /// What is about to be made, once it is planned.
    Planned(Planned),
    /// A change that is about to be made.
    Change(Change),
    /// The changes stay until somebody asks to undo them.
    Kept,
    /// Counters of InnoDB that are about to be reset, and what their `COUNT_RESET` held. That cannot be
    /// undone.
    Reset(BTreeMap<String, i64>),
    /// The last: it was undone.
    Undone(Undone),
}

/// What was asked for, by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The start of the server that was changed. The next one knows nothing of the changes.
    #[serde(rename = "life")]
    pub start: ServerStart,
    /// What was asked for, such as `apply waits`.
    pub command: String,
    /// The account that changed the server.
    pub account: String,
    /// The user of this host who asked.
    pub user: u32,
    /// The process of waggle.
    pub pid: u32,
    /// The connection that makes the changes.
    pub connection: u64,
    /// When.
    pub at: Timestamp,
}

/// What a plan for a server was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// How many rows it changes.
    pub rows: usize,
    /// The highest `THREAD_ID` that it knew of.
    pub last_thread: u64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undone {
    /// Who undid it.
    pub by: Undoer,
    /// When.
    pub at: Timestamp,
    /// Rows that somebody else had changed meanwhile, as they were found.
    pub left_alone: Vec<Change>,
    /// Rows that the server did not take back, as they were read afterwards.
    #[serde(default)]
    pub not_restored: Vec<Change>,
}

impl Undone {
    /// By somebody, now, with nothing that was left.
    pub fn whole(by: Undoer) -> Undone {
        Undone { by, at: Timestamp::now(), left_alone: Vec::new(), not_restored: Vec::new() }
    }
}

/// Who undoes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undoer {
    /// The command that made them, at its end.
    Command,
    /// The process that looks after it.
    Guardian,
    /// A later command.
    Later,
    /// The server itself, by a restart.
    Restart,
}

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refuses.
    #[error("journal {}: {what}: {error}; name another place with WAGGLE_STATE_DIR", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A line is no entry.
    #[error(
        "journal {}: line {line} is no entry: {reason}; nothing of it was undone: compare its lines before with \
         the server, and move the file away",
        path.display()
    )]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The server that it is about (`server_uuid`), where its first line says so.
        server: Option<String>,
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// A journal whose lock is held.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// Where the journals of this user are: in [`state_directory`].
pub fn directory(environment: impl Fn(&str) -> Option<String>, is_root: bool) -> PathBuf {
    state_directory(environment, is_root).join("journal")
}

/// Where this user keeps what outlives a command: `WAGGLE_STATE_DIR`, else `/var/lib/waggle` for
/// root, else `waggle` in `XDG_STATE_HOME` or `~/.local/state`.
pub fn state_directory(environment: impl Fn(&str) -> Option<String>, is_root: bool) -> PathBuf {
    let named = |name| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("WAGGLE_STATE_DIR").unwrap_or_else(|| match is_root {
        true => PathBuf::from("/var/lib/waggle"),
        false => named("XDG_STATE_HOME")
            .unwrap_or_else(|| named("HOME").unwrap_or_default().join(".local/state"))
            .join("waggle"),
    })
}

/// A directory of journals in which nobody else begins one as long as this lives.
#[derive(Debug)]
pub struct Alone {
    path: PathBuf,
    directory: File,
}

impl Alone {
    /// Waits until nobody else is alone in it. It is made where there is none.
    ///
    /// # Errors
    /// It cannot be made or locked.
    pub fn within(path: &Path) -> Result<Alone, JournalError> {
        let failed = |what, error| JournalError::File { path: path.to_owned(), what, error };
        trusted::make_directory(path)
            .map_err(|error| failed("the directory cannot be made", error))?;
        let directory = trusted::open_directory(path)
            .map_err(|error| failed("the directory cannot be used", error))?;
        lock(&directory, FlockOperation::LockExclusive)
            .map_err(|error| failed("the directory cannot be locked", error))?;
        Ok(Alone { path: path.to_owned(), directory })
    }
}

/// Whether the lock was to be had.
fn lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Journal {
    /// Begins a journal and takes its lock.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(alone: &Alone, header: Header) -> Result<Journal, JournalError> {
        let failed = |what, error| JournalError::File { path: alone.path.clone(), what, error };
        let name = format!("{}-{}.jsonl", header.at.strftime("%Y%m%dT%H%M%S.%f"), header.pid);
        let path = alone.path.join(name);
        let file =
            OpenOptions::new().create_new(true).append(true).read(true).mode(0o600).open(&path);
        let file = file.map_err(|error| failed("it cannot be made", error))?;
        let mut journal = Journal { path, file };
        journal.lock(FlockOperation::NonBlockingLockExclusive)?;
        journal.write(&[Entry::Header(header)])?;
        // The name of the file has to last, too.
        alone
            .directory
            .sync_all()
            .map_err(|error| failed("the directory cannot be forced to the disk", error))?;
        Ok(journal)
    }

    /// Waits until nobody else holds a journal, and takes its lock.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn wait_for(path: &Path) -> Result<Journal, JournalError> {
        let journal = Journal::open(path)?;
        journal.lock(FlockOperation::LockExclusive)?;
        journal.mend()?;
        Ok(journal)
    }

    /// Takes the lock of a journal; `None` if another process holds it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn take(path: &Path) -> Result<Option<Journal>, JournalError> {
        let journal = Journal::open(path)?;
        if !journal.lock(FlockOperation::NonBlockingLockExclusive)? {
            return Ok(None);
        }
        journal.mend()?;
        Ok(Some(journal))
    }

    /// Removes an incomplete line whose writer died. Its change was not made, and the next entry
    /// needs a line of its own.
    fn mend(&self) -> Result<(), JournalError> {
        let mended = || -> io::Result<()> {
            let text = trusted::read(&self.path)?;
            let whole = whole_lines(&text);
            if whole < text.len() {
                self.file.set_len(whole as u64)?;
            }
            Ok(())
        };
        mended().map_err(|error| self.failed("a line that was cut off cannot be taken away", error))
    }

    fn open(path: &Path) -> Result<Journal, JournalError> {
        let file = trusted::open_file(path, true);
        let file = file.map_err(|error| JournalError::File {
            path: path.to_owned(),
            what: "it cannot be opened",
            error,
        })?;
        Ok(Journal { path: path.to_owned(), file })
    }

    fn lock(&self, how: FlockOperation) -> Result<bool, JournalError> {
        lock(&self.file, how).map_err(|error| self.failed("it cannot be locked", error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what a plan is, before anything of it is made.
    ///
    /// # Errors
    /// The file cannot be written: then nothing must be made.
    pub fn plan(&mut self, planned: Planned) -> Result<(), JournalError> {
        self.write(&[Entry::Planned(planned)])
    }

    /// Writes changes that are about to be made. They are on the disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written: then they must not be made.
    pub fn intend(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        let entries: Vec<Entry> = changes.iter().cloned().map(Entry::Change).collect();
        self.write(&entries)
    }

    /// As [`Journal::intend`], less what was intended before: who tries again intends the same.
    ///
    /// # Errors
    /// As [`Journal::intend`].
    pub fn intend_once(
        &mut self,
        changes: &[Change],
        intended: &mut Vec<Change>,
    ) -> Result<(), JournalError> {
        let is_new = |change: &&Change| !intended.contains(change);
        let new: Vec<Change> = changes.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.intend(&new)?;
        intended.extend(new);
        Ok(())
    }

    /// Writes that the changes stay until somebody asks to undo them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self) -> Result<(), JournalError> {
        self.write(&[Entry::Kept])
    }

    /// Writes which counters are about to be reset.
    ///
    /// # Errors
    /// The file cannot be written: then they must not be.
    pub fn reset(&mut self, counters: BTreeMap<String, i64>) -> Result<(), JournalError> {
        self.write(&[Entry::Reset(counters)])
    }

    /// Closes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(mut self, undone: Undone) -> Result<(), JournalError> {
        self.write(&[Entry::Undone(undone)])
    }

    /// Its content; `None` if nothing was changed.
    ///
    /// # Errors
    /// It cannot be read, or is no journal.
    pub fn read(&self) -> Result<Option<Contents>, JournalError> {
        read(&self.path)
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let mut lines = Vec::new();
        for entry in entries {
            // What could not be read again could not be undone.
            valid::check(entry)
                .map_err(|why| self.failed("an entry cannot be written", io::Error::other(why)))?;
            serde_json::to_writer(&mut lines, entry)
                .map_err(|error| self.failed("an entry cannot be written", error.into()))?;
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| match self.mend() {
            Ok(()) => self.failed("it cannot be written", error),
            Err(worse) => worse,
        })
    }

    fn failed(&self, what: &'static str, error: io::Error) -> JournalError {
        JournalError::File { path: self.path.clone(), what, error }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
