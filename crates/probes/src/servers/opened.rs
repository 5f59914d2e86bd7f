//! What of a process is opened before it is looked into. Afterwards no right to open anything is needed.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use waggle_host::Need;

use super::InstanceError;
use super::discover::{by_name, name_of};
use super::elf::{Elf, ElfError, open_file};
use super::loader::{Loaded, is_loader, loaded};
use super::maps::{Mapping, mappings};
use super::process_memory::{MemoryError, ProcessMemory};
use super::pthread::LIBRARIES;

/// Longest map of a process that is read, bytes: a server has some thousand mappings at most.
const MAPS_MAX: u64 = 4 << 20;
/// Most files that may be the C library of a process.
const LIBRARIES_MAX: usize = 6;

/// An open file with its name for messages.
pub(super) struct OpenFile {
    pub(super) name: String,
    /// Shared by those who read it: who opened it may be allowed to open no more.
    pub(super) file: Arc<File>,
    /// Where the process has its first byte.
    pub(super) start: u64,
}

/// Everything of a process that is needed to recognise it.
pub(super) struct Opened {
    pub(super) pid: u32,
    /// The program as the map names it, with its mark where the file was deleted.
    pub(super) mapped: PathBuf,
    /// Under which the program can be opened.
    pub(super) program_path: PathBuf,
    program: Result<Arc<File>, ElfError>,
    /// `/proc/PID/maps`.
    pub(super) maps: Vec<u8>,
    /// Those that may be the C library.
    pub(super) libraries: Vec<OpenFile>,
    memory: Result<ProcessMemory, MemoryError>,
}

impl Opened {
    /// Opens what there is of a process.
    ///
    /// # Errors
    ///
    /// If its map cannot be read, or where a loader has mapped no server.
    pub(super) fn of(pid: u32) -> Result<Opened, InstanceError> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let failed = |error| InstanceError::Maps { pid, why: Need::Look.told(&error) };
        let link = folder.join("exe");
        let executable = fs::read_link(&link).map_err(failed)?;
        let mut maps = Vec::new();
        let file = File::open(folder.join("maps")).map_err(failed)?;
        file.take(MAPS_MAX).read_to_end(&mut maps).map_err(failed)?;
        let Loaded { mapped, file: program_path } = match is_loader(&name_of(&executable)) {
            true => loaded(&folder, &maps, by_name).ok_or(InstanceError::NotLoaded { pid })?,
            false => Loaded { mapped: executable, file: link },
        };
        Ok(Opened {
            pid,
            // What is said of it is kept for all that run it.
            program: open_file(&program_path)
                .map(Arc::new)
                .map_err(|error| ElfError::read(mapped.display().to_string(), &error)),
            mapped,
            program_path,
            libraries: libraries(&folder, &maps),
            maps,
            memory: ProcessMemory::opened(pid),
        })
    }

    /// Its memory.
    pub(super) fn memory(&mut self) -> Result<&mut ProcessMemory, MemoryError> {
        match &mut self.memory {
            Ok(memory) => Ok(memory),
            // Who hears the reason asks no more.
            Err(error) => Err(std::mem::replace(error, MemoryError::Gone { pid: self.pid })),
        }
    }

    /// Reads the headers of its program.
    pub(super) fn program(&self) -> Result<Elf, ElfError> {
        Elf::opened(self.mapped.display().to_string(), self.program.clone()?)
    }
}

/// The files that may be the C library of a process, opened by each name that works.
fn libraries(folder: &Path, maps: &[u8]) -> Vec<OpenFile> {
    let open = |(start, path): (u64, PathBuf)| {
        let file = open_file(&path).ok()?;
        Some(OpenFile { name: path.display().to_string(), file: Arc::new(file), start })
    };
    let files = |mapping: Mapping<'_>| {
        let start = mapping.start().unwrap_or(0);
        mapping.files(folder).map(|path| (start, path))
    };
    let named = mappings(maps).filter(is_c_library);
    named.flat_map(files).filter_map(open).take(LIBRARIES_MAX).collect()
}

fn is_c_library(mapping: &Mapping<'_>) -> bool {
    let file_name = mapping.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    // Before its own names of today, glibc named the file after its version.
    let is_versioned = file_name.starts_with(b"libc-2.") || file_name.starts_with(b"libpthread-2.");
    is_versioned || LIBRARIES.iter().any(|name| file_name == name.as_bytes())
}
