//! One running process of one build: what a layout leaves open until a process maps the file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::elf::Elf;
use super::layout::{CurrentThd, Layout};
use super::process_memory::{MemoryError, Place, ProcessMemory};
use super::pthread::{LIBRARIES, PthreadLayout};

/// How to get from the thread pointer of a session's thread to its session object, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentThdAt {
    /// `*(thread pointer + offset)`.
    ThreadLocal {
        /// Bytes from the thread pointer.
        offset: i64,
    },
    /// `*(*(thread pointer + block_pointer_offset) + slot_offset)`: what `pthread_getspecific`
    /// does.
    PthreadKey {
        /// Bytes from the thread pointer to the pointer to the block of the key's values.
        block_pointer_offset: u64,
        /// Bytes from the start of that block to the value.
        slot_offset: u64,
    },
}

/// One process of one build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Process id in our pid namespace.
    pub pid: u32,
    /// Start in clock ticks since boot: with the pid, one life of one server.
    pub start_ticks: u64,
    /// What is added to an address of the ELF file to get the address in this process. 0 for an
    /// executable that is not position independent.
    pub load_bias: u64,
    /// How the session of a thread is found.
    pub current_thd: CurrentThdAt,
}

/// Why a process cannot be looked into.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// `/proc/PID/maps` cannot be read.
    #[error("process {pid}: its memory map cannot be read; run as root or give CAP_SYS_PTRACE")]
    Maps {
        /// The process.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The map does not show the executable.
    #[error("process {pid}: its memory map does not show its executable")]
    NotMapped {
        /// The process.
        pid: u32,
    },
    /// The layout does not say where the session of a thread is.
    #[error("process {pid}: where a thread keeps its session is not known: {why}")]
    NoCurrentThd {
        /// The process.
        pid: u32,
        /// Why the layout lacks it.
        why: String,
    },
    /// The server has not made its thread key yet, or it is not one.
    #[error(
        "process {pid}: THR_THD holds {key}, which is no key of this C library; is it starting?"
    )]
    Key {
        /// The process.
        pid: u32,
        /// What was read.
        key: u32,
    },
    /// The memory cannot be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Instance {
    /// Resolves the layout of a build in one process that runs it. `elf` is the file that the
    /// process runs.
    ///
    /// # Errors
    ///
    /// Where the process cannot be read, or where a part of the layout is missing.
    pub fn resolve(
        pid: u32,
        start_ticks: u64,
        elf: &Elf,
        layout: &Layout,
    ) -> Result<Self, InstanceError> {
        let failed = |source| InstanceError::Maps { pid, source };
        let executable = fs::read_link(format!("/proc/{pid}/exe")).map_err(failed)?;
        let maps = fs::read(format!("/proc/{pid}/maps")).map_err(failed)?;
        let start = start_of(&maps, &executable).ok_or(InstanceError::NotMapped { pid })?;
        let load_bias = start.wrapping_sub(elf.first_address());
        let no_current_thd = |why: String| InstanceError::NoCurrentThd { pid, why };
        let current_thd = match layout.current_thd.value() {
            Some(CurrentThd::ThreadLocal { offset }) => {
                CurrentThdAt::ThreadLocal { offset: *offset }
            }
            Some(CurrentThd::PthreadKey { key_address }) => {
                let place = Place::new(load_bias.wrapping_add(*key_address), 4);
                let key = ProcessMemory::of(pid).read_one(place)?;
                let key = key
                    .and_then(|bytes| bytes.try_into().ok())
                    .map(u32::from_ne_bytes)
                    .ok_or_else(|| no_current_thd("THR_THD is not mapped".into()))?;
                slot_of(pid, key, &pthread_of(pid, &maps).map_err(no_current_thd)?)?
            }
            None => {
                let why = layout.current_thd.why().unwrap_or_default();
                return Err(no_current_thd(why.into()));
            }
        };
        Ok(Self { pid, start_ticks, load_bias, current_thd })
    }
}

/// Most keys of a process: `PTHREAD_KEYS_MAX` of glibc.
const KEYS: u32 = 1024;

/// The arithmetic of `pthread_getspecific` (`nptl/pthread_getspecific.c` of glibc): blocks of keys,
/// each found by a pointer in the thread's descriptor.
fn slot_of(pid: u32, key: u32, pthread: &PthreadLayout) -> Result<CurrentThdAt, InstanceError> {
    let of_block = key.checked_div(pthread.keys_per_block);
    // Key 0 belongs to the C library itself or to the first who asked; a server asks for its own
    // after others, but nothing forbids it.
    let Some(block) = of_block.filter(|_| key < KEYS) else {
        return Err(InstanceError::Key { pid, key });
    };
    let slot = u64::from(key % pthread.keys_per_block);
    Ok(CurrentThdAt::PthreadKey {
        block_pointer_offset: pthread.blocks_offset + 8 * u64::from(block),
        slot_offset: slot * pthread.slot_size + pthread.value_offset,
    })
}

/// Reads how the C library that this process maps keeps the values of thread keys.
fn pthread_of(pid: u32, maps: &[u8]) -> Result<PthreadLayout, String> {
    let names = || LIBRARIES.into_iter().map(str::as_bytes);
    let mut why = "the process maps no C library that waggle knows".to_owned();
    for mapping in mappings(maps) {
        let file_name = mapping.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        // Before its own names of today, glibc named the file after its version.
        let is_versioned =
            file_name.starts_with(b"libc-2.") || file_name.starts_with(b"libpthread-2.");
        if !is_versioned && !names().any(|name| file_name == name) {
            continue;
        }
        match open_mapped(pid, &mapping).and_then(|elf| PthreadLayout::read(&elf)) {
            Ok(pthread) => return Ok(pthread),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// Opens the very file that is mapped, also when it lies in a container or was replaced; where
/// that takes more rights than we have, the file of that name as the process sees it.
fn open_mapped(pid: u32, mapping: &Mapping<'_>) -> Result<Elf, String> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let path = Path::new(OsStr::from_bytes(mapping.path));
    let below_root = folder.join("root").join(path.strip_prefix("/").unwrap_or(path));
    Elf::open(&folder.join("map_files").join(mapping.range))
        .or_else(|_| Elf::open(&below_root))
        .or_else(|_| Elf::open(path))
        .map_err(|error| error.to_string())
}

/// The mapping of the beginning of a file.
struct Mapping<'a> {
    /// `start-end`, hexadecimal.
    range: &'a str,
    /// The file as the kernel names it to us.
    path: &'a [u8],
}

/// The mappings of the beginnings of files, in the order of their addresses
/// (`start-end permissions offset device inode path`, proc_pid_maps(5)).
fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut rest = line;
        let mut fields = [""; 5];
        for field in &mut fields {
            let (head, tail) = rest.split_at(rest.iter().position(|byte| *byte == b' ')?);
            *field = std::str::from_utf8(head).ok()?;
            rest = tail.trim_ascii_start();
        }
        let [range, _, offset, _, inode] = fields;
        let is_start = u64::from_str_radix(offset, 16) == Ok(0) && inode != "0";
        is_start.then_some(Mapping { range, path: rest })
    })
}

/// The start of the first mapping of this file's beginning. Both names mark a deleted file alike.
fn start_of(maps: &[u8], executable: &Path) -> Option<u64> {
    let path = executable.as_os_str().as_bytes();
    let mapping = mappings(maps).find(|mapping| mapping.path == path)?;
    u64::from_str_radix(mapping.range.split_once('-')?.0, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
00400000-01c0b000 r-xp 00000000 fe:01 131 /opt/my sql/bin/mysqld (deleted)
01e0a000-01f00000 r--p 0180a000 fe:01 131 /opt/my sql/bin/mysqld (deleted)
7f0000000000-7f0000001000 r--p 00000000 fe:01 77 /srv/opt/my sql/bin/mysqld (deleted)
7f0000002000-7f0000003000 rw-p 00000000 00:00 0 ";

    #[test]
    fn the_start_is_that_of_the_first_byte_of_the_very_file() {
        let of = |path: &str| start_of(MAPS, Path::new(path));
        assert_eq!(of("/opt/my sql/bin/mysqld (deleted)"), Some(0x400000));
        assert_eq!(of("/srv/opt/my sql/bin/mysqld (deleted)"), Some(0x7f0000000000));
        assert_eq!(of("sql/bin/mysqld (deleted)"), None);
        assert_eq!(of("/opt/other"), None);
    }

    #[test]
    fn cut_maps_give_the_start_or_nothing() {
        let path = Path::new("/opt/my sql/bin/mysqld (deleted)");
        for end in 0..MAPS.len() {
            let got = start_of(&MAPS[..end], path);
            assert!(got.is_none_or(|start| start == 0x400000), "{got:?} from {end} bytes");
        }
    }

    #[test]
    fn the_slot_of_key_13_and_of_a_key_beyond_the_first_block() {
        // x86-64 glibc 2.36.
        let glibc = PthreadLayout {
            blocks_offset: 0x510,
            keys_per_block: 32,
            slot_size: 16,
            value_offset: 8,
        };
        let at = |block_pointer_offset, slot_offset| CurrentThdAt::PthreadKey {
            block_pointer_offset,
            slot_offset,
        };
        assert_eq!(slot_of(1, 13, &glibc).unwrap(), at(0x510, 13 * 16 + 8));
        assert_eq!(slot_of(1, 65, &glibc).unwrap(), at(0x520, 16 + 8));
        assert!(slot_of(1, u32::MAX, &glibc).is_err());
        assert!(slot_of(1, 1, &PthreadLayout { keys_per_block: 0, ..glibc }).is_err());
    }

    #[test]
    fn our_own_c_library_describes_its_keys() {
        let maps = fs::read("/proc/self/maps").unwrap();
        let executable = fs::read_link("/proc/self/exe").unwrap();
        assert!(start_of(&maps, &executable).is_some());
        assert!(pthread_of(std::process::id(), &maps).unwrap().keys_per_block > 0);
        assert!(pthread_of(1, b"").is_err());
    }
}
