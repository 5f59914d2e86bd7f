//! Reading the memory of another process, many places at once.
//!
//! A read takes nothing from the other process but the lock of its address space, for reading and
//! for a moment. What is read may change while it is read: the caller checks what must be whole.
//! An address or a length that was itself read from the other process is not trusted: lengths are
//! cut, and a place that is not mapped is absent, not an error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use thiserror::Error;

/// Most bytes that one place gives; a longer one is cut. The largest text that can be asked for.
pub const LONGEST_PLACE: u32 = 64 * 1024;

/// Most places per system call: `UIO_MAXIOV` of `include/uapi/linux/uio.h`.
const PLACES_PER_CALL: usize = 1024;

/// Smallest page of any architecture that we run on: a read that ends with a page of this size
/// never touches one more page than it must.
const PAGE: u64 = 4096;

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
    /// The kernel refuses.
    #[error("process {pid}: its memory may not be read; run as root or give CAP_SYS_PTRACE")]
    Denied {
        /// The process.
        pid: u32,
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

/// Some bytes of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    address: u64,
    length: u32,
}

impl Place {
    /// `length` bytes, at most [`LONGEST_PLACE`], from `address` on.
    pub fn new(address: u64, length: u64) -> Self {
        Self { address, length: length.min(u64::from(LONGEST_PLACE)) as u32 }
    }

    /// A string of unknown length that ends with a zero byte: the first `longest` bytes, as one
    /// place up to the end of the page and one behind it. The second may be missing in memory
    /// although the string is whole.
    pub fn zero_ended(address: u64, longest: u32) -> [Place; 2] {
        let to_page_end = PAGE - address % PAGE;
        let first = u64::from(longest).min(to_page_end);
        [
            Place::new(address, first),
            Place::new(address.wrapping_add(first), u64::from(longest) - first),
        ]
    }
}

/// The places to read, and afterwards what was there. Kept between reads, so that no memory is
/// asked for each time.
#[derive(Debug, Default)]
pub struct Batch {
    places: Vec<Place>,
    starts: Vec<usize>,
    present: Vec<bool>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.clear();
        self.starts.clear();
        self.present.clear();
        self.bytes.clear();
    }

    /// Adds a place; gives its number.
    pub fn add(&mut self, place: Place) -> usize {
        self.starts.push(self.starts.last().map_or(0, |start| {
            start + self.places.last().map_or(0, |before| before.length as usize)
        }));
        self.places.push(place);
        self.places.len() - 1
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What was read at a place; `None` where it could not be read whole.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        self.joined(number, 1)
    }

    /// What was read at `count` places that were added one after the other, as one piece; `None`
    /// where one of them could not be read whole.
    pub fn joined(&self, first: usize, count: usize) -> Option<&[u8]> {
        let last = (first + count).checked_sub(1)?;
        if !self.present.get(first..=last)?.iter().all(|present| *present) {
            return None;
        }
        let end = self.starts.get(last)? + self.places.get(last)?.length as usize;
        self.bytes.get(*self.starts.get(first)?..end)
    }

    /// The bytes before the first zero byte of a string that [`Place::zero_ended`] asked for.
    /// A string that does not end is cut at the length that was asked for.
    pub fn zero_ended(&self, first: usize) -> Option<&[u8]> {
        let head = self.get(first)?;
        if let Some(end) = head.iter().position(|byte| *byte == 0) {
            return head.get(..end);
        }
        let whole = self.joined(first, 2)?;
        whole.split(|byte| *byte == 0).next()
    }

    fn prepare(&mut self) {
        let total = self.places.iter().map(|place| place.length as usize).sum();
        self.bytes.clear();
        self.bytes.resize(total, 0);
        self.present.clear();
        self.present.resize(self.places.len(), false);
    }
}

/// The memory of one process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    /// `/proc/PID/mem`, where `process_vm_readv` is not allowed (seccomp of containers).
    file: Option<File>,
}

impl ProcessMemory {
    /// The memory of the process with this pid in our pid namespace. Nothing is opened yet.
    pub fn of(pid: u32) -> Self {
        Self { pid, file: None }
    }

    /// Reads every place of the batch. A place that is not mapped is absent in the batch.
    ///
    /// # Errors
    ///
    /// Where nothing of the process can be read.
    pub fn read(&mut self, batch: &mut Batch) -> Result<(), MemoryError> {
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
    /// Where nothing of the process can be read. A place that is not mapped is `None`.
    pub fn read_one(&mut self, place: Place) -> Result<Option<Vec<u8>>, MemoryError> {
        let mut batch = Batch::default();
        let number = batch.add(place);
        self.read(&mut batch)?;
        Ok(batch.get(number).map(<[u8]>::to_vec))
    }

    fn fall_back(&mut self, error: io::Error) -> Result<(), MemoryError> {
        let pid = self.pid;
        match error.raw_os_error() {
            Some(libc::ESRCH) => Err(MemoryError::Gone { pid }),
            Some(libc::EPERM | libc::ENOSYS) => {
                let path = PathBuf::from(format!("/proc/{pid}/mem"));
                let file =
                    File::open(path).map_err(|source| MemoryError::Denied { pid, source })?;
                self.file = Some(file);
                Ok(())
            }
            _ => Err(MemoryError::Failed { pid, source: error }),
        }
    }
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
        ProcessMemory { pid, file: Some(File::open("/proc/self/mem").unwrap()) }
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
    fn a_wild_length_is_cut() {
        let batch_of = |length| {
            let mut batch = Batch::default();
            batch.add(Place::new(0x1000, length));
            batch.prepare();
            batch.bytes.len()
        };
        assert_eq!(batch_of(u64::MAX), LONGEST_PLACE as usize);
        assert_eq!(batch_of(7), 7);
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
