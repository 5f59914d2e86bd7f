//! What was changed, written before it is changed, so that it can be undone whatever happens.
//!
//! One file per command, JSON lines, each forced to the disk before the change that it tells of is
//! made. Whoever holds the lock of the file is responsible for the changes; the kernel lets go of a
//! lock when its process ends, however it ends. So whoever gets the lock of a journal that is not
//! closed knows that nobody undoes it, and does so.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::life::Life;

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The first.
    Begun(Begun),
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
pub struct Begun {
    /// The life of the server that was changed. Another one knows nothing of the changes.
    pub life: Life,
    /// What was asked for, such as `apply waits`.
    pub command: String,
    /// The account by which the server was changed.
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
pub struct Planned {
    /// How many rows it changes.
    pub rows: usize,
    /// The highest `THREAD_ID` that it knew of.
    pub last_thread: u64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The server itself: it was started anew.
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

/// What a journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Where it is.
    pub path: PathBuf,
    /// Its first line.
    pub begun: Begun,
    /// What was planned; `None`: it made changes one by one, or none.
    pub planned: Option<Planned>,
    /// The changes that were about to be made, in their order.
    pub changes: Vec<Change>,
    /// Whether they are to stay until somebody asks.
    pub kept: bool,
    /// Counters that were about to be reset.
    pub reset: BTreeMap<String, i64>,
    /// How it ended; `None`: it did not.
    pub undone: Option<Undone>,
}

impl Contents {
    /// Whether something of it is to be undone. A reset cannot be.
    pub fn is_open(&self) -> bool {
        self.undone.is_none() && self.reset.is_empty()
    }
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
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| failed("the directory cannot be made", error))?;
        let directory =
            File::open(path).map_err(|error| failed("the directory cannot be opened", error))?;
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
    pub fn begin(alone: &Alone, begun: Begun) -> Result<Journal, JournalError> {
        let failed = |what, error| JournalError::File { path: alone.path.clone(), what, error };
        let name = format!("{}-{}.jsonl", begun.at.strftime("%Y%m%dT%H%M%S.%f"), begun.pid);
        let path = alone.path.join(name);
        let file =
            OpenOptions::new().create_new(true).append(true).read(true).mode(0o600).open(&path);
        let file = file.map_err(|error| failed("it cannot be made", error))?;
        let mut journal = Journal { path, file };
        journal.lock(FlockOperation::NonBlockingLockExclusive)?;
        journal.write(&[Entry::Begun(begun)])?;
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

    /// Takes the lock of a journal; `None` where another process holds it.
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

    /// Takes away a line that its writer died at: what it tells of was not done, and what comes next has to be
    /// a line of its own.
    fn mend(&self) -> Result<(), JournalError> {
        let mended = || -> io::Result<()> {
            let text = std::fs::read(&self.path)?;
            let whole = whole_lines(&text);
            if whole < text.len() {
                self.file.set_len(whole as u64)?;
            }
            Ok(())
        };
        mended().map_err(|error| self.failed("a line that was cut off cannot be taken away", error))
    }

    fn open(path: &Path) -> Result<Journal, JournalError> {
        let file = OpenOptions::new().append(true).read(true).open(path);
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

    /// What it holds; `None` where nothing was changed.
    ///
    /// # Errors
    /// It cannot be read, or is no journal.
    pub fn read(&self) -> Result<Option<Contents>, JournalError> {
        read(&self.path)
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let mut lines = Vec::new();
        for entry in entries {
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

/// Every journal in a directory, the oldest first. One that cannot be read is told as an error.
///
/// # Errors
/// The directory cannot be read. That it does not exist is no error.
pub fn all(directory: &Path) -> Result<Vec<Result<Contents, JournalError>>, JournalError> {
    let failed = |error| JournalError::File {
        path: directory.to_owned(),
        what: "the directory cannot be read",
        error,
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths.iter().filter_map(|path| read(path).transpose()).collect())
}

/// Reads a journal, whoever holds it; `None` where its writer died before the first line was whole, and
/// changed nothing.
///
/// # Errors
/// It cannot be read, or is no journal.
pub fn read(path: &Path) -> Result<Option<Contents>, JournalError> {
    let wrong = |contents: &Option<Contents>, line: usize, reason: String| JournalError::Wrong {
        path: path.to_owned(),
        server: contents.as_ref().map(|contents| contents.begun.life.server.clone()),
        line: line + 1,
        reason,
    };
    let text = std::fs::read(path).map_err(|error| JournalError::File {
        path: path.to_owned(),
        what: "it cannot be read",
        error,
    })?;
    let mut contents: Option<Contents> = None;
    let lines = text[..whole_lines(&text)].split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        let entry = serde_json::from_slice(line)
            .map_err(|error| wrong(&contents, number, error.to_string()))?;
        match (entry, &mut contents) {
            (Entry::Begun(begun), none @ None) => {
                let path = path.to_owned();
                *none = Some(Contents {
                    path,
                    begun,
                    planned: None,
                    changes: vec![],
                    kept: false,
                    reset: BTreeMap::new(),
                    undone: None,
                });
            }
            (Entry::Planned(planned), Some(contents)) => contents.planned = Some(planned),
            (Entry::Change(change), Some(contents)) => contents.changes.push(change),
            (Entry::Kept, Some(contents)) => contents.kept = true,
            (Entry::Reset(counters), Some(contents)) => contents.reset = counters,
            (Entry::Undone(undone), Some(contents)) => contents.undone = Some(undone),
            (_, contents) => {
                return Err(wrong(contents, number, "it stands in the wrong place".to_owned()));
            }
        }
    }
    Ok(contents)
}

/// How many bytes of a journal its whole lines have. What comes behind is being written, or its writer died at it:
/// what it tells of was not done yet.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
