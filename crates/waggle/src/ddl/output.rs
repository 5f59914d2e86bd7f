//! Writing lines, by a thread of its own, so that the capture does not wait for a disk or a reader.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::line::Line;

/// Lines that may wait to be written. With more the source waits, since none may be left out.
const WAITING_MAX: usize = 10_000;

/// Where lines go.
pub(crate) trait Destination: Send {
    /// Takes a line.
    fn write(&mut self, line: &Line) -> io::Result<()>;

    /// No other line is there for now.
    fn flush(&mut self) -> io::Result<()>;

    /// No line will follow.
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// The thread that writes.
pub(crate) struct Writer {
    /// None once it is closed.
    to: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Writer {
    /// Begins to write.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(mut out: Box<dyn Destination>) -> io::Result<Writer> {
        let (to, from) = sync_channel(WAITING_MAX);
        let write = move || {
            write_all(&from, out.as_mut())?;
            out.close()
        };
        let thread = thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(Writer { to: Some(to), thread: Some(thread) })
    }

    /// Hands over a line.
    ///
    /// # Errors
    /// That of the destination, where it failed.
    pub(crate) fn write(&mut self, line: Line) -> io::Result<()> {
        match self.to.as_ref().map(|to| to.send(line)) {
            Some(Ok(())) => Ok(()),
            // The thread has ended, and says why.
            _ => self.close(),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// That of the destination, where it failed.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.to = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the output has failed")))
    }
}

fn write_all(from: &Receiver<Line>, out: &mut dyn Destination) -> io::Result<()> {
    for line in from {
        out.write(&line)?;
        while let Ok(line) = from.try_recv() {
            out.write(&line)?;
        }
        out.flush()?;
    }
    Ok(())
}
