//! Starting and ending a server process.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

use crate::Error;
use crate::Result;
use crate::Version;

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How much of an error log goes into an error message.
const LAST_LINES: usize = 20;
const POLL: Duration = Duration::from_millis(5);

struct Job {
    command: Command,
    reply: mpsc::Sender<io::Result<Child>>,
}

/// The thread that spawns every server of this process, and never ends.
///
/// The servers ask the kernel to be killed when their parent dies, so that none outlives a test
/// that is killed. That "parent" is the thread that forked, not the process (prctl(2)), and the
/// test harness runs each test in a thread that ends before the process does.
static SPAWNER: LazyLock<io::Result<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (jobs, inbox) = mpsc::channel::<Job>();
    thread::Builder::new().name("server-spawner".to_owned()).spawn(move || {
        for mut job in inbox {
            // The asker may have gone: then the child's handle is dropped and the server lives on
            // until this process ends.
            let _ = job.reply.send(job.command.spawn());
        }
    })?;
    Ok(jobs)
});

/// Spawns a command whose life is bound to this process; standard output and error go to `log`.
pub(crate) fn spawn(mut command: Command, stdin: Stdio, log: &Path) -> Result<Child> {
    let gone = || io::Error::other("the spawner thread has ended");
    let file = File::options().append(true).create(true).open(log);
    let file = file.map_err(Error::io("write", log))?;
    let copy = file.try_clone().map_err(Error::io("write", log))?;
    command.stdin(stdin).stdout(file).stderr(copy);
    let program = command.get_program().to_owned();
    let spawned = match &*SPAWNER {
        Ok(jobs) => {
            let (reply, answer) = mpsc::channel();
            jobs.send(Job { command, reply })
                .map_err(|_| gone())
                .and_then(|()| answer.recv().map_err(|_| gone())?)
        }
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    };
    spawned.map_err(Error::io("start", Path::new(&program)))
}

/// Waits until the server greets on its socket; returns the version that it names.
pub(crate) fn wait_ready(child: &mut Child, socket: &Path) -> std::result::Result<String, String> {
    let since = Instant::now();
    while since.elapsed() < START_LIMIT {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("it ended with {status}"));
        }
        if let Ok(version) = greeting(socket) {
            return Ok(version);
        }
        thread::sleep(POLL);
    }
    Err(format!("it did not answer on {} in {} s", socket.display(), START_LIMIT.as_secs()))
}

/// Reads the version out of the initial handshake packet (MySQL source documentation, "Protocol
/// Handshake V10"): a 4-byte header, the byte 10, the version with a NUL. MariaDB before 11 puts
/// `5.5.5-` in front for old replicas.
fn greeting(socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    if head[4] != 10 {
        return Err(io::Error::other("no handshake packet of version 10"));
    }
    let mut rest = vec![0; usize::from(u16::from_le_bytes([head[0], head[1]])).saturating_sub(1)];
    stream.read_exact(&mut rest)?;
    let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    Ok(text.strip_prefix("5.5.5-").unwrap_or(&text).to_owned())
}

/// Ends a server politely and waits for its end.
pub(crate) fn terminate(child: &mut Child, version: Version) -> Result<ExitStatus> {
    let pid = child.id();
    let ours = Path::new("the server process");
    if let Some(status) = child.try_wait().map_err(Error::io("wait for", ours))? {
        return Ok(status);
    }
    // The child was not reaped yet, so that the process id cannot belong to another.
    let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(target) = target {
        let sent = kill_process(target, Signal::TERM);
        sent.map_err(|errno| Error::io("end", ours)(errno.into()))?;
    }
    let since = Instant::now();
    while since.elapsed() < STOP_LIMIT {
        if let Some(status) = child.try_wait().map_err(Error::io("wait for", ours))? {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
    kill(child)?;
    Err(Error::DidNotStop { version, pid, seconds: STOP_LIMIT.as_secs() })
}

/// Ends a server by SIGKILL and waits for its end.
pub(crate) fn kill(child: &mut Child) -> Result<()> {
    let ours = Path::new("the server process");
    child.kill().map_err(Error::io("kill", ours))?;
    child.wait().map_err(Error::io("wait for", ours))?;
    Ok(())
}

/// The errors in an error log and its last lines, for an error message: the line that tells why a
/// start failed can be far from the end.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let (early, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
    let errors = early.iter().copied().filter(|line| line.contains("ERROR"));
    errors.take(LAST_LINES).chain(last.iter().copied()).collect::<Vec<_>>().join("\n")
}
