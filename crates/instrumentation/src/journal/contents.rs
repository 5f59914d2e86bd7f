//! What a journal holds, read.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::error::Category;

use super::{Entry, Header, JournalError, Planned, Undone, valid};
use crate::change::Change;
use crate::trusted;

/// What a journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Where it is.
    pub path: PathBuf,
    /// Its first line.
    pub header: Header,
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

/// Every journal in a directory, the oldest first. An unreadable one is an error in the list.
///
/// # Errors
/// The directory cannot be read. That it does not exist is no error.
pub fn all(directory: &Path) -> Result<Vec<Result<Contents, JournalError>>, JournalError> {
    let failed = |error| JournalError::File {
        path: directory.to_owned(),
        what: "the directory cannot be read",
        error,
    };
    match trusted::open_directory(directory) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    }
    let entries = std::fs::read_dir(directory).map_err(failed)?;
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

/// Reads a journal, even if another process holds it; `None` if its writer died before the first
/// line was complete, and so changed nothing.
///
/// # Errors
/// It cannot be read, or is no journal.
pub fn read(path: &Path) -> Result<Option<Contents>, JournalError> {
    let wrong = |contents: &Option<Contents>, line: usize, reason: String| JournalError::Wrong {
        path: path.to_owned(),
        server: contents.as_ref().map(|contents| contents.header.start.server.clone()),
        line: line + 1,
        reason,
    };
    let text = trusted::read(path).map_err(|error| JournalError::File {
        path: path.to_owned(),
        what: "it cannot be read",
        error,
    })?;
    let mut contents = None;
    let lines = text[..whole_lines(&text)].split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        let entry = serde_json::from_slice(line).map_err(|error| in_words(&error));
        let entry = entry.and_then(|entry| valid::check(&entry).map(|()| entry));
        let entry = entry.map_err(|why| wrong(&contents, number, why))?;
        if !add(entry, path, &mut contents) {
            return Err(wrong(&contents, number, "it stands in the wrong place".to_owned()));
        }
    }
    Ok(contents)
}

/// Why a line is none. The line itself is not quoted: anything can stand in it.
fn in_words(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Data => "it has a part that waggle does not write",
        Category::Io | Category::Syntax | Category::Eof => "it is no JSON",
    };
    format!("{what} (column {})", error.column())
}

/// Adds what a line says. Whether it can stand where it does: the header first, and nothing after the end.
fn add(entry: Entry, path: &Path, contents: &mut Option<Contents>) -> bool {
    let Some(contents) = contents else {
        let Entry::Header(header) = entry else { return false };
        *contents = Some(Contents {
            path: path.to_owned(),
            header,
            planned: None,
            changes: Vec::new(),
            kept: false,
            reset: BTreeMap::new(),
            undone: None,
        });
        return true;
    };
    if contents.undone.is_some() {
        return false;
    }
    match entry {
        Entry::Header(_) => return false,
        Entry::Planned(planned) => contents.planned = Some(planned),
        Entry::Change(change) => contents.changes.push(change),
        Entry::Kept => contents.kept = true,
        Entry::Reset(counters) => contents.reset = counters,
        Entry::Undone(undone) => contents.undone = Some(undone),
    }
    true
}

/// The length of a journal's complete lines, in bytes. The rest is being written, or its writer
/// died; its change was not made yet.
pub(super) fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}
