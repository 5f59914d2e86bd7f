//! Metadata locks: the tickets of sessions.
//!
//! A session (`THD`) holds its `MDL_context`, and that the heads of three lists of tickets. A ticket is
//! taken for one only if it proves itself: it points back to the context, the first of a list also to
//! the head of its list, and its lock has a key whose lengths and zero bytes fit. `m_owner`, which points
//! to the session, parts the lists from the ticket that is waited for.

mod find;

use std::collections::{BTreeSet, HashMap};

use waggle_model::SeenMetadataLock;

use super::reads::{Reads, addresses, half, is_address, word};
use super::{At, LocksError, Table};

pub(super) use find::derive;

/// Bytes of a context, at most.
const CONTEXT: u32 = 0x200;
/// Bytes of a ticket that are read.
const TICKET: u32 = 0x60;
/// Bytes of a lock that hold its key, at most: two names of 64 characters of three bytes, and user
/// locks and routines are longer.
const KEY: u32 = 0x260;
/// Most tickets of a session that are followed.
const TICKETS_MAX: usize = 4096;
/// Namespaces and modes that any server has.
const NAMESPACES: u8 = 32;
const MODES: u32 = 16;

/// Where a build keeps its tickets. It holds only where everything that is read proves itself again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Of the context in the session.
    context: u32,
    /// Of `m_owner` in the session, and what it adds to the address of the session.
    owner: (u32, u32),
    /// Of `prev_in_context` in the ticket; `next_in_context` is the word before.
    prev: u32,
    /// Of `m_ctx` in the ticket; `m_lock` is the word after, `m_type` the one before.
    back: u32,
    /// Of the text of the key in the lock.
    key: u32,
    /// Whether no other place fits the keys that were seen. Keys without names fit in more than one way, and
    /// say the same in each; one with names fits in the right one only.
    pub(super) is_certain: bool,
}

/// A ticket.
#[derive(Clone, Debug)]
struct Ticket {
    next: u64,
    lock: u64,
    mode: u32,
}

impl Shape {
    fn ticket(&self, thd: u64, bytes: &[u8]) -> Option<Ticket> {
        let back = self.back as usize;
        let context = thd.checked_add(u64::from(self.context))?;
        let lock = word(bytes, back.checked_add(8)?)?;
        let mode = half(bytes, back.checked_sub(8)?)?;
        let next = word(bytes, (self.prev as usize).checked_sub(8)?)?;
        let proves = word(bytes, back)? == context && is_address(lock) && mode < MODES;
        proves.then_some(Ticket { next, lock, mode })
    }
}

/// The key of a lock: kind of object, database, name.
type Key = (u8, Vec<u8>, Vec<u8>);

/// The key of a lock whose text begins here, if it is one.
fn key(lock: &[u8], text: u32) -> Option<Key> {
    let number =
        |at: usize| Some(usize::from(u16::from_ne_bytes([*lock.get(at)?, *lock.get(at + 1)?])));
    let (length, of_schema) = (number(0)?, number(2)?);
    let text = lock.get(text as usize..)?.get(..length)?;
    let (namespace, names) = text.split_first()?;
    let schema = names.get(..of_schema)?;
    let (zero, name) = names.get(of_schema..)?.split_first()?;
    let (end, _) = name.split_last()?;
    let fits = *namespace < NAMESPACES && *zero == 0 && *end == 0 && !schema.contains(&0);
    // MySQL 8 keeps a name as it is compared, and after it the name as it was written.
    let name = name.split(|byte| *byte == 0).next()?;
    fits.then(|| (*namespace, schema.to_vec(), name.to_vec()))
}

/// What one session has.
#[derive(Default)]
struct Held {
    /// The ticket that it waits for: its lock and mode.
    pending: Option<(u64, u32)>,
    /// The tickets of its lists.
    granted: Vec<(u64, u32)>,
    /// Whether everything was read.
    whole: bool,
    /// The context as it was before its lists were read.
    context: Vec<u8>,
    /// Tickets to which words behind the owner lead: offset, address, lock and mode.
    after: Vec<(u32, u64, (u64, u32))>,
    /// Offsets of words behind the owner that are not 0.
    filled: BTreeSet<u32>,
}

/// The tickets of sessions, and the keys of some of their locks.
pub(super) struct Tickets {
    held: HashMap<u64, Held>,
    keys: HashMap<u64, Key>,
}

/// A word that may lead to a ticket.
struct Way {
    thd: u64,
    /// Its offset in the context, where it is a word of that.
    offset: Option<u32>,
    /// Its own address.
    at: u64,
    /// Where it leads.
    to: u64,
}

/// Reads the tickets of all sessions.
pub(super) fn read(
    reads: &mut Reads<'_>,
    shape: &Shape,
    sessions: &[At],
) -> Result<Tickets, LocksError> {
    let (mut held, mut next) = contexts(reads, shape, sessions)?;
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    while !next.is_empty() {
        let asked: Vec<u64> = next.iter().map(|link| link.to).collect();
        let tickets = reads.each(&asked, TICKET)?;
        let mut later = Vec::new();
        for (link, bytes) in next.into_iter().zip(&tickets) {
            let Some(one) = held.get_mut(&link.thd) else { continue };
            let bytes = bytes.as_deref().unwrap_or_default();
            let ticket = shape.ticket(link.thd, bytes);
            let is_linked = word(bytes, shape.prev as usize) == Some(link.at);
            match (link.offset, ticket) {
                (Some(offset), Some(ticket)) if offset > shape.owner.0 - shape.context => {
                    one.after.push((offset, link.to, (ticket.lock, ticket.mode)));
                }
                (_, Some(ticket)) if is_linked && seen.insert(link.to) => {
                    one.granted.push((ticket.lock, ticket.mode));
                    one.whole &= ticket.next == 0 || one.granted.len() < TICKETS_MAX;
                    if ticket.next != 0 && one.whole {
                        let at = link.to.wrapping_add(u64::from(shape.prev) - 8);
                        later.push(Way { thd: link.thd, offset: None, at, to: ticket.next });
                    }
                }
                // Not every word of the context leads to a ticket, and MySQL 8 also keeps one that leads
                // into the middle of a list. But a ticket must lead to the next one.
                (offset, _) => one.whole &= offset.is_some(),
            }
        }
        next = later;
    }
    let waiting = waiting(sessions, &held, &seen);
    for (thd, held) in &mut held {
        let is_waiting = sessions.iter().any(|at| at.thd == *thd && at.waits_for_metadata);
        let ticket = held.after.iter().find(|(offset, ..)| Some(*offset) == waiting);
        held.pending = ticket.filter(|_| is_waiting).map(|(_, _, ticket)| *ticket);
    }
    Ok(Tickets { held, keys: HashMap::new() })
}

fn contexts(
    reads: &mut Reads<'_>,
    shape: &Shape,
    sessions: &[At],
) -> Result<(HashMap<u64, Held>, Vec<Way>), LocksError> {
    let starts: Vec<u64> =
        sessions.iter().map(|at| at.thd.wrapping_add(u64::from(shape.context))).collect();
    let contexts = reads.each(&starts, CONTEXT)?;
    let (mut held, mut next) = (HashMap::new(), Vec::new());
    for ((session, start), context) in sessions.iter().zip(&starts).zip(&contexts) {
        let mut one = Held::default();
        if let Some(context) = context {
            let in_context = shape.owner.0 - shape.context;
            let owner = session.thd.wrapping_add(u64::from(shape.owner.1));
            one.whole = word(context, in_context as usize) == Some(owner);
            let behind = (in_context + 8..CONTEXT).step_by(8);
            one.filled = behind.filter(|at| word(context, *at as usize) != Some(0)).collect();
            one.context.clone_from(context);
            let words = addresses(context).filter(|(at, _)| one.whole && *at != in_context);
            next.extend(words.map(|(offset, to)| Way {
                thd: session.thd,
                offset: Some(offset),
                at: start.wrapping_add(u64::from(offset)),
                to,
            }));
        }
        held.insert(session.thd, one);
    }
    Ok((held, next))
}

/// The offset of the word that leads to the ticket that is waited for: the first one that does so in all
/// sessions whose state says that they wait, and is 0 in idle ones. A ticket of a list is not waited for.
fn waiting(sessions: &[At], held: &HashMap<u64, Held>, listed: &BTreeSet<u64>) -> Option<u32> {
    let mut common: Option<BTreeSet<u32>> = None;
    for at in sessions.iter().filter(|at| at.waits_for_metadata) {
        let after = held.get(&at.thd)?.after.iter();
        let leads = after.filter(|(_, to, _)| !listed.contains(to)).map(|(offset, ..)| *offset);
        let leads: BTreeSet<u32> = leads.collect();
        // It may have got its lock meanwhile.
        if !leads.is_empty() {
            common = Some(match common {
                None => leads,
                Some(common) => common.intersection(&leads).copied().collect(),
            });
        }
    }
    let idle: Vec<&Held> =
        sessions.iter().filter(|at| at.is_idle).filter_map(|at| held.get(&at.thd)).collect();
    let is_empty = |offset: &u32| idle.iter().all(|held| !held.filled.contains(offset));
    common?.into_iter().find(is_empty)
}

impl Tickets {
    /// Reads the keys of locks that somebody waits for, or that `also` have.
    pub(super) fn name(
        &mut self,
        reads: &mut Reads<'_>,
        shape: &Shape,
        also: &[u64],
    ) -> Result<(), LocksError> {
        let pending = self.held.values().filter_map(|held| Some(held.pending?.0));
        let held = also.iter().filter_map(|thd| self.held.get(thd));
        let held = held.flat_map(|held| held.granted.iter().take(64).map(|(lock, _)| *lock));
        let locks: BTreeSet<u64> = pending.chain(held).collect();
        let locks: Vec<u64> = locks.into_iter().collect();
        let bytes = reads.each(&locks, KEY)?;
        let named = locks.iter().zip(&bytes);
        let named =
            named.filter_map(|(lock, bytes)| Some((*lock, key(bytes.as_ref()?, shape.key)?)));
        self.keys = named.collect();
        Ok(())
    }

    /// Tables that a session has metadata locks of: database and name.
    pub(super) fn tables(&self, thd: u64) -> BTreeSet<Table> {
        let held = self.held.get(&thd).into_iter().flat_map(|held| &held.granted);
        let keys = held.filter_map(|(lock, _)| self.keys.get(lock));
        let tables = keys.filter(|(_, schema, name)| !schema.is_empty() && !name.is_empty());
        tables.map(|(_, schema, name)| (schema.clone(), name.clone())).collect()
    }

    /// Whether the lists of a session were read whole, and have not changed until the other was read.
    pub(super) fn is_steady(&self, later: &Tickets, thd: u64) -> bool {
        let (Some(one), Some(two)) = (self.held.get(&thd), later.held.get(&thd)) else {
            return false;
        };
        one.whole && two.whole && one.context == two.context
    }

    /// Takes over what was read anew of some sessions.
    pub(super) fn renew(&mut self, some: Tickets) {
        self.held.extend(some.held);
    }

    /// Whether no session has a ticket.
    pub(super) fn is_empty(&self) -> bool {
        self.held.values().all(|held| held.granted.is_empty() && held.pending.is_none())
    }

    /// The requests of those who wait, and all locks on the same objects.
    pub(super) fn locks(&self, sessions: &[At]) -> Vec<SeenMetadataLock> {
        let wanted: BTreeSet<u64> =
            self.held.values().filter_map(|held| Some(held.pending?.0)).collect();
        let mut locks = Vec::new();
        for at in sessions {
            let Some(held) = self.held.get(&at.thd) else { continue };
            let pending = held.pending.map(|one| (one, true));
            let granted = held.granted.iter().map(|one| (*one, false));
            for ((lock, mode), is_pending) in pending.into_iter().chain(granted) {
                let named = wanted.contains(&lock).then(|| self.keys.get(&lock)).flatten();
                locks.extend(named.map(|(namespace, schema, name)| SeenMetadataLock {
                    connection_id: at.connection_id,
                    lock,
                    namespace: *namespace,
                    schema: schema.clone(),
                    name: name.clone(),
                    mode,
                    is_pending,
                }));
            }
        }
        locks
    }
}
