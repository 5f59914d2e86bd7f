//! Who waits for a row lock or a metadata lock, and who holds it, read in the memory of the server.
//!
//! No offset comes from a table of versions: each is found by what proves itself in the sessions that are
//! there, and proves itself again at every read. What does not is left out, and the wait has an unknown
//! holder with the reason. Bounds: [`SESSIONS_MAX`], [`STEPS_MAX`], [`BYTES_MAX`] and [`TIME_MAX`].

mod metadata;
mod queue;
mod reads;
mod rows;
#[cfg(test)]
mod tests;
mod who;

use std::collections::HashSet;
use std::time::Duration;

use thiserror::Error;
use waggle_model::{
    Flavour, Reading, SeenLocks, SeenMetadataLock, SeenRowWait, SeenSession, WaitsFor,
};

use self::queue::Queue;
use self::reads::{Memory, Reads};
use self::rows::{Lock, Transaction};
use self::who::Who;
use super::{Sessions, SessionsError};
use crate::servers::layout::Layout;
use crate::servers::{Instance, MemoryError, ProcessMemory};

/// Most sessions of a look.
const SESSIONS_MAX: usize = 10_000;
/// Most locks of a transaction that are followed.
const STEPS_MAX: usize = 4096;
/// Most bytes that a look reads.
const BYTES_MAX: u64 = 256 << 20;
/// How long a look may take, without the time in which nobody gets to run.
const TIME_MAX: Duration = Duration::from_secs(1);
/// The same of a look that has to find offsets, which the next ones know.
const SEARCH_MAX: Duration = Duration::from_secs(4);
/// Sessions in which offsets are searched together, and how many of them are idle.
const SEARCHED: usize = 8;
const SEARCHED_IDLE: usize = 2;
/// Where running sessions leave a doubt, so many idle ones are searched at a time, and so often in one look.
const DOUBTED_IDLE: usize = 8;
const DOUBTED_TURNS: usize = 4;
/// Locks of an active transaction among which the one it waits for is searched: it is mostly the last.
const WAITING_STEPS: usize = 64;

/// How often sessions are read again whose metadata locks changed while they were read.
const TRIES: usize = 4;

/// Database and name.
type Table = (Vec<u8>, Vec<u8>);

/// Why locks cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum LocksError {
    /// The bounds of a look.
    #[error("there is more to read than one look may take")]
    TooMuch,
    /// Offsets do not prove themselves.
    #[error("this build keeps its {0} where waggle cannot tell them for certain")]
    Ambiguous(&'static str),
    /// Nothing can be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// A session while its locks are read.
#[derive(Clone, Copy, Debug)]
struct At {
    thd: u64,
    connection_id: u64,
    is_idle: bool,
    waits_for_metadata: bool,
}

impl At {
    fn of(session: &SeenSession) -> At {
        let state = session.state.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        At {
            thd: session.thd,
            connection_id: session.connection_id,
            is_idle: session.command == waggle_model::Command::SLEEP,
            waits_for_metadata: WaitsFor::of(&state) == Some(WaitsFor::MetadataLock),
        }
    }
}

/// Reads the locks of one server, from one look to the next.
#[derive(Debug)]
pub struct LockReader {
    who: Who,
    flavour: Flavour,
    tickets: Option<metadata::Shape>,
    transactions: Option<rows::Shape>,
    /// Whether these have led from somebody who waits to somebody who has the lock: they are the right ones.
    has_named: bool,
    /// Turns of the search for them so far.
    searched: usize,
    /// The same where these left a doubt.
    doubted: usize,
    bytes: u64,
}

impl LockReader {
    /// Nothing is known of the build yet but its layout.
    ///
    /// # Errors
    ///
    /// If the layout lacks the connection id or the command.
    pub fn of(layout: &Layout) -> Result<Self, SessionsError> {
        Sessions::of(layout)?;
        let who = Who::of(layout);
        Ok(Self {
            who,
            flavour: layout.flavour,
            tickets: None,
            transactions: None,
            has_named: false,
            searched: 0,
            doubted: 0,
            bytes: 0,
        })
    }

    /// Looks at the locks of the sessions that were sampled last.
    ///
    /// # Errors
    ///
    /// If nothing of the process can be read.
    pub fn look(
        &mut self,
        instance: &Instance,
        sessions: &Sessions,
    ) -> Result<SeenLocks, SessionsError> {
        self.look_at(instance, &sessions.addresses())
    }

    /// The same, of the sessions at these addresses ([`Sessions::addresses`]).
    ///
    /// # Errors
    ///
    /// If nothing of the process can be read.
    pub fn look_at(
        &mut self,
        instance: &Instance,
        sessions: &[u64],
    ) -> Result<SeenLocks, SessionsError> {
        let mut memory = ProcessMemory::of(instance.pid);
        let is_known = self.tickets.is_some() && self.transactions.is_some();
        let most = if is_known { TIME_MAX } else { SEARCH_MAX };
        let seen = self.read(&mut memory, sessions, most)?;
        Ok(SeenLocks { is_pooled: instance.waiting.is_pooled, ..seen })
    }

    /// Perhaps the place of transactions was the wrong one: somebody waits for a row, and no look has shown a wait there.
    /// The next look searches for it anew.
    pub fn doubt_rows(&mut self) {
        self.transactions = self.transactions.filter(|_| self.has_named);
    }

    /// How many bytes the last look read, without those of the sample before it.
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }

    fn read(
        &mut self,
        memory: &mut dyn Memory,
        sessions: &[u64],
        most: Duration,
    ) -> Result<SeenLocks, SessionsError> {
        let reads = &mut Reads::new(memory, BYTES_MAX, most);
        let whole = sessions.len() <= SESSIONS_MAX;
        let sessions = &sessions[..sessions.len().min(SESSIONS_MAX)];
        let absent = |error: LocksError| match error {
            LocksError::Memory(error) => Err(SessionsError::Memory(error)),
            other => Ok(other.to_string()),
        };
        let (mut seen, unreadable) = match self.who.read(reads, sessions) {
            Ok(read) => read,
            Err(error) => {
                let why = absent(error)?;
                let (metadata, rows) = (Reading::Absent(why.clone()), Reading::Absent(why));
                return Ok(SeenLocks {
                    sessions: Vec::new(),
                    metadata,
                    rows,
                    unreadable: sessions.len(),
                    is_pooled: false,
                });
            }
        };
        seen.sort_by_key(|session| session.connection_id);
        let at: Vec<At> = seen.iter().map(At::of).collect();
        let (metadata, tickets) = match self.metadata(reads, &at) {
            Ok((found, tickets)) => (Reading::Value(found), tickets),
            Err(error) => (Reading::Absent(absent(error)?), None),
        };
        let rows = match self.rows(reads, &at, tickets.as_ref()) {
            Ok(found) => Reading::Value(found),
            Err(error) => Reading::Absent(absent(error)?),
        };
        self.bytes = BYTES_MAX.saturating_sub(reads.bytes_left());
        let unreadable = unreadable + usize::from(!whole);
        Ok(SeenLocks { sessions: seen, metadata, rows, unreadable, is_pooled: false })
    }

    /// Sessions in which offsets are searched, some at a time: all that run, with a few that are idle. Who
    /// waits runs, so what proves itself is among them.
    fn searched(at: &[At]) -> impl Iterator<Item = Vec<At>> {
        let (idle, mut active): (Vec<At>, Vec<At>) = at.iter().partition(|at| at.is_idle);
        // Who waits for a table does not wait for a row.
        active.sort_by_key(|at| at.waits_for_metadata);
        let turns = active.len().div_ceil(SEARCHED - SEARCHED_IDLE).max(1);
        (0..turns).map(move |turn| {
            let part = |of: &[At], most: usize| -> Vec<At> {
                of.iter().skip(turn * most).take(most).copied().collect()
            };
            let mut some = part(&active, SEARCHED - SEARCHED_IDLE);
            some.extend(part(&idle, SEARCHED_IDLE));
            some
        })
    }

    /// Sessions in which offsets are searched that those leave in doubt: the first that run, with more and more of the
    /// idle ones. Who has what somebody waits for is often idle. `turn` says which are the first.
    fn doubted(at: &[At], turn: usize) -> impl Iterator<Item = Vec<At>> {
        let running = Self::searched(at).next().unwrap_or_default();
        let running: Vec<At> = running.into_iter().filter(|at| !at.is_idle).collect();
        let idle: Vec<At> = at.iter().filter(|at| at.is_idle).copied().collect();
        let turns = idle.len().div_ceil(DOUBTED_IDLE);
        (0..turns.min(DOUBTED_TURNS)).map(move |next| {
            let first = turn.wrapping_add(next) % turns * DOUBTED_IDLE;
            running.iter().chain(idle.iter().skip(first).take(DOUBTED_IDLE)).copied().collect()
        })
    }

    fn metadata(
        &mut self,
        reads: &mut Reads<'_>,
        at: &[At],
    ) -> Result<(Vec<SeenMetadataLock>, Option<metadata::Tickets>), LocksError> {
        if self.tickets.is_none() {
            // Holders of metadata locks may be idle; each session costs little here.
            for some in at.chunks(SEARCHED * 4) {
                self.tickets = metadata::derive(reads, some)?;
                if self.tickets.is_some() || !at.iter().any(|at| at.waits_for_metadata) {
                    break;
                }
            }
        }
        let Some(shape) = self.tickets else { return Ok((Vec::new(), None)) };
        let mut tickets = metadata::read(reads, &shape, at)?;
        let active: Vec<u64> = at.iter().filter(|at| !at.is_idle).map(|at| at.thd).collect();
        tickets.name(reads, &shape, &active)?;
        if tickets.is_empty() || !shape.is_certain {
            // Perhaps it was the wrong one.
            self.tickets = None;
        }
        let found = tickets.locks(at);
        if found.is_empty() {
            return Ok((found, Some(tickets)));
        }
        // What is still so at a second look was so in between. A list that changed meanwhile may have lost somebody.
        let mut again = metadata::read(reads, &shape, at)?;
        let mut unsteady = Vec::new();
        for _ in 0..TRIES {
            let changed = |one: &&At| !tickets.is_steady(&again, one.thd);
            unsteady = at.iter().filter(changed).copied().collect();
            if unsteady.is_empty() {
                break;
            }
            tickets.renew(metadata::read(reads, &shape, &unsteady)?);
            again.renew(metadata::read(reads, &shape, &unsteady)?);
        }
        tickets.name(reads, &shape, &active)?;
        again.name(reads, &shape, &active)?;
        let now = again.locks(at);
        let is_steady = |id: u64| !unsteady.iter().any(|one| one.connection_id == id);
        let holds_on = |one: &SeenMetadataLock| !one.is_pending && is_steady(one.connection_id);
        let mut found = tickets.locks(at);
        found.retain(|one| holds_on(one) || now.contains(one));
        Ok((found, Some(tickets)))
    }

    /// The shape of rows that sessions which run leave in doubt.
    fn doubted_rows(
        &mut self,
        reads: &mut Reads<'_>,
        at: &[At],
    ) -> Result<Option<rows::Shape>, LocksError> {
        for some in Self::doubted(at, self.doubted) {
            match rows::derive(reads, &some, self.flavour) {
                Ok(Some(shape)) => return Ok(Some(shape)),
                Ok(None) | Err(LocksError::Ambiguous(_)) => {}
                Err(error) => return Err(error),
            }
            self.doubted = self.doubted.wrapping_add(1);
        }
        Ok(None)
    }

    fn rows(
        &mut self,
        reads: &mut Reads<'_>,
        at: &[At],
        tickets: Option<&metadata::Tickets>,
    ) -> Result<Vec<SeenRowWait>, LocksError> {
        if at.iter().all(|at| at.is_idle) {
            return Ok(Vec::new());
        }
        if self.transactions.is_none() {
            let mut ambiguous = None;
            // Where the time was over before, this look goes on.
            let mut turns: Vec<Vec<At>> = Self::searched(at).collect();
            let done = self.searched % turns.len().max(1);
            turns.rotate_left(done);
            for some in turns {
                match rows::derive(reads, &some, self.flavour) {
                    Ok(shape) => self.transactions = shape,
                    // Others may leave no doubt.
                    Err(error @ LocksError::Ambiguous(_)) => ambiguous = Some(error),
                    Err(error) => return Err(error),
                }
                if self.transactions.is_some() {
                    break;
                }
                self.searched = self.searched.wrapping_add(1);
            }
            if let Some(error) = ambiguous.filter(|_| self.transactions.is_none()) {
                self.transactions = self.doubted_rows(reads, at)?;
                if self.transactions.is_none() {
                    return Err(error);
                }
            }
        }
        let Some(shape) = self.transactions else { return Ok(Vec::new()) };
        let all = rows::transactions(reads, &shape, at)?;
        if all.is_empty() {
            self.doubt_rows();
        }
        let active: Vec<Transaction> = all.iter().filter(|one| !one.at.is_idle).copied().collect();
        let waiting =
            rows::locks(reads, &shape, self.flavour, &active, WAITING_STEPS, Lock::waits)?;
        let waiting: Vec<(Transaction, Lock)> = active
            .into_iter()
            .zip(waiting)
            .filter_map(|(trx, (locks, _))| Some((trx, locks.into_iter().next()?)))
            .collect();
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let pages: HashSet<(u64, u64)> = waiting.iter().map(|(_, lock)| lock.page()).collect();
        let on_them = |lock: &Lock| pages.contains(&lock.page());
        let held = rows::locks(reads, &shape, self.flavour, &all, STEPS_MAX, on_them)?;
        let queue =
            Queue { shape, flavour: self.flavour, held: all.into_iter().zip(held).collect() };
        let waits = queue.waits(reads, &waiting, tickets)?;
        self.has_named |= waits.iter().any(|wait| !wait.blockers.is_empty());
        Ok(waits)
    }
}
