//! Memory of a kernel map that waggle shares.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The values of an array map that was made with `BPF_F_MMAPABLE`, from the first on. What lies in
/// it is changed by others at any time, so it is reached through pointers and atomics only.
pub(crate) struct Mapped {
    memory: NonNull<u8>,
    bytes: usize,
}

impl Mapped {
    /// Maps the first `bytes` bytes.
    ///
    /// # Errors
    ///
    /// The kernel's, where the map is smaller or cannot be mapped.
    pub(crate) fn new(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapped> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that nobody has; it is freed by `drop` alone.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, map, 0) }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { memory, bytes })
    }

    /// The byte at `offset`, which must lie within.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "{offset} lies outside of the {} mapped bytes", self.bytes);
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.memory.add(offset) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is what `new` mapped. Nothing borrows it: pointers are used while the owner
        // of this lives.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
