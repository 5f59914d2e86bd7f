//! Words beside the output, which may be read by a program.

use std::io;
use std::time::Duration;

use waggle_observe::{Queue, Room, Size};

use crate::streams::tell;

/// Sentences that wait. Beyond that the reader is stuck, and misses some.
const WAITING_MAX: Room = Room { parcels: 256, bytes: 1 << 20 };
/// How long the last ones may take at the end.
const END_AWAITED: Duration = Duration::from_secs(1);

/// Says things on standard error, on a thread of its own: who empties the rings must not wait for a
/// reader.
pub(crate) struct Said {
    queue: Queue<String>,
    /// Sentences that found no room since the last one that did.
    left_out: u64,
}

impl Said {
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start() -> io::Result<Said> {
        let write = |words: String| {
            tell!("waggle: {words}");
            Ok(())
        };
        Ok(Said { queue: Queue::start("said", WAITING_MAX, write)?, left_out: 0 })
    }

    pub(crate) fn tell(&mut self, words: &str) {
        if self.left_out > 0 {
            let words = format!("{} messages are missing here: nobody read them", self.left_out);
            self.left_out = if self.offer(words) { 0 } else { self.left_out };
        }
        self.left_out += u64::from(!self.offer(words.to_owned()));
    }

    fn offer(&mut self, words: String) -> bool {
        let size = Size { count: 1, bytes: words.len() as u64 };
        self.queue.offer(words, size)
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        // Nobody is left who could be told of a failure.
        let _ = self.queue.close(END_AWAITED);
    }
}
