//! Opens the terminal so that no write blocks for ever.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// How long a terminal that takes no output may hold up the end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long to wait for room before it is asked whether to end.
const ROOM_AWAITED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Opens the terminal of the standard output a second time. Non-blocking mode on the standard
/// output would also apply to the shell, which shares it.
pub(super) fn open() -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    File::options().read(true).write(true).custom_flags(flags).open("/proc/self/fd/1")
}

/// Writes to the terminal, and waits while it takes no output, until the view is to end.
pub(super) struct Tty {
    file: File,
    is_to_end: Arc<AtomicBool>,
    /// When it stopped accepting output.
    blocked_at: Option<Instant>,
}

impl Tty {
    /// To this terminal. `is_to_end` tells that the view is to end.
    pub(super) fn new(file: File, is_to_end: Arc<AtomicBool>) -> Tty {
        Tty { file, is_to_end, blocked_at: None }
    }
}

impl Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let blocked_at = *self.blocked_at.get_or_insert_with(Instant::now);
                    if self.is_to_end.load(Ordering::Relaxed) && blocked_at.elapsed() >= LAST_WORDS
                    {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    // That it fails is found out by writing.
                    let _ =
                        poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&ROOM_AWAITED));
                }
                written => {
                    self.blocked_at = None;
                    return written;
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
