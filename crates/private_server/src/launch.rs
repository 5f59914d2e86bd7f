//! Starting the process, so that it cannot outlive us.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Gid, Pid, Signal, Uid, kill_process};
use rustix::thread::CpuSet;
use waggle_host::give_up_rights;

use crate::program::Root;
use crate::{Directory, Inside, Look, PrivateServerError, Program};

/// A server that does not answer in this time does not start.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(300);
/// Making its data takes longer than a start.
const MAKE_MAX: Duration = Duration::from_secs(300);
/// What was killed has ended by then, unless it waits for a file system that does not answer.
const END_MAX: Duration = Duration::from_secs(5);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);
/// It gives way to the servers in use.
const NICE: i32 = 10;
/// Lines of a log in a message: of errors, and as many from its end.
const LINES: usize = 12;
/// As much of the end of a log is looked at, bytes.
const LOG_MAX: u64 = 256 << 10;

/// How a program of a server is started: by a program of ours that calls [`Launch::run`].
///
/// What a process needs before it becomes a server (its root directory, its user, its death with
/// ours) has to be set in that process itself, between fork and exec, which is not for safe code. So
/// another program is started, which sets it and becomes the server.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program, such as waggle.
    pub program: PathBuf,
    /// What it is told before the arguments of [`Launch`].
    pub arguments: Vec<String>,
    /// The processors that servers may use; empty for all.
    pub processors: Vec<usize>,
    /// Set by who will not wait for the start of a server any longer.
    pub stop: Option<Arc<AtomicBool>>,
}

/// What the program of a [`Launcher`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The process without which the server shall not live.
    pub parent: i32,
    /// The root directory of the server; `None` for ours.
    pub root: Option<PathBuf>,
    /// The same as that of a process, which may belong to anybody: then the server has no rights but those of its user.
    pub inside: Option<Inside>,
    /// Its user and group; `None` for ours.
    pub user: Option<(u32, u32)>,
    /// The processors that it may use; empty for all of ours.
    pub processors: Vec<usize>,
    /// What is to be looked at; `None` for who becomes a server.
    pub look: Option<Look>,
    /// The program and its arguments, or those of the look.
    pub command: Vec<String>,
}

impl Launcher {
    /// A command that becomes another program, which is to be appended as `--`, its path and its
    /// arguments. That one has our low priority, runs on our processors only, and dies with us.
    pub fn command(&self) -> Command {
        let mut command = self.command_in_our_group();
        // A Ctrl-C is for us: we end it.
        command.process_group(0);
        command
    }

    /// The same of one that goes inside of the root directory of a process: it leaves our terminal by itself, and knows
    /// nothing of our environment.
    pub(crate) fn command_inside(&self, process: u32) -> Command {
        let mut command = self.command_in_our_group();
        command.env_clear().arg(format!("--inside={process}"));
        command
    }

    fn command_in_our_group(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(format!("--parent={}", std::process::id()));
        command.args(self.processors.iter().map(|processor| format!("--processor={processor}")));
        command
    }

    /// Starts a program; what it says goes to `log`, and `own` is what it may write.
    ///
    /// # Errors
    /// The log cannot be written, or our program cannot be started.
    pub fn spawn(
        &self,
        program: &Program,
        arguments: &[String],
        stdin: Stdio,
        [log, own]: [&Path; 2],
    ) -> Result<Child, PrivateServerError> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.map_err(PrivateServerError::io("cannot write", log))?;
        let copy = file.try_clone().map_err(PrivateServerError::io("cannot write", log))?;
        let mut command = match &program.root {
            Root::Ours => self.command(),
            Root::At(root) => {
                let mut command = self.command();
                command.arg("--root").arg(root);
                command
            }
            Root::Of(process) => {
                let mut command = self.command_inside(*process);
                command.arg("--own").arg(own).arg("--at").arg(program.own_seen_at());
                command
            }
        };
        if let Some((uid, gid)) = program.user {
            command.arg(format!("--user={uid}:{gid}"));
        }
        command.arg("--").arg(&program.executable).args(arguments);
        command.stdin(stdin).stdout(file).stderr(copy);
        command.spawn().map_err(PrivateServerError::io("cannot start", &self.program))
    }
}

impl Launch {
    /// Becomes the server, or looks and writes what it sees to the standard output. It is killed when the thread that
    /// started this process ends, which has to be the first one of its process.
    ///
    /// # Errors
    /// The system refuses a part of it. Who becomes a server returns only then.
    pub fn run(&self) -> io::Result<()> {
        self.prepare()?;
        match (self.look, &self.command[..]) {
            (Some(look), words) => look.tell(words),
            (None, [program, arguments @ ..]) => Err(Command::new(program).args(arguments).exec()),
            (None, []) => Err(io::Error::other("no program was named")),
        }
    }

    fn prepare(&self) -> io::Result<()> {
        match (&self.root, &self.inside) {
            (_, Some(inside)) => inside.enter()?,
            (Some(root), None) => rustix::process::chroot(root)?,
            (None, None) => {}
        }
        std::env::set_current_dir("/")?;
        rustix::process::nice(NICE)?;
        if !self.processors.is_empty() {
            let mut set = CpuSet::new();
            self.processors.iter().for_each(|processor| set.set(*processor));
            rustix::thread::sched_setaffinity(None, &set)?;
        }
        if let Some((uid, gid)) = self.user {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        if self.inside.is_some() {
            give_up_rights()?;
        }
        // A change of the user forgets it (prctl(2)), so this comes last.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before would not be noticed.
        let parent = rustix::process::getppid().map(Pid::as_raw_pid);
        if parent != Some(self.parent) {
            return Err(io::Error::other("the process that wanted a server is gone"));
        }
        Ok(())
    }
}

impl Launcher {
    /// Waits until a server greets; the version that it names.
    ///
    /// # Errors
    /// It ended, did not answer in two minutes, or somebody will not wait.
    pub fn wait_ready(
        &self,
        child: &mut Child,
        directory: &Directory,
    ) -> Result<String, PrivateServerError> {
        let (begin, log, socket) = (Instant::now(), directory.log(), directory.socket());
        while begin.elapsed() < START_MAX {
            if let Some(status) = self.look_for_end(child, &log)? {
                return Err(did_not_start(format!("it ended with {status}"), &log));
            }
            if let Ok(version) = greeting(&socket, begin + START_MAX) {
                return Ok(version);
            }
            sleep(LOOK_EVERY);
        }
        Err(did_not_start(format!("it did not answer in {} s", START_MAX.as_secs()), &log))
    }

    /// Waits until the data of a server are made.
    pub(crate) fn wait_made(
        &self,
        child: &mut Child,
        log: &Path,
    ) -> Result<(), PrivateServerError> {
        let begin = Instant::now();
        while begin.elapsed() < MAKE_MAX {
            match self.look_for_end(child, log)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(did_not_start(format!("making its data ended with {status}"), log));
                }
                None => sleep(LOOK_EVERY),
            }
        }
        let how = format!(
            "its data were not made in {} s: it hangs, or a file system that it needs does not answer",
            MAKE_MAX.as_secs()
        );
        Err(did_not_start(how, log))
    }

    fn look_for_end(
        &self,
        child: &mut Child,
        log: &Path,
    ) -> Result<Option<ExitStatus>, PrivateServerError> {
        match self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            true => Err(PrivateServerError::Stopped),
            false => child.try_wait().map_err(PrivateServerError::io("cannot wait for", log)),
        }
    }
}

/// Kills a process and waits for its end, but not for a file system that keeps it.
pub(crate) fn end(child: &mut Child) {
    // Where that fails the kernel does it when this process ends.
    let _ = child.kill();
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < END_MAX {
        sleep(LOOK_EVERY);
    }
}

/// Tells a server to stop, and waits until it has. Writing what it holds in memory may take it long.
///
/// # Errors
/// It did not stop in five minutes, or not in good order.
pub fn stop(child: &mut Child, directory: &Directory) -> Result<(), PrivateServerError> {
    let log = directory.log();
    let failed = || PrivateServerError::io("cannot stop the server of", &log);
    kill_process(Pid::from_child(child), Signal::TERM).map_err(|errno| failed()(errno.into()))?;
    let begin = Instant::now();
    while begin.elapsed() < STOP_MAX {
        match child.try_wait().map_err(failed())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let how = format!("it was told to stop and ended with {status}");
                return Err(did_not_start(how, &log));
            }
            None => sleep(LOOK_EVERY),
        }
    }
    Err(did_not_start(format!("it did not stop in {} s", STOP_MAX.as_secs()), &log))
}

/// The version in the greeting ("Protocol::Handshake", MySQL source documentation): a header of 4 bytes, the
/// version of the protocol, 10, and that of the server with a NUL. A server that is full sends an error, 255.
/// MariaDB before 11 puts `5.5.5-` in front, for old replicas.
///
/// The socket lies in a directory of the server's user, so anything can stand there and say anything, or nothing
/// for long.
fn greeting(socket: &Path, until: Instant) -> io::Result<String> {
    let mut stream = connected(socket)?;
    let mut read = |bytes: &mut [u8]| -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            let left = until.saturating_duration_since(Instant::now());
            // No time at all would be no limit.
            stream.set_read_timeout(Some(left.max(LOOK_EVERY)))?;
            match stream.read(&mut bytes[at..])? {
                _ if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => at += count,
            }
        }
        Ok(())
    };
    let mut head = [0; 5];
    read(&mut head)?;
    if head[4] != 10 {
        return Err(io::Error::other("no handshake of version 10"));
    }
    let mut rest = vec![0; usize::from(u16::from_le_bytes([head[0], head[1]])).saturating_sub(1)];
    read(&mut rest)?;
    let version = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    let version = String::from_utf8_lossy(version);
    Ok(version.strip_prefix("5.5.5-").unwrap_or(&version).to_owned())
}

/// Connects to a socket, and neither follows a link nor waits for a place in its queue.
fn connected(socket: &Path) -> io::Result<UnixStream> {
    let file = open(socket, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let how = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, how, None)?;
    connect(&stream, &SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

pub(crate) fn did_not_start(reason: String, log: &Path) -> PrivateServerError {
    let text = end_of(log).unwrap_or_default();
    PrivateServerError::DidNotStart { reason, log: telling(&String::from_utf8_lossy(&text)) }
}

/// The last bytes of a log, which a server can make as long as it likes.
fn end_of(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_MAX)))?;
    let mut text = Vec::new();
    file.take(LOG_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// The end of a log, and the errors before it: a server that ends may have much to say of its end.
fn telling(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LINES));
    let errors = before.iter().filter(|line| line.contains("[ERROR]")).take(LINES);
    errors.chain(last).copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_says_nothing_is_given_up_and_a_link_leads_nowhere() {
        let place = tempfile::TempDir::new().unwrap();
        let [socket, link] = ["s", "l"].map(|name| place.path().join(name));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        let soon = || Instant::now() + LOOK_EVERY;
        assert!(greeting(&link, soon()).is_err());
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(greeting(&socket, soon()).is_err(), "it says nothing");
        // So many that the next would have to wait for its place.
        let mut waiting = Vec::new();
        let full = loop {
            match connected(&socket) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_errors_of_a_log_are_told_and_its_end() {
        let mut lines: Vec<String> = (0..100).map(|at| format!("[Note] {at}")).collect();
        lines[50] = "[ERROR] unknown variable".to_owned();
        let said = telling(&lines.join("\n"));
        assert!(said.starts_with("[ERROR] unknown variable\n[Note] 88\n"), "{said}");
        assert!(said.ends_with("[Note] 99") && said.lines().count() == 1 + LINES, "{said}");
        assert_eq!(telling("one\ntwo"), "one\ntwo");
    }
}
