//! A process of waggle's own that touches what may hold up who touches it: the memory of other processes, and files
//! that they chose. A file system in user space (FUSE) can let such a look wait for ever, and nothing ends the wait of a
//! thread. So this process is given up, and another one takes its place.
//!
//! It decodes nothing, so nothing can take it over, and it keeps its rights.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use waggle_host::{FileAt, Meter, Process, User};
use waggle_model::Reading;

use super::batch::Batch;
use super::child::{self, Started};
use super::held_up::{HeldUp, Over, Patience};
use super::process_memory::{MemoryError, ProcessMemory};
use crate::urgent;

/// What is asked, as the first number of a question; then comes the process, the length of the rest, and the rest.
const MEMORY: u32 = 0;
const DURABLE_NAME: u32 = 1;
const USER_NAME: u32 = 2;
const FILE: u32 = 3;

/// What is answered, as the first number of an answer; then comes a number of the system's, the length of the rest, and
/// the rest.
const DONE: u32 = 0;
const NONE: u32 = 1;
const GONE: u32 = 2;
const DENIED: u32 = 3;
const FAILED: u32 = 4;

/// Longest path that is asked for, and longest name that is answered, bytes.
const TEXT_MAX: usize = 4096;
/// How long a new reader may take until it is ready.
const START_MAX: Duration = Duration::from_secs(10);
/// How long it is waited until it is looked again at what the reader does.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The one of this process.
static READER: LazyLock<Mutex<Reader>> = LazyLock::new(Mutex::default);

/// Starts it, so that nobody who empties rings waits for its start.
pub(super) fn prepare() {
    let mut reader = the_one();
    if reader.running.is_none() {
        // Who asks it hears why there is none.
        reader.running = Running::start().ok();
    }
}

/// Reads places in the memory of a process; tells also how long that was waited for, where it was not there at once.
pub(super) fn read(pid: u32, batch: &mut Batch) -> (Result<(), MemoryError>, Duration) {
    batch.prepare();
    let mut places = Vec::new();
    batch.write_places(&mut places);
    let mut reader = the_one();
    let waited_before = reader.waited;
    let answer = reader.ask(pid, MEMORY, &places, |kind, errno, length, answers| {
        Ok(match kind {
            DONE if length == batch.length_read() => {
                Ok(batch.take_read(|into| answers.take(into))?)
            }
            GONE => Err(MemoryError::Gone { pid }),
            DENIED => Err(MemoryError::denied(pid, io::Error::from_raw_os_error(errno))),
            FAILED => Err(MemoryError::Failed { pid, source: io::Error::from_raw_os_error(errno) }),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    });
    let read = match answer {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(MemoryError::Late { pid }),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Err(MemoryError::Withheld { pid })
        }
        Err(source) => Err(MemoryError::Failed { pid, source }),
    };
    (read, reader.waited.saturating_sub(waited_before))
}

/// As [`Process::durable_name`]; `None` also where that is not told in time.
pub fn durable_name(pid: u32) -> Option<Vec<u8>> {
    if child::are_used() { text(pid, DURABLE_NAME, b"") } else { Process::of(pid).durable_name() }
}

/// As [`Process::user`]; without a name also where that is not told in time.
pub fn user(pid: u32) -> Reading<User> {
    let process = Process::of(pid);
    if !child::are_used() {
        return process.user();
    }
    process.user_ids().map(|[_, uid, _]| {
        let name = text(pid, USER_NAME, b"").and_then(|name| String::from_utf8(name).ok());
        User { uid, name }
    })
}

/// The file at a path that leads through the folder of a process; `None` if there is none, or where that is not told in
/// time.
pub fn file_at(pid: u32, path: &Path) -> Option<FileAt> {
    if !child::are_used() {
        return FileAt::of(path);
    }
    let told = text(pid, FILE, path.as_os_str().as_bytes())?;
    Some(FileAt::from_bytes(told.try_into().ok()?))
}

/// What the reader has cost so far, with those before it: processor time, and bytes of memory now.
pub fn reader_cost() -> (Duration, u64) {
    let reader = the_one();
    let (cpu, rss) = reader.running.as_ref().map(Running::cost).unwrap_or_default();
    (reader.cpu_before + cpu, rss)
}

/// Does what is asked at the standard input until that ends, and writes to the standard output.
pub(super) fn serve(asked: &mut impl Read, out: &mut impl Write) -> io::Result<()> {
    // It is ready.
    out.write_all(&[1])?;
    out.flush()?;
    let mut head = [0; 12];
    while asked.read_exact(&mut head).is_ok() {
        let [kind, pid, length] = numbers(head);
        let mut rest = vec![0; length as usize];
        asked.read_exact(&mut rest)?;
        answer(kind, pid, &rest, out)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(kind: u32, pid: u32, rest: &[u8], out: &mut impl Write) -> io::Result<()> {
    let process = Process::of(pid);
    let text = match kind {
        MEMORY => return answer_memory(pid, rest, out),
        DURABLE_NAME => process.durable_name(),
        USER_NAME => {
            process.user().value().and_then(|user| user.name.clone()).map(String::into_bytes)
        }
        _ => FileAt::of(Path::new(OsStr::from_bytes(rest))).map(|file| file.to_bytes().to_vec()),
    };
    let text = text.filter(|text| text.len() <= TEXT_MAX);
    write_head(
        out,
        if text.is_some() { DONE } else { NONE },
        0,
        text.as_ref().map_or(0, Vec::len),
    )?;
    out.write_all(&text.unwrap_or_default())
}

fn answer_memory(pid: u32, places: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut batch = Batch::of_places(places);
    let errno = |error: io::Error| error.raw_os_error().unwrap_or(0);
    match ProcessMemory::of(pid).read_here(&mut batch) {
        Ok(()) => {
            write_head(out, DONE, 0, batch.length_read())?;
            batch.write_read(out)
        }
        Err(MemoryError::Gone { .. }) => write_head(out, GONE, 0, 0),
        Err(MemoryError::Denied { source, .. }) => write_head(out, DENIED, errno(source), 0),
        Err(MemoryError::Failed { source, .. }) => write_head(out, FAILED, errno(source), 0),
        Err(MemoryError::Late { .. } | MemoryError::Withheld { .. }) => {
            write_head(out, FAILED, 0, 0)
        }
    }
}

fn write_head(out: &mut impl Write, kind: u32, errno: i32, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(io::Error::other)?;
    out.write_all(&bytes([kind, errno.cast_unsigned(), length]))
}

fn numbers(bytes: [u8; 12]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_ne_bytes)
}

fn bytes(numbers: [u32; 3]) -> [u8; 12] {
    let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = numbers.map(u32::to_ne_bytes);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

fn the_one() -> MutexGuard<'static, Reader> {
    READER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(pid: u32, kind: u32, rest: &[u8]) -> Option<Vec<u8>> {
    let text = the_one().ask(pid, kind, rest, |kind, _, length, answers| {
        if kind != DONE || length > TEXT_MAX {
            return Ok(None);
        }
        let mut text = vec![0; length];
        answers.take(&mut text)?;
        Ok(Some(text))
    });
    text.ok()?
}

/// The process that looks, and who held it up.
#[derive(Default)]
struct Reader {
    running: Option<Running>,
    held_up: HeldUp,
    cpu_before: Duration,
    /// How long it was waited for in all.
    waited: Duration,
}

impl Reader {
    /// Asks about a process; `take` gets the head of the answer, and takes the rest.
    fn ask<T>(
        &mut self,
        pid: u32,
        kind: u32,
        rest: &[u8],
        mut take: impl FnMut(u32, i32, usize, &mut Answers<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.held_up.is_put_off(pid) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = u32::try_from(rest.len()).map_err(io::Error::other)?;
        let question = [&bytes([kind, pid, length])[..], rest].concat();
        let mut tries = 0..2;
        loop {
            let mut running = match self.running.take() {
                Some(running) => running,
                None => Running::start()?,
            };
            if let Err(error) = running.get_ready() {
                running.killed().wait()?;
                return Err(error);
            }
            let mut patience = Patience::with(pid, running.process.id());
            let answer = running.ask(&question, &mut patience, &mut take);
            self.waited += patience.waited();
            match answer {
                Ok(answer) => {
                    self.held_up.note_answer(pid, patience.waited());
                    self.running = Some(running);
                    return Ok(answer);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.cpu_before += running.cost().0;
                    self.held_up.note(pid, patience.waited(), running.killed());
                    self.running = Running::start().ok();
                    return Err(error);
                }
                // Somebody has ended it: the system may have lacked memory. Or it does not get to run.
                Err(error) => {
                    self.cpu_before += running.cost().0;
                    self.held_up.leave(pid, running.killed());
                    if tries.next().is_none() {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// A reader at work.
struct Running {
    process: process::Child,
    asks: File,
    answers: File,
    is_ready: bool,
}

impl Running {
    /// Starts one. It is not ready yet.
    fn start() -> io::Result<Running> {
        let Started { process, asks, answers } = Started::reader()?;
        // Who empties the rings waits for it. Where we have no right to it, it waits for the processor.
        let _ = urgent::hasten(process.id());
        Ok(Running { process, asks, answers, is_ready: false })
    }

    /// Waits until it is ready: that is no time in which somebody holds it up.
    fn get_ready(&mut self) -> io::Result<()> {
        if !self.is_ready {
            let mut patience = Patience::lasting(START_MAX, self.process.id());
            let taken = Answers { from: &self.answers, patience: &mut patience }.take(&mut [0]);
            taken
                .map_err(|error| io::Error::other(format!("the reader does not start: {error}")))?;
            self.is_ready = true;
        }
        Ok(())
    }

    fn ask<T>(
        &mut self,
        question: &[u8],
        patience: &mut Patience,
        take: &mut impl FnMut(u32, i32, usize, &mut Answers<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut rest = question;
        while !rest.is_empty() {
            match self.asks.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) => wait(&self.asks, PollFlags::OUT, error, patience)?,
            }
        }
        let mut answers = Answers { from: &self.answers, patience };
        let mut head = [0; 12];
        answers.take(&mut head)?;
        let [kind, errno, length] = numbers(head);
        take(kind, errno.cast_signed(), length as usize, &mut answers)
    }

    /// Kills it.
    fn killed(mut self) -> process::Child {
        // It may have ended already.
        let _ = self.process.kill();
        self.process
    }

    fn cost(&self) -> (Duration, u64) {
        let pid = self.process.id();
        let cpu_ns = Meter::of(pid).and_then(|meter| meter.cpu_ns()).unwrap_or(0);
        let rss = Process::of(pid).rss_bytes().value().copied().unwrap_or(0);
        (Duration::from_nanos(cpu_ns), rss)
    }
}

/// What a reader writes.
struct Answers<'a> {
    from: &'a File,
    patience: &'a mut Patience,
}

impl Answers<'_> {
    /// Takes its next bytes.
    fn take(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        let mut from = self.from;
        while !into.is_empty() {
            match from.read(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => into = into.get_mut(read..).unwrap_or_default(),
                Err(error) => wait(from, PollFlags::IN, error, self.patience)?,
            }
        }
        Ok(())
    }
}

/// Waits until a pipe can be used that could not, or as long as patience lasts.
fn wait(pipe: &File, to: PollFlags, error: io::Error, patience: &mut Patience) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => return Ok(()),
        io::ErrorKind::WouldBlock => {}
        _ => return Err(error),
    }
    let over = patience.look();
    // What came while nobody looked is taken however late it is.
    let turn = if over.is_some() { Timespec { tv_sec: 0, tv_nsec: 0 } } else { TURN };
    match poll(&mut [PollFd::new(pipe, to)], Some(&turn)) {
        Ok(0) => match over {
            None => Ok(()),
            Some(Over::HeldUp) => Err(io::ErrorKind::TimedOut.into()),
            Some(Over::Withheld) => Err(io::ErrorKind::ResourceBusy.into()),
        },
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Place;

    /// What is answered to one question, behind the byte that says that it is ready.
    fn answered(kind: u32, pid: u32, rest: &[u8]) -> ([u32; 3], Vec<u8>) {
        let question = [&bytes([kind, pid, rest.len() as u32])[..], rest].concat();
        let mut out = Vec::new();
        serve(&mut &question[..], &mut out).unwrap();
        let head = numbers(out[1..13].try_into().unwrap());
        (head, out[13..].to_vec())
    }

    #[test]
    fn each_question_is_answered() {
        let (own, text) = (process::id(), b"text");
        let mut batch = Batch::default();
        batch.add(Place::new(text.as_ptr() as u64, 4));
        batch.add(Place::new(8, 2));
        let mut places = Vec::new();
        batch.write_places(&mut places);
        let (head, read) = answered(MEMORY, own, &places);
        assert_eq!((head, &read[..]), ([DONE, 0, 8], &[&[1, 0], &text[..], &[0, 0]].concat()[..]));
        assert_eq!(answered(MEMORY, 1 << 30, &places).0, [GONE, 0, 0]);
        let name = Process::of(own).durable_name().unwrap();
        assert_eq!(answered(DURABLE_NAME, own, b"").1, name);
        assert_eq!(answered(DURABLE_NAME, 1 << 30, b"").0, [NONE, 0, 0]);
        let file = FileAt::of(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(answered(FILE, own, b"/proc/self/exe").1, file.to_bytes());
        assert_eq!(answered(FILE, own, b"/nowhere").0, [NONE, 0, 0]);
    }
}
