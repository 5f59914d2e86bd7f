//! The ring buffer, drained on our own time.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use libbpf_rs::libbpf_sys;

/// Whoever takes the records of a drain that is under way.
type Consumer = NonNull<dyn FnMut(&[u8])>;

/// A consumer of a ring buffer map. Records are handed out where they lie, without a copy.
pub(super) struct Ring {
    handle: NonNull<libbpf_sys::ring_buffer>,
    /// Where the callback finds the consumer of the drain that is under way.
    consumer: Box<Option<Consumer>>,
}

impl Ring {
    /// Maps the ring buffer of a map.
    pub(super) fn new(map: BorrowedFd<'_>) -> std::io::Result<Ring> {
        let mut consumer: Box<Option<Consumer>> = Box::new(None);
        let context = std::ptr::from_mut(consumer.as_mut()).cast::<c_void>();
        // SAFETY: the descriptor is valid for the call; `context` points into a box that lives as
        // long as the handle, since both are members of `Ring`.
        let handle = unsafe {
            libbpf_sys::ring_buffer__new(
                map.as_raw_fd(),
                Some(on_record),
                context,
                std::ptr::null(),
            )
        };
        let handle = NonNull::new(handle).ok_or_else(std::io::Error::last_os_error)?;
        Ok(Ring { handle, consumer })
    }

    /// Hands at most `limit` records to `consume`, oldest first, and returns how many there were.
    pub(super) fn drain(&mut self, limit: usize, consume: &mut dyn FnMut(&[u8])) -> usize {
        // SAFETY: only the lifetime is widened. The pointer is taken out again before this
        // function returns, and libbpf calls back only inside `consume_n`.
        let consume = unsafe {
            std::mem::transmute::<NonNull<dyn FnMut(&[u8]) + '_>, Consumer>(NonNull::from(consume))
        };
        *self.consumer = Some(consume);
        // SAFETY: the handle is valid until `drop`.
        let drained =
            unsafe { libbpf_sys::ring_buffer__consume_n(self.handle.as_ptr(), limit as u64) };
        *self.consumer = None;
        usize::try_from(drained).unwrap_or(0)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the handle came from `ring_buffer__new` and is not used again.
        unsafe { libbpf_sys::ring_buffer__free(self.handle.as_ptr()) }
    }
}

unsafe extern "C" fn on_record(context: *mut c_void, data: *mut c_void, size: u64) -> c_int {
    // SAFETY: `context` is the box of `Ring`, which outlives every call.
    let consumer = unsafe { &mut *context.cast::<Option<Consumer>>() };
    // SAFETY: libbpf hands out a committed record of `size` bytes, valid during the call.
    let record = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
    if let Some(consumer) = consumer {
        // SAFETY: `drain` has put in a reference that it borrows uniquely until it returns.
        unsafe { consumer.as_mut()(record) };
    }
    0
}
