//! Starting the process, so that it cannot outlive us.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Gid, Pid, Signal, Uid};
use rustix::thread::CpuSet;

use crate::{PrivateServerError, Program};

/// A server that does not answer in this time does not start.
const START_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// It gives way to the servers in use.
const NICE: i32 = 10;
/// Lines of a log in a message: so many of errors, and so many from its end.
const LINES: usize = 12;

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
}

/// What the program of a [`Launcher`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The process without which the server shall not live.
    pub parent: i32,
    /// The root directory of the server; `None` for ours.
    pub root: Option<PathBuf>,
    /// Its user and group; `None` for ours.
    pub user: Option<(u32, u32)>,
    /// The processors that it may use; empty for all of ours.
    pub processors: Vec<usize>,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Launcher {
    /// A command that becomes another program, which is to be appended as `--`, its path and its
    /// arguments. That one has our low priority, runs on our processors only, and dies with us.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(format!("--parent={}", std::process::id()));
        command.args(self.processors.iter().map(|processor| format!("--processor={processor}")));
        // A Ctrl-C is for us: we end it.
        command.process_group(0);
        command
    }

    /// Starts a program; what it says goes to `log`.
    pub(crate) fn spawn(
        &self,
        program: &Program,
        arguments: &[String],
        stdin: Stdio,
        log: &Path,
    ) -> Result<Child, PrivateServerError> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.map_err(PrivateServerError::io("cannot write", log))?;
        let copy = file.try_clone().map_err(PrivateServerError::io("cannot write", log))?;
        let mut command = self.command();
        if let Some(root) = &program.root {
            command.arg("--root").arg(root);
        }
        if let Some((uid, gid)) = program.user {
            command.arg(format!("--user={uid}:{gid}"));
        }
        command.arg("--").arg(&program.executable).args(arguments);
        command.stdin(stdin).stdout(file).stderr(copy);
        command.spawn().map_err(PrivateServerError::io("cannot start", &self.program))
    }
}

impl Launch {
    /// Becomes the server. It is killed when the thread that started this process ends, which has to
    /// be the first one of its process.
    ///
    /// # Errors
    /// It returns only where it failed.
    pub fn run(&self) -> io::Error {
        match self.prepare() {
            Err(error) => error,
            Ok(()) => match self.command.split_first() {
                Some((program, arguments)) => Command::new(program).args(arguments).exec(),
                None => io::Error::other("no program was named"),
            },
        }
    }

    fn prepare(&self) -> io::Result<()> {
        if let Some(root) = &self.root {
            rustix::process::chroot(root)?;
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

/// Waits until a server greets.
pub(crate) fn wait_ready(
    child: &mut Child,
    socket: &Path,
    log: &Path,
) -> Result<(), PrivateServerError> {
    let begin = Instant::now();
    while begin.elapsed() < START_MAX {
        let ended = child.try_wait().map_err(PrivateServerError::io("cannot wait for", log))?;
        if let Some(status) = ended {
            return Err(did_not_start(format!("it ended with {status}"), log));
        }
        if greets(socket) {
            return Ok(());
        }
        sleep(LOOK_EVERY);
    }
    Err(did_not_start(format!("it did not answer in {} s", START_MAX.as_secs()), log))
}

/// The first byte of the body of the greeting is the version of the protocol, 10 ("Protocol::Handshake",
/// MySQL source documentation); a server that is full sends an error, 255.
fn greets(socket: &Path) -> bool {
    let mut head = [0; 5];
    let asked = UnixStream::connect(socket).and_then(|mut stream| {
        stream.set_read_timeout(Some(START_MAX))?;
        stream.read_exact(&mut head)
    });
    asked.is_ok() && head[4] == 10
}

pub(crate) fn did_not_start(reason: String, log: &Path) -> PrivateServerError {
    let text = std::fs::read(log).unwrap_or_default();
    PrivateServerError::DidNotStart { reason, log: telling(&String::from_utf8_lossy(&text)) }
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
    fn the_errors_of_a_log_are_told_and_its_end() {
        let mut lines: Vec<String> = (0..100).map(|at| format!("[Note] {at}")).collect();
        lines[50] = "[ERROR] unknown variable".to_owned();
        let said = telling(&lines.join("\n"));
        assert!(said.starts_with("[ERROR] unknown variable\n[Note] 88\n"), "{said}");
        assert!(said.ends_with("[Note] 99") && said.lines().count() == 1 + LINES, "{said}");
        assert_eq!(telling("one\ntwo"), "one\ntwo");
    }
}
