//! Who waits for whose lock, from the memory of the servers that are watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use waggle_host::monotonic_ns;
use waggle_model::SeenLocks;
use waggle_probes::servers::Instance;
use waggle_probes::servers::layout::Layout;
use waggle_probes::sessions::LockReader;

use super::{Capture, RunningTexts, Watched};

/// All that another thread needs to read who waits for whose lock in one server.
pub(crate) struct LockQuestion {
    instance: Instance,
    layout: Arc<Layout>,
    sessions: Vec<u64>,
}

/// Most readers that are kept; more than servers are watched, so that mostly those go whose servers have ended.
const READERS_MAX: usize = 512;

/// The readers of such a thread. One serves a process and a layout.
pub(crate) type LockReaders = BTreeMap<u32, (u64, Arc<Layout>, LockReader)>;

impl LockQuestion {
    /// The server.
    pub(crate) fn pid(&self) -> u32 {
        self.instance.pid
    }

    /// Reads it.
    pub(crate) fn answer(&self, readers: &mut LockReaders) -> Result<SeenLocks, String> {
        let LockQuestion { instance, layout, sessions } = self;
        let fits = |one: &(u64, Arc<Layout>, LockReader)| {
            one.0 == instance.start_ticks && Arc::ptr_eq(&one.1, layout)
        };
        if !readers.get(&instance.pid).is_some_and(fits) {
            if readers.len() >= READERS_MAX {
                readers.clear();
            }
            let reader = LockReader::of(layout).map_err(|error| error.to_string())?;
            readers.insert(instance.pid, (instance.start_ticks, layout.clone(), reader));
        }
        let Some((.., reader)) = readers.get_mut(&instance.pid) else { return Err(String::new()) };
        reader.look_at(instance, sessions).map_err(|error| error.to_string())
    }
}

impl Capture {
    /// Looks at the sessions of a server again, for a question about its locks.
    pub(crate) fn refresh(&mut self, pid: u32) {
        // What cannot be read is known from the look before.
        let _ = self.sample_one(pid, RunningTexts::AsCaptured);
    }

    /// What is to be read of a server by another thread, for the sessions of the last look.
    pub(crate) fn lock_question(&self, pid: u32) -> Option<LockQuestion> {
        let Watched { layout, instance, sessions, .. } = self.watched.get(&pid)?;
        let sessions = sessions.as_ref().ok()?.addresses();
        Some(LockQuestion { instance: instance.clone(), layout: layout.clone(), sessions })
    }

    /// Reads who waits for whose lock in every server, from its memory.
    pub fn locks(&mut self) -> BTreeMap<u32, Result<SeenLocks, String>> {
        let pids: Vec<u32> = self.watched.keys().copied().collect();
        pids.into_iter().filter_map(|pid| Some((pid, self.locks_of(pid)?))).collect()
    }

    fn locks_of(&mut self, pid: u32) -> Option<Result<SeenLocks, String>> {
        if let Err(why) = self.sample_one(pid, RunningTexts::Shown)? {
            return Some(Err(why));
        }
        let Watched { layout, instance, sessions, locks, .. } = self.watched.get_mut(&pid)?;
        let sessions = sessions.as_ref().map_err(Clone::clone);
        let reader = match locks {
            Some(reader) => Ok(reader),
            None => LockReader::of(layout).map(|reader| locks.insert(reader)),
        };
        let reader = reader.map_err(|error| error.to_string());
        let look = |reader: &mut LockReader| {
            reader.look(instance, sessions?).map_err(|error| error.to_string())
        };
        Some(reader.and_then(look))
    }

    /// A start that a server noted, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn start_ns(&self, pid: u32, noted_us: u64) -> Option<u64> {
        let clock = self.watched.get(&pid)?.layout.clock;
        self.tap.clocks().start_ns(clock, noted_us, monotonic_ns())
    }
}
