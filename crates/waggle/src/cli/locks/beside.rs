//! With an account: the memory of the server that it leads to, where SQL does not tell who blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waggle_mysql::Connection;
use waggle_mysql::locks::Memory;
use waggle_observe::{Observer, Sinks};

use super::{Args, memory, wait_until};
use crate::cli::Failure;
use crate::cli::watch::until;
use crate::own_server;

/// After what time the memory is tried again where it could not be read, each time twice as long, and at most: a busy
/// host may need longer to read the program of the server than it is waited for.
const AGAIN_MIN: Duration = Duration::from_secs(5);
const AGAIN_MAX: Duration = Duration::from_secs(300);
/// The server is elsewhere, for as long as the connection lasts.
const NOT_HERE: &str = "no server of this host listens where the account leads to";

/// The memory beside the account.
pub(super) struct Beside<'a> {
    stop: &'a AtomicBool,
    redact: bool,
    state: State,
}

enum State {
    /// Nothing is attached until it is needed.
    Closed,
    /// It could not be read. It is tried again then; if that fails, after such a time.
    Failed { why: String, again: Instant, pause: Duration },
    /// It shall not be read, or it cannot be, for this reason.
    Never(Option<String>),
    /// It is read, and meanwhile remembered what the sessions run.
    Open { observer: Box<Observer>, pid: u32 },
}

impl<'a> Beside<'a> {
    pub(super) fn new(args: &Args, stop: &'a AtomicBool) -> Beside<'a> {
        let state = if args.no_memory { State::Never(None) } else { State::Closed };
        Beside { stop, redact: !args.no_redact, state }
    }

    /// What the memory tells now, or why it tells nothing; `None` where it shall not be read.
    pub(super) fn look(&mut self, connection: &mut Connection) -> Option<Memory> {
        self.open(connection);
        match &mut self.state {
            State::Closed => None,
            State::Never(why) => why.clone().map(Err),
            State::Failed { why, .. } => Some(Err(why.clone())),
            State::Open { observer, pid } => {
                let told = memory::read(observer, self.redact).remove(&*pid);
                Some(told.unwrap_or_else(|| Err("the server is not watched any more".to_owned())))
            }
        }
    }

    /// Attaches to the server, unless that is done, or has failed just now.
    pub(super) fn open(&mut self, connection: &mut Connection) {
        let pause = match self.state {
            State::Closed => AGAIN_MIN,
            State::Failed { again, pause, .. } if again <= Instant::now() => pause,
            _ => return,
        };
        self.state = self.attach(connection).unwrap_or_else(|why| State::Failed {
            why,
            again: Instant::now() + pause,
            pause: AGAIN_MAX.min(2 * pause),
        });
    }

    fn attach(&self, connection: &mut Connection) -> Result<State, String> {
        let words = |failure| match failure {
            Failure::Usage(why) | Failure::Config(why) | Failure::Cannot(why) => format!("{why:#}"),
        };
        let candidates = own_server::candidates(connection);
        let pid = match candidates[..] {
            [] => return Ok(State::Never(Some(NOT_HERE.to_owned()))),
            [pid] => Some(pid),
            _ => None,
        };
        let mut capture = memory::attach(pid, false, self.stop).map_err(words)?;
        let found = own_server::of_connection(&mut capture, connection);
        let found = found.map_err(|error| error.to_string())?;
        let (pid, _) = found.ok_or("the account leads to none that is watched on this host")?;
        capture.keep_only(pid);
        let observer = Box::new(memory::observe(capture, false));
        Ok(State::Open { observer, pid })
    }

    /// Remembers meanwhile what sessions run. `false` if a signal came.
    pub(super) fn wait_until(&mut self, end: Instant, stop: &AtomicBool) -> bool {
        let State::Open { observer, .. } = &mut self.state else { return wait_until(end, stop) };
        let left = end.saturating_duration_since(Instant::now());
        observer.run(&mut Sinks::default(), &mut until(Some(left), stop));
        !stop.load(Ordering::Relaxed)
    }
}
