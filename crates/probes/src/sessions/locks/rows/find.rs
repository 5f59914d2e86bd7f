//! Where a build keeps transactions and locks: found by what proves itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use waggle_model::Flavour;

use super::super::reads::{Reads, addresses, is_address, word};
use super::super::{At, LocksError, STEPS_MAX};
use super::{LOCK, Lock, LockShape, Shape, Transaction};

/// Bytes of a session that are searched, and how many are read together: its end may not be mapped.
const SESSION: u64 = 0x4000;
const CHUNK: u64 = 0x800;
/// Bytes of a transaction that are searched; if they are not there, fewer.
const TRANSACTION: [u32; 2] = [0xa00, 0x400];
/// Where the page or the table can lie in a lock: behind the next in the hash, and of MariaDB behind two times.
const PLACES: [u32; 3] = [0x28, 0x30, 0x38];

/// A place that leads from a session to what may be its transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    slot: u32,
    indirect: bool,
    back: u32,
}

/// Finds the shape by what proves itself. `None` if no session has a lock: then none waits for one.
pub(in crate::sessions::locks) fn derive(
    reads: &mut Reads<'_>,
    sessions: &[At],
    flavour: Flavour,
) -> Result<Option<Shape>, LocksError> {
    let mut strong: BTreeMap<Way, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut weak: BTreeMap<Way, usize> = BTreeMap::new();
    let mut shapes: HashMap<u64, Ends> = HashMap::new();
    let mut waiting = BTreeSet::new();
    for at in sessions {
        let found = candidates(reads, at.thd)?;
        let with_locks = lists(reads, &found, flavour, &mut waiting)?;
        for (way, transaction, _) in found {
            *weak.entry(way).or_default() += 1;
            if with_locks.contains_key(&transaction) {
                strong.entry(way).or_default().insert(at.thd, transaction);
            }
        }
        shapes.extend(with_locks);
    }
    let score = |way: &Way| (strong.get(way).map_or(0, BTreeMap::len), weak.get(way).copied());
    let Some(most) = strong.keys().map(score).max() else { return Ok(None) };
    let best: Vec<&Way> = strong.keys().filter(|way| score(way) == most).collect();
    let ambiguous = LocksError::Ambiguous("transactions");
    let Some(first) = best.first() else { return Ok(None) };
    let transactions = &strong[*first];
    if best.iter().any(|way| strong[*way] != *transactions || way.back != first.back) {
        return Err(ambiguous);
    }
    let of = transactions.values().map(|transaction| shapes[transaction].clone());
    let common =
        of.reduce(|one, two| one.intersection(&two).copied().collect()).unwrap_or_default();
    let common = match common.len() {
        ..2 => common,
        // Two other words of a transaction can lead to the ends of its list for a while.
        _ => counted(reads, flavour, sessions, transactions, common)?,
    };
    match common.into_iter().collect::<Vec<_>>()[..] {
        [(locks, lock)] => {
            let Way { slot, indirect, back } = **first;
            Ok(Some(Shape { slot, indirect, back, locks, lock }))
        }
        // Locks of tables alone leave a choice; nobody waits for a row, where nobody has a lock of one.
        [_, ..] if transactions.values().all(|one| !waiting.contains(one)) => Ok(None),
        _ => Err(ambiguous),
    }
}

/// Of several places those where the word before the ends is the number of locks, as lists of InnoDB have it; all,
/// if none is.
fn counted(
    reads: &mut Reads<'_>,
    flavour: Flavour,
    sessions: &[At],
    transactions: &BTreeMap<u64, u64>,
    places: Ends,
) -> Result<Ends, LocksError> {
    let mut fit = Ends::new();
    for (ends, lock) in &places {
        let shape = Shape { slot: 0, indirect: false, back: 0, locks: *ends, lock: *lock };
        let (mut counts, mut lists) = (Vec::new(), Vec::new());
        for at in sessions {
            let Some(address) = transactions.get(&at.thd) else { continue };
            let before = address.wrapping_add(u64::from(*ends)).wrapping_sub(8);
            let [count, first, last] = [0, 8, 16].map(|word| before.wrapping_add(word));
            let words = reads.words(&[count, first, last])?;
            let [Some(count), Some(first), Some(last)] = words[..] else { continue };
            counts.push(count);
            lists.push(Transaction { at: *at, address: *address, first, last });
        }
        let met = super::locks(reads, &shape, flavour, &lists, STEPS_MAX, |_| true)?;
        let is_right = |(count, (locks, whole)): (&u64, &(Vec<Lock>, bool))| {
            *whole && u64::try_from(locks.len()) == Ok(*count)
        };
        if !met.is_empty() && counts.iter().zip(&met).all(is_right) {
            fit.insert((*ends, *lock));
        }
    }
    Ok(if fit.is_empty() { places } else { fit })
}

/// Objects to which a session leads and that lead back to it, with their bytes.
fn candidates(reads: &mut Reads<'_>, thd: u64) -> Result<Vec<(Way, u64, Vec<u8>)>, LocksError> {
    let chunks: Vec<u64> = (0..SESSION / CHUNK).map(|at| thd.wrapping_add(at * CHUNK)).collect();
    let bodies = reads.each(&chunks, CHUNK as u32)?;
    let mut found: Vec<(u32, bool, u64)> = Vec::new();
    for (chunk, body) in bodies.iter().enumerate() {
        let words = body.iter().flat_map(|body| addresses(body));
        found.extend(words.map(|(at, to)| (chunk as u32 * CHUNK as u32 + at, false, to)));
    }
    // What it leads to can lie right behind the session, whose length nobody knows.
    found.retain(|(.., to)| *to != thd);
    let firsts: Vec<u64> = found.iter().map(|(.., to)| *to).collect();
    let seconds = reads.words(&firsts)?;
    let seconds: Vec<(u32, bool, u64)> = found
        .iter()
        .zip(seconds)
        .filter_map(|((slot, ..), to)| Some((*slot, true, to.filter(|to| is_address(*to))?)))
        .filter(|(.., to)| *to != thd)
        .collect();
    found.extend(seconds);
    let asked: BTreeSet<u64> = found.iter().map(|(.., to)| *to).collect();
    let asked: Vec<u64> = asked.into_iter().collect();
    let mut bodies = reads.each(&asked, TRANSACTION[0])?;
    let short: Vec<usize> = (0..asked.len()).filter(|at| bodies[*at].is_none()).collect();
    let again: Vec<u64> = short.iter().map(|at| asked[*at]).collect();
    for (at, body) in short.into_iter().zip(reads.each(&again, TRANSACTION[1])?) {
        bodies[at] = body;
    }
    let bodies: HashMap<u64, Vec<u8>> =
        asked.into_iter().zip(bodies).filter_map(|(at, body)| Some((at, body?))).collect();
    let mut ways = Vec::new();
    for (slot, indirect, to) in found {
        let Some(body) = bodies.get(&to) else { continue };
        let back = addresses(body).filter(|(at, word)| *at >= 8 && *word == thd);
        ways.extend(back.map(|(back, _)| (Way { slot, indirect, back }, to, body.clone())));
    }
    Ok(ways)
}

/// Where in an object a list of locks can have its ends, and where in these locks the mode can lie.
type Ends = BTreeSet<(u32, LockShape)>;

/// Which of these objects lead to both ends of a list of locks: those can be transactions. `waiting` gets those
/// that may wait.
fn lists(
    reads: &mut Reads<'_>,
    found: &[(Way, u64, Vec<u8>)],
    flavour: Flavour,
    waiting: &mut BTreeSet<u64>,
) -> Result<HashMap<u64, Ends>, LocksError> {
    let mut pairs = BTreeMap::new();
    for (_, transaction, body) in found {
        for (at, first) in addresses(body) {
            let last = word(body, at as usize + 8).filter(|last| is_address(*last));
            pairs.extend(last.map(|last| ((*transaction, at), (first, last))));
        }
    }
    let firsts: Vec<u64> = pairs.values().map(|(first, _)| *first).collect();
    let heads = reads.words(&firsts)?;
    let is_own = |(((transaction, _), _), head): &(_, Option<u64>)| *head == Some(*transaction);
    let pairs: Vec<((u64, u32), (u64, u64))> =
        pairs.into_iter().zip(heads).filter(is_own).map(|(pair, _)| pair).collect();
    let ends: Vec<u64> = pairs.iter().flat_map(|(_, (first, last))| [*first, *last]).collect();
    let ends = reads.each(&ends, LOCK)?;
    let mut lists: HashMap<u64, Ends> = HashMap::new();
    for (((transaction, at), (first, last)), ends) in pairs.into_iter().zip(ends.chunks(2)) {
        let [Some(one), Some(two)] = ends else { continue };
        for shape in LockShape::all() {
            let lock = |bytes: &[u8], at| Lock::of(bytes, transaction, at, shape, flavour);
            let (Some(one), Some(two)) = (lock(one, first), lock(two, last)) else { continue };
            if one.prev == 0 && two.next == 0 {
                lists.entry(transaction).or_default().insert((at, shape));
                if one.waits() || two.waits() {
                    waiting.insert(transaction);
                }
            }
        }
    }
    Ok(lists)
}

impl LockShape {
    /// Every one that can be.
    fn all() -> impl Iterator<Item = LockShape> {
        let modes = |place: u32| (place + 0x18..LOCK - 4).step_by(4);
        PLACES
            .into_iter()
            .flat_map(move |place| modes(place).map(move |mode| LockShape { place, mode }))
    }
}
