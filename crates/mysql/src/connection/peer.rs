//! The other half of a connection: a child that runs the driver.

use std::io::{self, BufReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;
use waggle_host::{Meter, Process, start_child};

use super::frame::{self, Said};
use super::{ConnectionError, Endpoint, served};
use crate::options::Options;

/// How long the server may take to hear that we leave, and a child that is killed to end.
const QUIT_MAX: Duration = Duration::from_secs(1);
/// What is there counts, however late it is looked at.
const READ_MIN: Duration = Duration::from_millis(1);
/// What the child needs of our environment: that of OpenSSL, and of the loader that finds it.
const ENVIRONMENT: [&str; 5] =
    ["SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "OPENSSL_MODULES", "LD_LIBRARY_PATH"];
/// The code of a Rust program that panics.
const PANICKED: i32 = 101;

/// The program of the children, and its argument.
static PROGRAM: OnceLock<(PathBuf, &'static str)> = OnceLock::new();
static CHILDREN: Mutex<Children> =
    Mutex::new(Children { cpu_of_ended: Duration::ZERO, running: Vec::new(), left: Vec::new() });

/// All of this process.
struct Children {
    cpu_of_ended: Duration,
    running: Vec<u32>,
    /// Killed, and not ended yet when they were waited for.
    left: Vec<Child>,
}

fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on each connection is a child: `program`, which calls [`super::serve_as_child`] when it is started with this
/// argument alone. Without this call a thread runs the driver.
pub fn use_children(program: PathBuf, argument: &'static str) {
    // The first one holds.
    let _ = PROGRAM.set((program, argument));
}

/// What the children have cost so far: processor time, and bytes of memory now.
pub fn children_cost() -> (Duration, u64) {
    let children = children();
    let mut sum = (children.cpu_of_ended, 0);
    for pid in &children.running {
        sum.0 += cpu_of(*pid);
        sum.1 += Process::of(*pid).rss_bytes().value().copied().unwrap_or(0);
    }
    sum
}

fn cpu_of(pid: u32) -> Duration {
    Duration::from_nanos(Meter::of(pid).and_then(|meter| meter.cpu_ns()).unwrap_or(0))
}

/// Runs the driver; dropping it ends the child.
pub(super) struct Peer {
    heard: BufReader<Timed>,
    process: Option<Child>,
}

impl Peer {
    /// Starts one that is to log in there within this time.
    pub(super) fn start(
        options: &Options,
        endpoint: &Endpoint,
        within: Duration,
    ) -> Result<Peer, ConnectionError> {
        let mut peer = Peer::silent(within).map_err(ConnectionError::child)?;
        let stream = peer.said_within(within);
        let said = stream.and_then(|stream| frame::write_login(stream, options, endpoint));
        said.map_err(|error| peer.why_lost(&error))?;
        Ok(peer)
    }

    fn silent(within: Duration) -> io::Result<Peer> {
        let (own, other) = UnixStream::pair()?;
        let process = match PROGRAM.get() {
            Some((program, argument)) => {
                let mut command = Command::new(program);
                let known = |name| Some((name, std::env::var_os(name)?));
                command.arg(argument).env_clear().envs(ENVIRONMENT.into_iter().filter_map(known));
                command.stdin(OwnedFd::from(other)).stdout(Stdio::null());
                let process = start_child(command)?;
                let mut children = children();
                children.running.push(process.id());
                children.left.retain_mut(|left| matches!(left.try_wait(), Ok(None)));
                Some(process)
            }
            None => {
                thread::Builder::new().spawn(move || served::serve(other, || Ok(())))?;
                None
            }
        };
        let heard = BufReader::new(Timed { stream: own, until: Instant::now() + within });
        Ok(Peer { heard, process })
    }

    /// Says something that is to be answered within this time.
    pub(super) fn say(
        &mut self,
        what: &impl Serialize,
        within: Duration,
    ) -> Result<(), ConnectionError> {
        let said = self.said_within(within).and_then(|stream| frame::write(stream, what));
        said.map_err(|error| self.why_lost(&error))
    }

    fn said_within(&mut self, within: Duration) -> io::Result<&mut UnixStream> {
        let Timed { stream, until } = self.heard.get_mut();
        *until = Instant::now() + within;
        stream.set_write_timeout(Some(within.max(READ_MIN)))?;
        Ok(stream)
    }

    pub(super) fn hear(&mut self) -> Result<Said, ConnectionError> {
        match frame::read(&mut self.heard) {
            Ok(said) => said.ok_or_else(|| self.why_silent()),
            Err(error) => Err(self.why_lost(&error)),
        }
    }

    fn why_lost(&mut self, error: &io::Error) -> ConnectionError {
        match is_of_time(error) {
            true => ConnectionError::TooSlow,
            false => self.why_silent(),
        }
    }

    /// Why it says nothing any more.
    fn why_silent(&mut self) -> ConnectionError {
        match self.process.as_mut().and_then(ended) {
            Some(status) => why_ended(status),
            None => ConnectionError::NotBorne,
        }
    }

    /// Has it tell the server that we leave, and waits until it has.
    pub(super) fn take_leave(&mut self) {
        let Timed { stream, until } = self.heard.get_mut();
        *until = Instant::now() + QUIT_MAX;
        // It may have ended already.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = frame::read::<Said>(&mut self.heard);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.heard.get_ref().stream.shutdown(Shutdown::Both);
        let Some(mut process) = self.process.take() else { return };
        // It may have ended already.
        let _ = process.kill();
        let spent = cpu_of(process.id());
        let mut children = children();
        children.running.retain(|pid| *pid != process.id());
        children.cpu_of_ended += spent;
        drop(children);
        if ended(&mut process).is_none() {
            self::children().left.push(process);
        }
    }
}

/// How a child ended that is about to; `None` where it does not.
fn ended(process: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < QUIT_MAX => thread::sleep(READ_MIN),
            _ => return None,
        }
    }
}

/// An allocation that fails aborts, and the driver panics where it meets what it does not know: all else has to do with
/// us.
fn why_ended(status: ExitStatus) -> ConnectionError {
    let is_of_answer = status.code() == Some(PANICKED)
        || status.signal() == Some(Signal::ABORT.as_raw())
        || status.success();
    match is_of_answer {
        true => ConnectionError::NotBorne,
        false => ConnectionError::Child { why: format!("has ended ({status})") },
    }
}

fn is_of_time(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A stream that is read until a moment, and after that only what is there.
struct Timed {
    stream: UnixStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.stream.set_read_timeout(Some(left.max(READ_MIN)))?;
        self.stream.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_blamed_only_for_what_it_said() {
        for (status, is_its) in
            [(0, true), (101 << 8, true), (6, true), (4 << 8, false), (9, false), (15, false)]
        {
            let error = why_ended(ExitStatus::from_raw(status));
            assert_eq!(matches!(error, ConnectionError::NotBorne), is_its, "{error}");
        }
    }

    #[test]
    fn what_is_there_is_read_however_late_it_is() {
        let (stream, mut other) = UnixStream::pair().unwrap();
        let mut timed = Timed { stream, until: Instant::now() };
        io::Write::write_all(&mut other, b"x").unwrap();
        assert_eq!(timed.read(&mut [0; 2]).unwrap(), 1);
        assert!(is_of_time(&timed.read(&mut [0; 2]).unwrap_err()));
    }

    #[test]
    fn a_child_that_ended_between_two_questions_is_not_the_servers_fault() {
        let until = Instant::now() + Duration::from_secs(600);
        let killed = || {
            let (stream, other) = UnixStream::pair().unwrap();
            let mut process = Command::new("sleep").arg("600").spawn().unwrap();
            process.kill().unwrap();
            // Also where another test starts a process just now, which inherits it until it executes.
            other.shutdown(Shutdown::Both).unwrap();
            Peer { heard: BufReader::new(Timed { stream, until }), process: Some(process) }
        };
        let within = Duration::from_secs(600);
        let asked = killed().say(&"a question", within).unwrap_err();
        let heard = killed().hear().err().unwrap();
        for error in [asked, heard] {
            assert!(matches!(error, ConnectionError::Child { .. }), "{error}");
        }
    }
}
