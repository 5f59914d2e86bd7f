//! One running process of a build. It resolves what is only known once a process has mapped the
//! file.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Place;
use super::breakpoint::Breakpoints;
use super::elf::Elf;
use super::layout::CurrentThd;
use super::maps::mappings;
use super::opened::{OpenFile, Opened};
use super::process_memory::MemoryError;
use super::program::Entry;
use super::pthread::PthreadLayout;
use super::waiting::Waiting;

/// How to get from the thread pointer of a session's thread to its session object, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Under which its program can be opened.
    pub program: PathBuf,
    /// What is added to an address of the ELF file to get the address in this process. 0 for an
    /// executable that is not position independent.
    pub load_bias: u64,
    /// How the session of a thread is found.
    pub current_thd: CurrentThdAt,
    /// Where its program has the functions on which breakpoints may stand.
    pub breakpoints: Breakpoints,
    /// What tells why its threads wait.
    pub waiting: Waiting,
    /// By how much its monotonic clock is ahead of the kernel's, nanoseconds: in a time namespace. `None` where that
    /// cannot be told.
    pub monotonic_ahead_ns: Option<i64>,
}

/// Why a process cannot be looked into.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// `/proc/PID/maps` cannot be read.
    #[error("process {pid}: its memory map cannot be read: {why}")]
    Maps {
        /// The process.
        pid: u32,
        /// What the kernel said, with the remedy where one is known.
        why: String,
    },
    /// A loader of programs has mapped no server, or none yet.
    #[error("process {pid}: its loader has not mapped a server")]
    NotLoaded {
        /// The process.
        pid: u32,
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
    /// Resolves a program in a process that runs it, of which everything is open: the load bias, and how a session is
    /// found.
    ///
    /// # Errors
    ///
    /// If the process cannot be read, or where a part of the program is not known.
    pub(super) fn resolve(
        opened: &mut Opened,
        entry: &Entry,
    ) -> Result<(u64, CurrentThdAt), InstanceError> {
        let pid = opened.pid;
        let start =
            start_of(&opened.maps, &opened.mapped).ok_or(InstanceError::NotMapped { pid })?;
        let load_bias = start.wrapping_sub(entry.first_address);
        let no_current_thd = |why: String| InstanceError::NoCurrentThd { pid, why };
        let current_thd = match &entry.current_thd {
            Ok(CurrentThd::ThreadLocal { offset }) => CurrentThdAt::ThreadLocal { offset: *offset },
            Ok(CurrentThd::PthreadKey { key_address }) => {
                let place = Place::new(load_bias.wrapping_add(*key_address), 4);
                let key = opened.memory()?.read_one_here(place)?;
                let key = key
                    .and_then(|bytes| bytes.try_into().ok())
                    .map(u32::from_ne_bytes)
                    .ok_or_else(|| no_current_thd("THR_THD is not mapped".into()))?;
                let pthread = pthread_of(&opened.libraries);
                slot_of(pid, key, &pthread.map_err(no_current_thd)?)?
            }
            Err(why) => return Err(no_current_thd(why.clone())),
        };
        Ok((load_bias, current_thd))
    }
}

/// Most keys of a process: `PTHREAD_KEYS_MAX` of glibc.
const KEYS: u32 = 1024;

/// The arithmetic of `pthread_getspecific` (`nptl/pthread_getspecific.c` of glibc): blocks of keys,
/// each found by a pointer in the thread's descriptor. The numbers are those of the process's own library, which
/// may be anything.
fn slot_of(pid: u32, key: u32, pthread: &PthreadLayout) -> Result<CurrentThdAt, InstanceError> {
    let of_block = key.checked_div(pthread.keys_per_block);
    // Before this key a server makes those of its own library (`my_thread_global_init` in
    // `mysys/my_thr_init.c`), so 0 says that it has not made it yet.
    let Some(block) = of_block.filter(|_| (1..KEYS).contains(&key)) else {
        return Err(InstanceError::Key { pid, key });
    };
    let slot = u64::from(key % pthread.keys_per_block);
    Ok(CurrentThdAt::PthreadKey {
        block_pointer_offset: pthread.blocks_offset.wrapping_add(8 * u64::from(block)),
        slot_offset: slot.wrapping_mul(pthread.slot_size).wrapping_add(pthread.value_offset),
    })
}

/// Reads how the C library that a process maps keeps the values of thread keys. It is one of
/// `libraries`.
fn pthread_of(libraries: &[OpenFile]) -> Result<PthreadLayout, String> {
    let mut why = "the process maps no C library that waggle knows".to_owned();
    for OpenFile { name, file, .. } in libraries {
        let opened = Elf::opened(name.clone(), Arc::clone(file)).map_err(|error| error.to_string());
        match opened.and_then(|elf| PthreadLayout::read(&elf)) {
            Ok(pthread) => return Ok(pthread),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// The start of the first mapping of this file's beginning. Both names mark a deleted file alike.
fn start_of(maps: &[u8], executable: &Path) -> Option<u64> {
    let path = executable.as_os_str().as_bytes();
    let mapping = mappings(maps).find(|mapping| mapping.path == path)?;
    mapping.start()
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
    fn a_key_that_is_not_made_yet_is_no_key() {
        let pthread = PthreadLayout {
            blocks_offset: 784,
            keys_per_block: 32,
            slot_size: 16,
            value_offset: 8,
        };
        let at = |key| match slot_of(7, key, &pthread) {
            Ok(CurrentThdAt::PthreadKey { block_pointer_offset, slot_offset }) => {
                Some((block_pointer_offset, slot_offset))
            }
            _ => None,
        };
        assert_eq!([at(0), at(KEYS)], [None, None]);
        assert_eq!(at(2), Some((784, 40)));
        assert_eq!(at(33), Some((792, 24)));
    }

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
        let opened = Opened::of(std::process::id()).unwrap();
        assert!(start_of(&opened.maps, &opened.mapped).is_some());
        assert!(pthread_of(&opened.libraries).unwrap().keys_per_block > 0);
        assert!(pthread_of(&[]).is_err());
    }
}
