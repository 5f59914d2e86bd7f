//! The directory of a run: what was asked, and every window that was measured.
//!
//! `run.json` is written before the first window, and again whenever the run is resumed: under another name, synced and
//! renamed, so that the old or the new file is there whole. `windows.jsonl` has a line for each window. Windows that
//! belong together are appended and synced together, and a line is never changed. However a run ends, its whole lines
//! stay, and the other windows are measured again. A run that is kept for long may have its windows packed by gzip.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::window::Window;

/// What was asked.
pub const RUN: &str = "run.json";
/// What was measured.
pub const WINDOWS: &str = "windows.jsonl";
/// The same, packed.
pub const PACKED_WINDOWS: &str = "windows.jsonl.gz";

/// Bytes of what was asked and of what was measured, at most: the longest run there is has 12 MB.
const RUN_BYTES_MAX: u64 = 4 << 20;
const WINDOWS_BYTES_MAX: u64 = if cfg!(test) { 1 << 20 } else { 128 << 20 };

/// Why the files of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The system refuses it.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no run.
    #[error("there is no run {}; waggle lab list names those that are kept", path.display())]
    NoRun {
        /// The directory that it would have.
        path: PathBuf,
    },
    /// The text is not what was written.
    #[error(
        "{} line {line} is not as waggle wrote it: {reason}; put back the file that was there, or \
         begin a new run", path.display()
    )]
    Spoiled {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// No window can be added.
    #[error("{} is packed; run gunzip on it before you resume the run", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// No run has files of that size.
    #[error("{} has more than {most} MiB, and no run has: waggle did not write it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Mebibytes.
        most: u64,
    },
    /// Another waggle uses it.
    #[error("{} is in use by another waggle; wait for its end, or end it", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunDirError {
    move |source| RunDirError::Io { what, path: path.to_owned(), source }
}

/// The directory of a run. Only one process has it at a time.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    windows: File,
    done: BTreeSet<u32>,
    starts: u32,
    part: u32,
}

impl RunDir {
    /// Makes the directory of a new run.
    ///
    /// # Errors
    /// It exists already, or cannot be written.
    pub fn create(path: &Path, run: &impl Serialize) -> Result<RunDir, RunDirError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io_error("cannot make", parent))?;
        }
        fs::create_dir(path).map_err(io_error("cannot make", path))?;
        path.parent().map_or(Ok(()), keep_names)?;
        write_json(&path.join(RUN), run)?;
        RunDir::open(path)
    }

    /// Opens the directory of a run. An incomplete last line is cut off.
    ///
    /// # Errors
    /// It cannot be read, is spoiled, or is in use.
    pub fn open(path: &Path) -> Result<RunDir, RunDirError> {
        let file = path.join(WINDOWS);
        let packed = path.join(PACKED_WINDOWS);
        if packed.exists() && !file.exists() {
            return Err(RunDirError::Packed { path: packed });
        }
        let windows = File::options().read(true).append(true).create(true).open(&file);
        let windows = windows.map_err(io_error("cannot open", &file))?;
        keep_names(path)?;
        match windows.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(RunDirError::InUse { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(io_error("cannot lock", &file)(error));
            }
        }
        let text = read(&file, WINDOWS_BYTES_MAX)?.unwrap_or_default();
        let whole = whole_lines(&text);
        if whole.len() < text.len() {
            windows.set_len(whole.len() as u64).map_err(io_error("cannot shorten", &file))?;
        }
        let read = parse(&file, whole)?;
        let done = read.iter().map(|window| window.number).collect();
        let starts =
            read.iter().map(|window| window.server_start.saturating_add(1)).max().unwrap_or(0);
        let part = read.iter().map(|window| window.part.saturating_add(1)).max().unwrap_or(0);
        Ok(RunDir { path: path.to_owned(), windows, done, starts, part })
    }

    /// Appends and syncs windows that belong together, all at once: if some were missing, the others would have nothing to
    /// be compared with.
    ///
    /// # Errors
    /// The disk is full, or gone.
    pub fn append(&mut self, windows: &[Window]) -> Result<(), RunDirError> {
        let file = self.path.join(WINDOWS);
        let failed = || io_error("cannot write", &file);
        let mut lines = Vec::new();
        for window in windows {
            serde_json::to_writer(&mut lines, window).map_err(|error| failed()(error.into()))?;
            lines.push(b'\n');
        }
        let before = self.windows.metadata().map_err(failed())?.len();
        if let Err(error) = self.windows.write_all(&lines).and_then(|()| self.windows.sync_data()) {
            // Takes back a part of them. If that fails, too, they are cut off or void when the run is resumed.
            let _ = self.windows.set_len(before);
            return Err(failed()(error));
        }
        self.done.extend(windows.iter().map(|window| window.number));
        Ok(())
    }

    /// Whether a window was measured.
    pub fn has(&self, number: u32) -> bool {
        self.done.contains(&number)
    }

    /// How many windows were measured.
    pub fn count(&self) -> usize {
        self.done.len()
    }

    /// The number of the next start of a server.
    pub fn next_start(&mut self) -> u32 {
        let start = self.starts;
        self.starts = start.saturating_add(1);
        start
    }

    /// The part of the run that this process measures: see [`Window::part`].
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What was asked of a run.
///
/// # Errors
/// There is no run, or it is spoiled.
pub fn read_run<R: DeserializeOwned>(path: &Path) -> Result<R, RunDirError> {
    read_json(&path.join(RUN))?.ok_or_else(|| RunDirError::NoRun { path: path.to_owned() })
}

/// The directory of a run that is to go on, and what was asked of it.
///
/// # Errors
/// As [`read_run`] and [`RunDir::open`].
pub fn take_up<R: DeserializeOwned>(path: &Path) -> Result<(RunDir, R), RunDirError> {
    if !path.join(RUN).exists() {
        return Err(RunDirError::NoRun { path: path.to_owned() });
    }
    let run_dir = RunDir::open(path)?;
    // Not before: until it ends, another waggle writes it.
    Ok((run_dir, read_run(path)?))
}

/// Reads a file that [`write_json`] wrote; `None` where there is none.
///
/// # Errors
/// It cannot be read, or is spoiled.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<Option<T>, RunDirError> {
    let parse = |text: Vec<u8>| {
        serde_json::from_slice(&text).map_err(|error| spoiled(file, error.line(), &error))
    };
    read(file, RUN_BYTES_MAX)?.map(parse).transpose()
}

/// The bytes of a file; `None` where there is none. A run may come from anywhere: what is no regular file is refused.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, RunDirError> {
    // A pipe without a writer would be waited for.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(nonblocking).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io_error("cannot read", path))?,
    };
    let found = file.metadata().map_err(io_error("cannot read", path))?;
    if !found.is_file() {
        return Err(io_error("cannot read", path)(io::Error::other("it is no regular file")));
    }
    read_at_most(file, "cannot read", path, most).map(Some)
}

/// All that is left to read, which shall be at most `most` bytes.
fn read_at_most(
    from: impl Read,
    what: &'static str,
    path: &Path,
    most: u64,
) -> Result<Vec<u8>, RunDirError> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(io_error(what, path))?;
    if bytes.len() as u64 > most {
        return Err(RunDirError::TooLarge { path: path.to_owned(), most: most >> 20 });
    }
    Ok(bytes)
}

/// The windows of a run in the order of the schedule; none if the run ended before its first one.
///
/// # Errors
/// The file cannot be read, or is spoiled.
pub fn read_windows(path: &Path) -> Result<Vec<Window>, RunDirError> {
    let (file, packed) = (path.join(WINDOWS), path.join(PACKED_WINDOWS));
    if let Some(text) = read(&file, WINDOWS_BYTES_MAX)? {
        return parse(&file, whole_lines(&text));
    }
    let Some(bytes) = read(&packed, WINDOWS_BYTES_MAX)? else { return Ok(Vec::new()) };
    let unpacked = MultiGzDecoder::new(&bytes[..]);
    let text = read_at_most(unpacked, "cannot unpack", &packed, WINDOWS_BYTES_MAX)?;
    parse(&packed, whole_lines(&text))
}

/// The text without an incomplete last line.
fn whole_lines(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)]
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// The disk is full, or the directory may not be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunDirError> {
    let failed = || io_error("cannot write", path);
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed()(error.into()))?;
    let part = path.with_extension("part");
    let mut file = File::create(&part).map_err(failed())?;
    file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed())?;
    fs::rename(&part, path).map_err(failed())?;
    path.parent().map_or(Ok(()), keep_names)
}

/// Syncs the names in a directory: a file without a name is lost (fsync(2)).
fn keep_names(directory: &Path) -> Result<(), RunDirError> {
    // The parent of a plain name.
    let here = directory.as_os_str().is_empty();
    let directory = if here { Path::new(".") } else { directory };
    let run_dir = File::open(directory).and_then(|directory| directory.sync_all());
    run_dir.map_err(io_error("cannot keep the names in", directory))
}

fn parse(file: &Path, text: &[u8]) -> Result<Vec<Window>, RunDirError> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut windows = Vec::new();
    let mut numbers = BTreeSet::new();
    for (at, line) in lines.enumerate() {
        let window: Window =
            serde_json::from_slice(line).map_err(|error| spoiled(file, at + 1, &error))?;
        if !numbers.insert(window.number) {
            return Err(spoiled(file, at + 1, &format!("window {} is there twice", window.number)));
        }
        windows.push(window);
    }
    windows.sort_by_key(|window| window.number);
    Ok(windows)
}

fn spoiled(path: &Path, line: usize, reason: &dyn std::fmt::Display) -> RunDirError {
    RunDirError::Spoiled { path: path.to_owned(), line, reason: reason.to_string() }
}

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
