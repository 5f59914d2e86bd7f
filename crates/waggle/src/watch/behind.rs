//! An output that is written by a thread of its own, so that the capture does not wait for it: a
//! thousand digests are long to write, and who reads a pipe may be slow.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::output::{Finished, Output};

/// Intervals that may wait to be written. With more the capture waits, since none may be left out.
const WAITING_MAX: usize = 4;

enum Message {
    Intervals(Vec<Finished>),
    News(String),
}

/// An output as the capture sees it.
pub(crate) struct Behind {
    /// None once it is closed.
    to: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Behind {
    /// Begins to write to `out`.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn start(mut out: impl Output + Send + 'static) -> io::Result<Behind> {
        let (to, from) = sync_channel(WAITING_MAX);
        let write = move || {
            for message in from {
                match message {
                    Message::Intervals(finished) => out.take(finished)?,
                    Message::News(news) => out.tell(&news)?,
                }
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(Behind { to: Some(to), thread: Some(thread) })
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    ///
    /// That of the output, where it failed.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.to = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the output has failed")))
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        match self.to.as_ref().map(|to| to.send(message)) {
            Some(Ok(())) => Ok(()),
            // The thread has ended, and says why.
            _ => self.close(),
        }
    }
}

impl Output for Behind {
    fn take(&mut self, finished: Vec<Finished>) -> io::Result<()> {
        self.send(Message::Intervals(finished))
    }

    fn tell(&mut self, news: &str) -> io::Result<()> {
        self.send(Message::News(news.to_owned()))
    }
}
