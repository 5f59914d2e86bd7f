//! The directory of a run: what was asked, and every window that was measured.
//!
//! `run.json` is written before the first window, and again each time that the run is taken up: under
//! another name, brought to the disk and renamed, so that the one or the other is there whole.
//! `windows.jsonl` has a line for each window, appended and brought to the disk when it and those made with it have ended;
//! nothing that is in it is ever written again. Whatever ends a run, the lines that are whole are kept,
//! and the rest is made anew. A run that has no such file yet has no window.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::window::Window;

/// What was asked.
pub const RUN: &str = "run.json";
/// What was measured.
pub const WINDOWS: &str = "windows.jsonl";

/// Why the files of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
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
    /// Another waggle is at it.
    #[error("{} is in use by another waggle; wait for its end, or end it", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeptError {
    move |source| KeptError::Io { what, path: path.to_owned(), source }
}

/// The directory of a run. Only one process has it at a time.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    windows: File,
    done: BTreeSet<u32>,
    lives: u32,
    part: u32,
}

impl Kept {
    /// Makes the directory of a new run.
    ///
    /// # Errors
    /// It exists already, or cannot be written.
    pub fn create(path: &Path, run: &impl Serialize) -> Result<Kept, KeptError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io_error("cannot make", parent))?;
        }
        fs::create_dir(path).map_err(io_error("cannot make", path))?;
        path.parent().map_or(Ok(()), keep_names)?;
        write_json(&path.join(RUN), run)?;
        Kept::open(path)
    }

    /// Opens the directory of a run that was begun. A last line that was not written to its end is cut
    /// off.
    ///
    /// # Errors
    /// It cannot be read, is spoiled, or is in use.
    pub fn open(path: &Path) -> Result<Kept, KeptError> {
        let file = path.join(WINDOWS);
        let windows = File::options().read(true).append(true).create(true).open(&file);
        let windows = windows.map_err(io_error("cannot open", &file))?;
        keep_names(path)?;
        match windows.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(KeptError::InUse { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(io_error("cannot lock", &file)(error));
            }
        }
        let text = fs::read(&file).map_err(io_error("cannot read", &file))?;
        let whole = whole_lines(&text);
        if whole.len() < text.len() {
            windows.set_len(whole.len() as u64).map_err(io_error("cannot shorten", &file))?;
        }
        let read = parse(&file, whole)?;
        let done = read.iter().map(|window| window.number).collect();
        let lives = read.iter().map(|window| window.life.saturating_add(1)).max().unwrap_or(0);
        let part = read.iter().map(|window| window.part.saturating_add(1)).max().unwrap_or(0);
        Ok(Kept { path: path.to_owned(), windows, done, lives, part })
    }

    /// Appends windows that were made together, all at once, and brings them to the disk: where some of them were
    /// missing, the others would have nothing to be compared with.
    ///
    /// # Errors
    /// The disk is full, or gone.
    pub fn append(&mut self, windows: &[Window]) -> Result<(), KeptError> {
        let file = self.path.join(WINDOWS);
        let failed = || io_error("cannot write", &file);
        let mut lines = Vec::new();
        for window in windows {
            serde_json::to_writer(&mut lines, window).map_err(|error| failed()(error.into()))?;
            lines.push(b'\n');
        }
        let before = self.windows.metadata().map_err(failed())?.len();
        if let Err(error) = self.windows.write_all(&lines).and_then(|()| self.windows.sync_data()) {
            // Some of them without the others. Where that fails, too, they are cut off or void when the run is taken up.
            let _ = self.windows.set_len(before);
            return Err(failed()(error));
        }
        self.done.extend(windows.iter().map(|window| window.number));
        Ok(())
    }

    /// Whether a window was made already.
    pub fn has(&self, number: u32) -> bool {
        self.done.contains(&number)
    }

    /// How many windows were made.
    pub fn count(&self) -> usize {
        self.done.len()
    }

    /// The number of the next start of a server.
    pub fn next_life(&mut self) -> u32 {
        let life = self.lives;
        self.lives = life.saturating_add(1);
        life
    }

    /// The part of the run that this process makes: see [`Window::part`].
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
pub fn read_run<R: DeserializeOwned>(path: &Path) -> Result<R, KeptError> {
    read_json(&path.join(RUN))?.ok_or_else(|| KeptError::NoRun { path: path.to_owned() })
}

/// The directory of a run that is to go on, and what was asked of it.
///
/// # Errors
/// As [`read_run`] and [`Kept::open`].
pub fn take_up<R: DeserializeOwned>(path: &Path) -> Result<(Kept, R), KeptError> {
    if !path.join(RUN).exists() {
        return Err(KeptError::NoRun { path: path.to_owned() });
    }
    let kept = Kept::open(path)?;
    // Not before: until it ends, another waggle writes it.
    Ok((kept, read_run(path)?))
}

/// Reads a file that [`write_json`] wrote; `None` where there is none.
///
/// # Errors
/// It cannot be read, or is spoiled.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<Option<T>, KeptError> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(io_error("cannot read", file))?,
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| spoiled(file, error.line(), &error))
}

/// Every window of a run that was measured, in the order of the schedule; none where the run ended
/// before its first one.
///
/// # Errors
/// The file cannot be read, or is spoiled.
pub fn read_windows(path: &Path) -> Result<Vec<Window>, KeptError> {
    let file = path.join(WINDOWS);
    let text = match fs::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(io_error("cannot read", &file))?,
    };
    parse(&file, whole_lines(&text))
}

/// Without a last line that was not written to its end.
fn whole_lines(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)]
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// The disk is full, or the directory may not be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), KeptError> {
    let failed = || io_error("cannot write", path);
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed()(error.into()))?;
    let part = path.with_extension("part");
    let mut file = File::create(&part).map_err(failed())?;
    file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed())?;
    fs::rename(&part, path).map_err(failed())?;
    path.parent().map_or(Ok(()), keep_names)
}

/// Brings the names in a directory to the disk: a file that is there and has no name is lost (fsync(2)).
fn keep_names(directory: &Path) -> Result<(), KeptError> {
    // The parent of a plain name.
    let here = directory.as_os_str().is_empty();
    let directory = if here { Path::new(".") } else { directory };
    let kept = File::open(directory).and_then(|directory| directory.sync_all());
    kept.map_err(io_error("cannot keep the names in", directory))
}

fn parse(file: &Path, text: &[u8]) -> Result<Vec<Window>, KeptError> {
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

fn spoiled(path: &Path, line: usize, reason: &dyn std::fmt::Display) -> KeptError {
    KeptError::Spoiled { path: path.to_owned(), line, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Cell, Load};

    fn window(number: u32) -> Window {
        Window {
            number,
            block: 0,
            cell: Cell {
                workload: "read-only".to_owned(),
                threads: 4,
                load: Load::Closed,
                order: None,
            },
            arm: "off".to_owned(),
            life: number,
            part: 0,
            rate: None,
            stolen: Vec::new(),
            unsteady: false,
            begin: jiff::Timestamp::UNIX_EPOCH,
            end: jiff::Timestamp::UNIX_EPOCH,
            measured: None,
            void: Some("it was a test".to_owned()),
        }
    }

    #[test]
    fn what_was_kept_stays_byte_for_byte_and_a_line_that_was_cut_is_made_anew() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("run");
        let mut kept = Kept::create(&path, &"asked").unwrap();
        kept.append(&[window(1), window(0)]).unwrap();
        drop(kept);
        let file = path.join(WINDOWS);
        let before = fs::read(&file).unwrap();
        let mut cut = before.clone();
        cut.extend(br#"{"number":2,"blo"#);
        fs::write(&file, &cut).unwrap();

        let mut kept = Kept::open(&path).unwrap();
        assert_eq!(fs::read(&file).unwrap(), before);
        assert!(kept.has(0) && kept.has(1) && !kept.has(2));
        assert_eq!((kept.next_life(), kept.part()), (2, 1));
        kept.append(&[window(2)]).unwrap();
        let numbers: Vec<u32> = read_windows(&path).unwrap().iter().map(|w| w.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(read_run::<String>(&path).unwrap(), "asked");
    }

    #[test]
    fn a_run_that_ended_before_its_first_window_has_none_and_can_be_taken_up() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("run");
        drop(Kept::create(&path, &"asked").unwrap());
        fs::remove_file(path.join(WINDOWS)).unwrap();
        assert_eq!(read_windows(&path).unwrap(), []);
        let kept = Kept::open(&path).unwrap();
        assert_eq!((kept.count(), kept.part()), (0, 0));
    }

    #[test]
    fn what_was_asked_is_replaced_whole() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("run");
        let kept = Kept::create(&path, &"asked, and at some length").unwrap();
        // As a process leaves it that was killed while it wrote.
        fs::write(path.join("run.part"), "\"as").unwrap();
        write_json(&path.join(RUN), &"resumed").unwrap();
        assert_eq!(read_run::<String>(&path).unwrap(), "resumed");
        let names: BTreeSet<String> = fs::read_dir(kept.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, [RUN, WINDOWS].map(str::to_owned).into());
    }

    #[test]
    fn a_run_has_one_writer_and_a_spoiled_line_is_named() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("run");
        let mut kept = Kept::create(&path, &"asked").unwrap();
        assert!(matches!(Kept::open(&path), Err(KeptError::InUse { .. })));
        kept.append(&[window(0)]).unwrap();
        kept.append(&[window(0)]).unwrap();
        drop(kept);
        let twice = Kept::open(&path).unwrap_err().to_string();
        assert!(twice.contains("line 2") && twice.contains("twice"), "{twice}");
        fs::write(path.join(WINDOWS), "{}\n").unwrap();
        let spoiled = read_windows(&path).unwrap_err().to_string();
        assert!(spoiled.contains("line 1"), "{spoiled}");
    }
}
