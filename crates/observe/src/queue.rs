//! A queue in front of a sink that may wait: a disk, a pipe, a network.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the end of a thread is waited for where it may be stuck.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The way to a sink that has a thread of its own. Offering never waits: what finds no room, or finds the sink
/// ended, is lost and counted.
pub struct Queue<T> {
    /// `None` once it is closed.
    to: Option<SyncSender<Parcel<T>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Why the sink has failed.
    failure: Option<io::Error>,
    room: Room,
    offered: u64,
    refused: u64,
    /// How much of what was refused [`Queue::trouble`] has told.
    told: u64,
    has_told_failure: bool,
    counts: Arc<Counts>,
}

/// What may wait in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Parcels.
    pub parcels: usize,
    /// Bytes of them all. A parcel with more is taken where no other waits.
    pub bytes: u64,
}

/// How large a parcel is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Statements, records or lines.
    pub count: u64,
    /// Bytes of memory, about.
    pub bytes: u64,
}

/// What a sink loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It has failed, and takes nothing any more: why.
    Failed(String),
    /// There was no room.
    Lost {
        /// For this many, since that was told last.
        now: u64,
        /// For this many in all.
        all: u64,
    },
}

/// How a queue has ended.
#[derive(Debug)]
pub struct Ended {
    /// What was offered and is not written.
    pub unwritten: u64,
    /// Why the sink failed. `None`: it did not, but may be stuck.
    pub failure: Option<io::Error>,
}

/// What the thread of a sink tells.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    waiting_bytes: AtomicU64,
}

/// Writes for a [`Queue`]. It may wait.
pub trait Writer<T>: Send {
    /// Writes something.
    ///
    /// # Errors
    /// It cannot be written. Nothing else is written then.
    fn write(&mut self, what: T) -> io::Result<()>;

    /// Nothing waits for now: what was written is to be where it belongs.
    ///
    /// # Errors
    /// It cannot be.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Nothing will follow.
    ///
    /// # Errors
    /// As for [`Writer::flush`].
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl<T, F: FnMut(T) -> io::Result<()> + Send> Writer<T> for F {
    fn write(&mut self, what: T) -> io::Result<()> {
        self(what)
    }
}

/// Something to write.
struct Parcel<T> {
    what: T,
    size: Size,
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread of a sink.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        name: &str,
        room: Room,
        mut out: impl Writer<T> + 'static,
    ) -> io::Result<Queue<T>> {
        let (to, from) = sync_channel(room.parcels);
        let counts = Arc::<Counts>::default();
        let of_thread = counts.clone();
        let run = move || follow(&from, &of_thread, &mut out);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Queue {
            to: Some(to),
            thread: Some(thread),
            failure: None,
            room,
            offered: 0,
            refused: 0,
            told: 0,
            has_told_failure: false,
            counts,
        })
    }

    /// Offers something. Returns whether it was taken.
    pub fn offer(&mut self, what: T, size: Size) -> bool {
        self.offered += size.count;
        let fits = self.has_room(size.bytes);
        // It waits before the thread can take it.
        self.counts.waiting_bytes.fetch_add(size.bytes, Ordering::AcqRel);
        let parcel = Parcel { what, size };
        let to = self.to.as_ref().filter(|_| fits);
        let is_taken = to.is_some_and(|to| to.try_send(parcel).is_ok());
        if !is_taken {
            self.counts.waiting_bytes.fetch_sub(size.bytes, Ordering::AcqRel);
            self.refused += size.count;
        }
        is_taken
    }

    /// Whether there is room for this many bytes more.
    pub fn has_room(&self, bytes: u64) -> bool {
        let waiting = self.counts.waiting_bytes.load(Ordering::Acquire);
        waiting == 0 || waiting + bytes <= self.room.bytes
    }

    /// Whether the sink has ended by itself, as one does that has failed.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Why the sink has failed.
    pub fn failure(&mut self) -> Option<&io::Error> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            let aborted = |_| Err(io::Error::other("its thread was aborted"));
            self.failure = thread.join().unwrap_or_else(aborted).err();
        }
        self.failure.as_ref()
    }

    /// What became known of its losses since the last call. Nothing follows a failure: how much that costs is known
    /// at the end.
    pub fn trouble(&mut self) -> Option<Trouble> {
        if let Some(error) = self.failure() {
            let why = error.to_string();
            let is_new = !std::mem::replace(&mut self.has_told_failure, true);
            return is_new.then_some(Trouble::Failed(why));
        }
        let now = self.refused - std::mem::replace(&mut self.told, self.refused);
        (now > 0).then_some(Trouble::Lost { now, all: self.refused })
    }

    /// Takes no more, and waits until everything is written, at most for `patience`. A thread that is stuck is left
    /// behind.
    pub fn close(&mut self, patience: Duration) -> Ended {
        self.to = None;
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() <= patience {
            thread::sleep(LOOK_EVERY);
        }
        self.failure();
        Ended { unwritten: self.unwritten(), failure: self.failure.take() }
    }

    /// What was offered and is not written; after [`Queue::close`] it is lost.
    pub fn unwritten(&self) -> u64 {
        self.offered.saturating_sub(self.counts.written.load(Ordering::Acquire))
    }
}

fn follow<T>(
    from: &Receiver<Parcel<T>>,
    counts: &Counts,
    out: &mut dyn Writer<T>,
) -> io::Result<()> {
    for first in from {
        let (mut next, mut pending) = (Some(first), 0);
        while let Some(Parcel { what, size }) = next {
            let written = out.write(what);
            counts.waiting_bytes.fetch_sub(size.bytes, Ordering::AcqRel);
            if let Err(error) = written {
                // What was written before it may be there.
                let is_there = out.flush().is_ok();
                counts.written.fetch_add(if is_there { pending } else { 0 }, Ordering::Release);
                return Err(error);
            }
            pending += size.count;
            next = from.try_recv().ok();
        }
        out.flush()?;
        counts.written.fetch_add(pending, Ordering::Release);
    }
    out.close()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn room(parcels: usize) -> Room {
        Room { parcels, bytes: 1000 }
    }

    fn of(count: u64) -> Size {
        Size { count, bytes: 0 }
    }

    /// A sink that tells what it is at, and waits at each until it is let go on.
    fn stuck(room: Room) -> (Queue<u32>, mpsc::Sender<()>, mpsc::Receiver<u32>) {
        let (open, gate) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let write = move |what: u32| {
            tell.send(what).map_err(io::Error::other)?;
            gate.recv().map_err(io::Error::other)
        };
        (Queue::start("stuck", room, write).unwrap(), open, told)
    }

    #[test]
    fn what_finds_no_room_is_lost_and_counted_and_nobody_waits() {
        let (mut queue, open, told) = stuck(room(2));
        assert!(queue.offer(1, of(10)));
        assert_eq!(told.recv_timeout(PATIENCE), Ok(1), "it is stuck with the first");
        assert!(queue.offer(2, of(20)) && queue.offer(3, of(30)));
        assert_eq!(queue.trouble(), None);
        assert!(!queue.offer(4, of(40)) && !queue.offer(5, of(50)));
        assert_eq!(queue.unwritten(), 150);
        assert_eq!(queue.trouble(), Some(Trouble::Lost { now: 90, all: 90 }));
        assert_eq!(queue.trouble(), None, "it is told once");
        assert!(!queue.offer(6, of(5)));
        assert_eq!(queue.trouble(), Some(Trouble::Lost { now: 5, all: 95 }));
        (0..3).for_each(|_| open.send(()).unwrap());
        let Ended { unwritten, failure } = queue.close(PATIENCE);
        assert!(unwritten == 95 && failure.is_none(), "{unwritten} {failure:?}");
        assert!(!queue.offer(7, of(5)));
        assert_eq!(queue.unwritten(), 100);
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_one_large_parcel_is_not_refused_for_ever() {
        let (mut queue, open, told) = stuck(room(100));
        let of_bytes = |bytes| Size { count: 1, bytes };
        assert!(queue.offer(1, of_bytes(5000)), "nothing else waits");
        assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
        assert!(!queue.offer(2, of_bytes(1)), "it is still being written");
        open.send(()).unwrap();
        while queue.unwritten() > 1 {
            thread::yield_now();
        }
        assert!(queue.offer(3, of_bytes(600)) && queue.offer(4, of_bytes(400)));
        assert!(!queue.offer(5, of_bytes(1)));
        (0..2).for_each(|_| open.send(()).unwrap());
        assert_eq!(queue.close(PATIENCE).unwritten, 2);
        assert_eq!(told.iter().collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn a_sink_that_fails_loses_all_that_comes_after_and_says_why() {
        let mut queue = Queue::start("full", room(8), |what: u32| match what {
            0..3 => Ok(()),
            _ => Err(io::Error::other("no space left")),
        })
        .unwrap();
        (0..5).for_each(|what| assert!(queue.offer(what, of(1))));
        let trouble = loop {
            if let Some(trouble) = queue.trouble() {
                break trouble;
            }
            thread::yield_now();
        };
        assert_eq!(trouble, Trouble::Failed("no space left".to_owned()));
        assert!(queue.has_ended() && !queue.offer(5, of(1)));
        assert_eq!(queue.trouble(), None);
        let Ended { unwritten, failure } = queue.close(PATIENCE);
        assert_eq!((failure.unwrap().to_string().as_str(), unwritten), ("no space left", 3));
    }

    #[test]
    fn a_stuck_sink_does_not_hold_up_the_end() {
        let (mut queue, _open, _told) = stuck(room(1));
        assert!(queue.offer(1, of(1)));
        let Ended { unwritten, failure } = queue.close(Duration::from_millis(50));
        assert!(unwritten == 1 && failure.is_none(), "{unwritten} {failure:?}");
    }
}
