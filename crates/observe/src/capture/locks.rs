//! Who waits for whose lock, from the memory of the servers that are watched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use waggle_host::{Process, monotonic_ns};
use waggle_model::{Reading, RunningStatement, SeenLocks, SeenRowWait, SeenSession, TimeClass};
use waggle_probes::servers::Instance;
use waggle_probes::servers::layout::Layout;
use waggle_probes::sessions::LockReader;
use waggle_probes::tap::ServerClock;

use super::{Capture, Running, RunningTexts, Watched};

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

/// How often a look notes threads that moved on while they were read, and the pause before that.
const TURNS: usize = 3;
const NEXT_TURN: Duration = Duration::from_millis(10);

/// How long a wait for a row has to last until it is told although the memory does not show it: it may be over before
/// the memory is read.
const UNSEEN_MIN_NS: u64 = 100_000_000;

/// Notes what the thread of each session waits for.
fn note_waits(sessions: &mut [SeenSession], running: &[RunningStatement]) {
    let class =
        |one: &RunningStatement| Some(((one.connection_id, one.noted_start_us), one.waits?.class));
    let classes: BTreeMap<_, TimeClass> = running.iter().filter_map(class).collect();
    for session in sessions {
        let statement = (session.connection_id, session.noted_start_us);
        session.waits_for = classes.get(&statement).copied();
    }
}

/// Those whose thread waits for a row although the memory shows no lock.
fn unseen(rows: &[SeenRowWait], running: &[RunningStatement], now_ns: u64) -> Vec<SeenRowWait> {
    let waits = |one: &&RunningStatement| {
        one.waits.is_some_and(|wait| {
            wait.class == TimeClass::RowLock && wait.since_ns + UNSEEN_MIN_NS < now_ns
        })
    };
    let mut unseen: Vec<SeenRowWait> = Vec::new();
    for one in running.iter().filter(waits) {
        if rows.iter().chain(&unseen).all(|row| row.connection_id != one.connection_id) {
            unseen.push(SeenRowWait {
                connection_id: one.connection_id,
                unknown: Some("the lock that it waits for was not found in the memory".to_owned()),
                ..SeenRowWait::default()
            });
        }
    }
    unseen
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
        let state = Process::of(pid).whole_state();
        if let Some(why) = state.value().and_then(|state| state.standstill(pid)) {
            // Who would wait in it asks for nothing.
            return Some(Err(format!("{why}. Who waits for whom is not known")));
        }
        let running = match self.running_with_waits(pid)? {
            Ok(running) => running,
            Err(why) => return Some(Err(why)),
        };
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
        Some(reader.and_then(|reader| {
            let mut seen = look(reader)?;
            note_waits(&mut seen.sessions, &running);
            if let Reading::Value(rows) = &mut seen.rows {
                let unseen = unseen(rows, &running, monotonic_ns());
                if !unseen.is_empty() {
                    reader.doubt_rows();
                }
                rows.extend(unseen);
            }
            Ok(seen)
        }))
    }

    /// What runs, with its waits. Threads that moved on are noted again first.
    fn running_with_waits(&mut self, pid: u32) -> Option<Running> {
        let mut turns = 0..TURNS;
        loop {
            let mut running = self.sample_one(pid, RunningTexts::Shown)?;
            let unnoted = running.as_mut().map_or(0, |running| self.tap.note_waits(pid, running));
            if unnoted == 0 || turns.next().is_none() {
                return Some(running);
            }
            thread::sleep(NEXT_TURN);
            self.tap.note_threads(pid);
        }
    }

    /// A start that a server noted, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn start_ns(&self, pid: u32, noted_us: u64) -> Option<u64> {
        let Watched { layout, instance, .. } = self.watched.get(&pid)?;
        let clock = ServerClock::of(layout, instance);
        self.tap.clocks().start_ns(clock, noted_us, monotonic_ns())
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::NowWait;

    use super::*;

    const NOW: u64 = 10_000_000_000;

    fn waiting(connection_id: u64, class: TimeClass, for_ns: u64) -> RunningStatement {
        let waits = Some(NowWait { class, since_ns: NOW - for_ns });
        RunningStatement { connection_id, waits, ..RunningStatement::default() }
    }

    #[test]
    fn who_waits_for_a_row_by_its_thread_is_told_also_where_the_memory_shows_no_lock() {
        let running = [
            waiting(7, TimeClass::RowLock, 2 * UNSEEN_MIN_NS),
            waiting(8, TimeClass::RowLock, 2 * UNSEEN_MIN_NS),
            waiting(9, TimeClass::RowLock, UNSEEN_MIN_NS / 2),
            waiting(10, TimeClass::Latch, 2 * UNSEEN_MIN_NS),
        ];
        let row = SeenRowWait { connection_id: 7, ..SeenRowWait::default() };
        let unseen = unseen(&[row], &running, NOW);
        let ids: Vec<u64> = unseen.iter().map(|row| row.connection_id).collect();
        assert_eq!(ids, [8], "each once, and only who waits for a row for a while");
        assert!(unseen[0].unknown.is_some());
    }

    #[test]
    fn a_session_waits_for_what_the_thread_of_its_statement_waits_for() {
        let session = |connection_id, noted_start_us| SeenSession {
            connection_id,
            noted_start_us,
            ..SeenSession::default()
        };
        let mut sessions = [session(7, Some(5)), session(8, Some(6)), session(9, Some(5))];
        let waits = |connection_id| RunningStatement {
            noted_start_us: Some(5),
            ..waiting(connection_id, TimeClass::InnodbTicket, 0)
        };
        note_waits(&mut sessions, &[waits(7), waits(8)]);
        let classes: Vec<_> = sessions.iter().map(|one| one.waits_for).collect();
        // The second has another statement since.
        assert_eq!(classes, [Some(TimeClass::InnodbTicket), None, None]);
    }
}
