//! Starts children that end with this process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

type Asked = (Command, Sender<io::Result<Child>>);

static STARTER: Mutex<Option<Sender<Asked>>> = Mutex::new(None);

/// Starts a child in a process group of its own, so that Ctrl-C in the terminal reaches its parent alone. Its standard
/// error is closed.
///
/// A thread that never ends starts it: where the child holds to [`Limits`](crate::Limits), the kernel ends it with the
/// thread that started it.
///
/// # Errors
/// The program, or a thread, cannot be started.
pub fn start_child(mut command: Command) -> io::Result<Child> {
    command.process_group(0).stderr(Stdio::null());
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    if starter.is_none() {
        let (ask, asked) = channel::<Asked>();
        let start = move || {
            for (mut command, answer) in asked {
                let _ = answer.send(command.spawn());
            }
        };
        thread::Builder::new().name("children".to_owned()).spawn(start)?;
        *starter = Some(ask);
    }
    let gone = || io::Error::other("the thread that starts children is gone");
    let (answer, answered) = channel();
    // A thread that is gone answers nothing.
    starter.as_ref().map(|starter| starter.send((command, answer)).ok());
    drop(starter);
    answered.recv().map_err(|_| gone())?
}
