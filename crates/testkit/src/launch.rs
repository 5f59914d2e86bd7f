//! Starting programs that live until this process ends, whichever thread started them.

use std::io;
use std::process::Child;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::thread;

use waggle_private_server::Launcher;

use crate::{Error, Result};

/// Skips what a [`Launcher`] says before `--`, but for the root directory, and becomes the program behind it.
/// `setpriv` and `chroot` replace themselves, so that the process id that we spawn is the program's.
const BECOME: &str = r#"
root=
while [ "$1" != -- ]; do
    [ "$1" = --root ] && root=$2
    shift
done
shift
[ -z "$root" ] || set -- chroot "$root" "$@"
exec setpriv --pdeathsig KILL "$@"
"#;

/// A launcher that needs no program of ours: what it starts dies with us and is no other way changed.
pub fn launcher() -> Launcher {
    let arguments = ["-c", BECOME, "sh"].map(str::to_owned).to_vec();
    Launcher { program: "sh".into(), arguments, processors: Vec::new(), stop: None }
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread that spawns every program of this process, and never ends.
///
/// The programs ask the kernel to be killed when their parent dies, so that none outlives a test
/// that is killed. That "parent" is the thread that forked, not the process (prctl(2)), and the
/// test harness runs each test in a thread that ends before the process does.
static SPAWNER: LazyLock<io::Result<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (jobs, inbox) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || inbox.into_iter().for_each(|job| job()))?;
    Ok(jobs)
});

/// Lets that thread spawn a program.
pub(crate) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (reply, answer) = mpsc::channel();
    // The asker may have gone: then the program lives on until this process ends.
    let job = Box::new(move || drop(reply.send(work())));
    let sent = SPAWNER.as_ref().ok().and_then(|jobs| jobs.send(job).ok());
    sent.and_then(|()| answer.recv().ok()).ok_or(Error::Spawner)
}

/// Ends a program by SIGKILL and waits for its end.
pub(crate) fn kill(child: &mut Child) -> Result<()> {
    let ended = child.kill().and_then(|()| child.wait());
    ended.map(drop).map_err(Error::io("kill", "the process".as_ref()))
}
