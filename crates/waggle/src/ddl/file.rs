//! A file of JSON lines that is rotated when it is full.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::json::bytes_of;
use super::line::Line;
use super::output::Destination;

/// Only its owner may read a file that is new: statements may hold data.
const MODE: u32 = 0o600;

/// When a file is full, and how many are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    /// Bytes; a line is never cut, so that one longer than this has a file of its own.
    pub(crate) size: u64,
    /// Full files to keep: `FILE.1` is the latest.
    pub(crate) keep: u32,
}

/// The file. Lines are handed to the kernel as they come, so that they survive the death of waggle;
/// when a file is full, and at the end, they are written to the disk (`fdatasync`).
pub(crate) struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    out: BufWriter<File>,
    size: u64,
}

impl RotatingFile {
    /// Opens the file or creates it. Lines are appended.
    ///
    /// # Errors
    /// That cannot be done, or another process writes it; with the path.
    pub(crate) fn open(path: &Path, rotation: Rotation) -> io::Result<RotatingFile> {
        let (file, size) = open(path).map_err(|error| at(path, &error))?;
        Ok(RotatingFile { path: path.to_owned(), rotation, out: BufWriter::new(file), size })
    }

    fn put(&mut self, line: &Line) -> io::Result<()> {
        let bytes = bytes_of(line)?;
        let is_full = self.size > 0 && self.size + bytes.len() as u64 > self.rotation.size;
        // A device or a pipe stays where it is.
        if is_full && self.out.get_ref().metadata()?.is_file() {
            self.rotate()?;
        }
        self.out.write_all(&bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        let numbered = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        if self.rotation.keep == 0 {
            fs::remove_file(&self.path)?;
        }
        for number in (0..self.rotation.keep).rev() {
            let from = if number == 0 { self.path.clone() } else { numbered(number) };
            match fs::rename(from, numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let (file, size) = open(&self.path)?;
        self.out = BufWriter::new(file);
        self.size = size;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.out.flush()?;
        match self.out.get_ref().sync_data() {
            // A device or a pipe has no disk.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }
}

/// Opens a file for this process alone. A line that was cut by a crash is ended.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().append(true).read(true).create(true).mode(MODE).open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::other("another process writes it"));
        }
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    let mut size = file.metadata()?.len();
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("--file {}: {error}", path.display()))
}

impl Destination for RotatingFile {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        self.put(line).map_err(|error| at(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| at(&self.path, &error))
    }

    fn close(&mut self) -> io::Result<()> {
        self.sync().map_err(|error| at(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::line::{Gap, ServerName, Source};
    use super::*;

    fn line(number: u64) -> Line {
        Line::Gap(Gap {
            time: "2026-01-02T03:04:05Z".parse().unwrap(),
            server: ServerName::default(),
            source: Source::Tap,
            missing: number,
            by: BTreeMap::new(),
        })
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap();
        let number = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            value["missing"].as_u64()
        };
        text.lines().filter_map(number).collect()
    }

    #[test]
    fn full_files_are_put_aside_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ddl.log");
        let of_one = bytes_of(&line(0)).unwrap().len() as u64;
        let rotation = Rotation { size: 3 * of_one, keep: 2 };
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        (0..10).for_each(|number| file.write(&line(number)).unwrap());
        file.close().unwrap();
        assert_eq!(numbers(&path), [9]);
        assert_eq!(numbers(&path.with_extension("log.1")), [6, 7, 8]);
        assert_eq!(numbers(&path.with_extension("log.2")), [3, 4, 5]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_was_cut_by_a_crash_spoils_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ddl.log");
        fs::write(&path, b"{\"type\":\"sta").unwrap();
        let rotation = Rotation { size: 1 << 20, keep: 0 };
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        file.write(&line(1)).unwrap();
        file.flush().unwrap();
        assert_eq!(numbers(&path), [1]);
        let second = RotatingFile::open(&path, rotation).err().unwrap().to_string();
        assert!(second.contains("ddl.log: another process writes it"), "{second}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let rotation = Rotation { size: 1 << 20, keep: 1 };
        let missing = RotatingFile::open(Path::new("/nowhere/x"), rotation).err().unwrap();
        assert!(missing.to_string().starts_with("--file /nowhere/x: "), "{missing}");
    }
}
