//! Reads the memory of another process, many places in one call.
//!
//! A read only takes the other process's address-space lock, for a moment. The memory can change
//! while waggle reads it, so the caller checks what must be consistent. Addresses and lengths that
//! come from the other process are not trusted: lengths have a limit, and an unmapped place is
//! absent, not an error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use waggle_host::{Need, thread_cpu_ns};

use super::batch::Batch;
use super::{Place, child, reader};

/// Most places per system call: `UIO_MAXIOV` of `include/uapi/linux/uio.h`.
const PLACES_PER_CALL: usize = 1024;

/// Why the memory of a process cannot be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The process ended.
    #[error("process {pid}: it has ended")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// It was not read in time, a moment ago or earlier.
    #[error(
        "process {pid}: its memory is not read: a file system that holds it does not answer, or it is made to hold up \
         who reads it; waggle tries again, more and more rarely"
    )]
    Late {
        /// The process.
        pid: u32,
    },
    /// Who reads it did not get to run.
    #[error(
        "process {pid}: its memory was not read: the process of waggle that reads it did not get to run, as the host \
         is busy or it was stopped; waggle tries again"
    )]
    Withheld {
        /// The process.
        pid: u32,
    },
    /// The kernel refuses.
    #[error("process {pid}: its memory may not be read; {remedy}")]
    Denied {
        /// The process.
        pid: u32,
        /// What helps who reads it.
        remedy: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Anything else.
    #[error("process {pid}: its memory cannot be read")]
    Failed {
        /// The process.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl MemoryError {
    /// The remedy is that of now: who reads it may give up its rights.
    pub(super) fn denied(pid: u32, source: io::Error) -> Self {
        MemoryError::Denied { pid, remedy: Need::Open.remedy(), source }
    }
}

/// The memory of one process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    /// `/proc/PID/mem`, where `process_vm_readv` is not allowed (seccomp of containers).
    file: Option<File>,
    /// Processor time of this thread when it began.
    began_ns: u64,
    /// How long the reader was waited for while it could run.
    awaited: Duration,
}

impl ProcessMemory {
    /// The memory of the process with this pid in our pid namespace. Nothing is opened yet.
    pub fn of(pid: u32) -> Self {
        Self { pid, file: None, began_ns: thread_cpu_ns(), awaited: Duration::ZERO }
    }

    /// What reading it has taken: processor time of this thread, which made it, and time in which the reader was held up or
    /// at work. Time in which one of the two did not get to run is none of it.
    pub(crate) fn spent(&self) -> Duration {
        let own_ns = thread_cpu_ns().saturating_sub(self.began_ns);
        Duration::from_nanos(own_ns) + self.awaited
    }

    /// The same, which is opened at once: it can be read when the right to open it is given up.
    ///
    /// # Errors
    ///
    /// If it may not be read.
    pub(super) fn opened(pid: u32) -> Result<Self, MemoryError> {
        Ok(Self { file: Some(open(pid)?), ..Self::of(pid) })
    }

    /// Reads every place of the batch. A place that is not mapped is absent in the batch. Where children are used, one
    /// reads it: the memory may be made to hold up who reads it.
    ///
    /// # Errors
    ///
    /// If nothing of the process can be read.
    pub fn read(&mut self, batch: &mut Batch) -> Result<(), MemoryError> {
        if !child::are_used() {
            return self.read_here(batch);
        }
        let (read, waited) = reader::read(self.pid, batch);
        self.awaited += waited;
        read
    }

    /// The same by this process itself.
    pub(super) fn read_here(&mut self, batch: &mut Batch) -> Result<(), MemoryError> {
        batch.prepare();
        let mut next = 0;
        while next < batch.places.len() {
            if let Some(file) = &self.file {
                read_from_file(file, batch, next);
                return Ok(());
            }
            match read_vectors(self.pid, batch, next) {
                Ok(read) => next += read,
                Err(error) => self.fall_back(error)?,
            }
        }
        Ok(())
    }

    /// Reads one place.
    ///
    /// # Errors
    ///
    /// If nothing of the process can be read. A place that is not mapped is `None`.
    pub fn read_one(&mut self, place: Place) -> Result<Option<Vec<u8>>, MemoryError> {
        self.one(place, Self::read)
    }

    /// The same by this process itself.
    pub(super) fn read_one_here(&mut self, place: Place) -> Result<Option<Vec<u8>>, MemoryError> {
        self.one(place, Self::read_here)
    }

    fn one(
        &mut self,
        place: Place,
        read: impl Fn(&mut Self, &mut Batch) -> Result<(), MemoryError>,
    ) -> Result<Option<Vec<u8>>, MemoryError> {
        let mut batch = Batch::default();
        let number = batch.add(place);
        read(self, &mut batch)?;
        Ok(batch.get(number).map(<[u8]>::to_vec))
    }

    fn fall_back(&mut self, error: io::Error) -> Result<(), MemoryError> {
        let pid = self.pid;
        match error.raw_os_error() {
            Some(libc::ESRCH) => Err(MemoryError::Gone { pid }),
            Some(libc::EPERM | libc::ENOSYS) => {
                self.file = Some(open(pid)?);
                Ok(())
            }
            _ => Err(MemoryError::Failed { pid, source: error }),
        }
    }
}

fn open(pid: u32) -> Result<File, MemoryError> {
    let path = PathBuf::from(format!("/proc/{pid}/mem"));
    File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => MemoryError::denied(pid, source),
        io::ErrorKind::NotFound => MemoryError::Gone { pid },
        _ => MemoryError::Failed { pid, source },
    })
}

fn read_from_file(file: &File, batch: &mut Batch, from: usize) {
    for number in from..batch.places.len() {
        let (place, start) = (batch.places[number], batch.starts[number]);
        let Some(bytes) = batch.bytes.get_mut(start..start + place.length as usize) else { return };
        batch.present[number] = file.read_exact_at(bytes, place.address).is_ok();
    }
}

/// Reads places from number `from` on with one system call; gives how many are dealt with. The
/// kernel stops at the first place that is not mapped, so that one is dealt with as absent.
fn read_vectors(pid: u32, batch: &mut Batch, from: usize) -> io::Result<usize> {
    let until = batch.places.len().min(from + PLACES_PER_CALL);
    let remote: Vec<libc::iovec> = batch.places[from..until]
        .iter()
        .map(|place| libc::iovec {
            iov_base: place.address as *mut libc::c_void,
            iov_len: place.length as usize,
        })
        .collect();
    let wanted: usize = remote.iter().map(|vector| vector.iov_len).sum();
    let into = &mut batch.bytes[batch.starts[from]..][..wanted];
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: wanted };
    // SAFETY: `local` covers exactly the bytes of `into`, which are borrowed mutably and outlive
    // the call, and the kernel writes nowhere else. The remote addresses belong to the other
    // process; the kernel checks them and never reads them in our address space.
    let read = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    let mut left = match read {
        -1 => {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EFAULT) {
                return Err(error);
            }
            0
        }
        read => read as usize,
    };
    for number in from..until {
        let length = batch.places[number].length as usize;
        if length > left {
            return Ok(number - from + 1);
        }
        batch.present[number] = true;
        left -= length;
    }
    Ok(until - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::batch::PAGE;

    fn own() -> ProcessMemory {
        ProcessMemory::of(std::process::id())
    }

    #[test]
    fn a_place_that_is_not_mapped_is_absent_and_the_others_are_read() {
        let (one, two) = ([1u8, 2, 3], [4u8; 9]);
        let mut batch = Batch::default();
        batch.add(Place::new(one.as_ptr() as u64, 3));
        batch.add(Place::new(8, 16));
        batch.add(Place::new(u64::MAX - 4, 16));
        batch.add(Place::new(two.as_ptr() as u64, 9));
        batch.add(Place::new(0, 0));
        for mut memory in [own(), by_file()] {
            memory.read(&mut batch).unwrap();
            assert_eq!(batch.get(0), Some(&one[..]));
            assert_eq!((batch.get(1), batch.get(2)), (None, None));
            assert_eq!(batch.get(3), Some(&two[..]));
            assert_eq!(batch.get(4), Some(&[][..]));
            assert_eq!(batch.joined(3, 2), Some(&two[..]));
            assert_eq!(batch.joined(2, 2), None);
            assert_eq!(batch.joined(3, 9), None);
        }
    }

    fn by_file() -> ProcessMemory {
        let pid = std::process::id();
        ProcessMemory {
            file: Some(File::open("/proc/self/mem").unwrap()),
            ..ProcessMemory::of(pid)
        }
    }

    #[test]
    fn more_places_than_one_call_takes_are_all_read() {
        let numbers: Vec<u64> = (0..5000).collect();
        let mut batch = Batch::default();
        for (at, number) in numbers.iter().enumerate() {
            let address = if at % 1000 == 999 { 1 } else { std::ptr::from_ref(number) as u64 };
            batch.add(Place::new(address, 8));
        }
        own().read(&mut batch).unwrap();
        for (at, number) in numbers.iter().enumerate() {
            let want = (at % 1000 != 999).then(|| number.to_ne_bytes());
            assert_eq!(batch.get(at), want.as_ref().map(|bytes| &bytes[..]), "place {at}");
        }
    }

    #[test]
    fn a_zero_ended_string_is_read_across_a_page_and_at_the_last_page() {
        let text = b"waiting for handler commit\0rest";
        let mut pages = vec![b'x'; 3 * PAGE as usize];
        let base = pages.as_ptr() as u64;
        let boundary = base.next_multiple_of(PAGE);
        for before in [0, 1, 5, 26, 27, 31] {
            let at = (boundary + PAGE - before - base) as usize;
            pages[at..at + text.len()].copy_from_slice(text);
            let mut batch = Batch::default();
            for place in Place::zero_ended(base + at as u64, 64) {
                batch.add(place);
            }
            own().read(&mut batch).unwrap();
            assert_eq!(batch.zero_ended(0), Some(&text[..26]), "{before} bytes before the page");
            batch.present[1] = false;
            let whole = before == 0 || before >= 27;
            assert_eq!(batch.zero_ended(0).is_some(), whole, "{before} bytes before the page");
        }
    }

    #[test]
    fn a_process_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let error = ProcessMemory::of(child.id()).read_one(Place::new(4096, 8)).unwrap_err();
        assert!(matches!(error, MemoryError::Gone { .. }), "{error}");
    }
}
