//! The other half of a connection: a child that runs the driver.

use std::io::{self, BufReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use waggle_host::{Meter, Process};

use super::frame::{self, Said};
use super::{ConnectionError, served};

/// How long the server may take to hear that we leave, and a child that is killed to end.
const QUIT_MAX: Duration = Duration::from_secs(1);
/// What the child needs of our environment: where the authorities are that OpenSSL trusts.
const ENVIRONMENT: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The program of the children, and its argument.
static PROGRAM: OnceLock<(PathBuf, &'static str)> = OnceLock::new();
static COST: Mutex<Cost> = Mutex::new(Cost { ended: Duration::ZERO, running: Vec::new() });

/// From now on each connection is a child: `program`, which calls [`super::serve_as_child`] when it is started with this
/// argument alone. Without it, a thread of this process is all that there is apart.
pub fn use_children(program: PathBuf, argument: &'static str) {
    // The first one holds.
    let _ = PROGRAM.set((program, argument));
}

/// What the children have cost so far: processor time, and bytes of memory now.
pub fn children_cost() -> (Duration, u64) {
    let cost = COST.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sum = (cost.ended, 0);
    for pid in &cost.running {
        sum.0 += cpu_of(*pid);
        sum.1 += Process::of(*pid).rss_bytes().value().copied().unwrap_or(0);
    }
    sum
}

struct Cost {
    ended: Duration,
    running: Vec<u32>,
}

fn cpu_of(pid: u32) -> Duration {
    Duration::from_nanos(Meter::of(pid).and_then(|meter| meter.cpu_ns()).unwrap_or(0))
}

/// Who runs the driver. It ends with this.
pub(super) struct Peer {
    heard: BufReader<Timed>,
    process: Option<Child>,
}

impl Peer {
    pub(super) fn start() -> io::Result<Peer> {
        let (own, other) = UnixStream::pair()?;
        let process = match PROGRAM.get() {
            Some((program, argument)) => {
                let mut command = Command::new(program);
                command.arg(argument).env_clear().process_group(0);
                command.envs(
                    ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))),
                );
                command.stdin(OwnedFd::from(other)).stdout(Stdio::null()).stderr(Stdio::null());
                let process = start(command)?;
                COST.lock().unwrap_or_else(PoisonError::into_inner).running.push(process.id());
                Some(process)
            }
            None => {
                thread::Builder::new().spawn(move || served::serve(other, || Ok(())))?;
                None
            }
        };
        let until = Instant::now() + QUIT_MAX;
        Ok(Peer { heard: BufReader::new(Timed { stream: own, until }), process })
    }

    /// Says something that is to be answered within this time.
    pub(super) fn say(
        &mut self,
        what: &impl Serialize,
        within: Duration,
    ) -> Result<(), ConnectionError> {
        let Timed { stream, until } = self.heard.get_mut();
        *until = Instant::now() + within;
        stream.set_write_timeout(Some(within)).map_err(lost)?;
        frame::write(stream, what).map_err(lost)
    }

    pub(super) fn hear(&mut self) -> Result<Said, ConnectionError> {
        frame::read(&mut self.heard).map_err(lost)?.ok_or(ConnectionError::NotBorne)
    }

    /// Has it tell the server that we leave, and waits until it has.
    pub(super) fn take_leave(&mut self) {
        let Timed { stream, until } = self.heard.get_mut();
        *until = Instant::now() + QUIT_MAX;
        // It may have ended already.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = self.hear();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.heard.get_ref().stream.shutdown(Shutdown::Both);
        let Some(process) = &mut self.process else { return };
        // It may have ended already.
        let _ = process.kill();
        let spent = cpu_of(process.id());
        let begun = Instant::now();
        while matches!(process.try_wait(), Ok(None)) && begun.elapsed() < QUIT_MAX {
            thread::sleep(Duration::from_millis(1));
        }
        let mut cost = COST.lock().unwrap_or_else(PoisonError::into_inner);
        cost.running.retain(|pid| *pid != process.id());
        cost.ended += spent;
    }
}

fn lost(error: io::Error) -> ConnectionError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ConnectionError::TooSlow,
        _ => ConnectionError::NotBorne,
    }
}

/// A stream that is read until a moment.
struct Timed {
    stream: UnixStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

/// Starts a child by a thread that never ends: the kernel ends a child with the thread that started it.
fn start(command: Command) -> io::Result<Child> {
    type Asked = (Command, Sender<io::Result<Child>>);
    static STARTER: OnceLock<Sender<Asked>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (ask, asked) = channel::<Asked>();
        thread::spawn(move || {
            for (mut command, answer) in asked {
                let _ = answer.send(command.spawn());
            }
        });
        ask
    });
    let (answer, answered) = channel();
    let gone = || io::Error::other("the thread that starts children is gone");
    starter.send((command, answer)).map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?
}
