//! Where a build keeps its tickets: found by what proves itself.

use std::collections::{BTreeMap, BTreeSet};

use super::super::reads::{Reads, addresses, is_address, word};
use super::super::{At, LocksError};
use super::{CONTEXT, KEY, Shape, TICKET, key};

/// Bytes of a session in which its context lies.
const SESSION: u32 = 0x1000;
/// Tickets behind one at which the key is searched.
const TICKETS_SEARCHED: usize = 8;

/// Finds the shape by what proves itself. `None` if no session has a ticket; an error if there is more
/// than one that proves itself as often.
pub(in crate::sessions::locks) fn derive(
    reads: &mut Reads<'_>,
    sessions: &[At],
) -> Result<Option<Shape>, LocksError> {
    let heads: Vec<u64> = sessions.iter().map(|at| at.thd).collect();
    let bodies = reads.each(&heads, SESSION)?;
    let mut pointers = Vec::new();
    for (at, body) in sessions.iter().zip(&bodies) {
        let Some(body) = body else { continue };
        let outside = |address: u64| !(at.thd..at.thd + u64::from(SESSION)).contains(&address);
        let words = addresses(body).filter(|(_, address)| outside(*address));
        pointers.extend(words.map(|(offset, address)| (at.thd, offset, address)));
    }
    let asked: Vec<u64> = pointers.iter().map(|(.., address)| *address).collect();
    let tickets = reads.each(&asked, TICKET)?;
    let mut found = Vec::new();
    for ((thd, head, _), ticket) in pointers.iter().zip(&tickets) {
        let Some(ticket) = ticket else { continue };
        found.extend(
            links(*thd, *head, ticket)
                .map(|link| (*thd, link, word(ticket, link.back as usize + 8).unwrap_or(0))),
        );
    }
    let locks: Vec<u64> = found.iter().map(|(.., lock)| *lock).collect();
    let keys = reads.each(&locks, KEY)?;
    let mut votes: BTreeMap<Link, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for ((thd, link, lock), bytes) in found.into_iter().zip(&keys) {
        if bytes.as_ref().is_some_and(|bytes| texts(bytes).next().is_some()) {
            votes.entry(link).or_default().insert((thd, lock));
        }
    }
    let most = votes.values().map(BTreeSet::len).max().unwrap_or(0);
    let best: Vec<Link> =
        votes.iter().filter(|(_, of)| of.len() == most).map(|(link, _)| *link).collect();
    let ambiguous = || LocksError::Ambiguous("metadata locks");
    let [link] = best[..] else {
        return if best.is_empty() { Ok(None) } else { Err(ambiguous()) };
    };
    let tickets = pointers.iter().zip(&tickets).filter_map(|((thd, ..), ticket)| {
        Some((*thd, ticket.as_deref().filter(|ticket| link.is_of(*thd, ticket))?))
    });
    let texts = text(reads, link, tickets.collect())?;
    let Some(key) = texts.first().copied() else { return Ok(None) };
    let owner = owner(&heads, &bodies, link.context).ok_or_else(ambiguous)?;
    let Link { context, prev, back } = link;
    Ok(Some(Shape { context, owner, prev, back, key, is_certain: texts.len() == 1 }))
}

/// Offsets at which the text of a lock's key can begin.
fn texts(lock: &[u8]) -> impl Iterator<Item = u32> + '_ {
    [4, 6, 8, 10, 12].into_iter().filter(|text| key(lock, *text).is_some())
}

/// The offsets at which the text of the keys of most of these tickets, and of those behind them, can begin.
fn text(
    reads: &mut Reads<'_>,
    link: Link,
    tickets: Vec<(u64, &[u8])>,
) -> Result<Vec<u32>, LocksError> {
    let mut locks: BTreeSet<u64> = BTreeSet::new();
    let mut tickets: Vec<(u64, Vec<u8>)> =
        tickets.into_iter().map(|(thd, ticket)| (thd, ticket.to_vec())).collect();
    for _ in 0..TICKETS_SEARCHED {
        locks.extend(tickets.iter().filter_map(|(_, ticket)| word(ticket, link.back as usize + 8)));
        let next =
            |ticket: &[u8]| word(ticket, link.prev as usize - 8).filter(|at| is_address(*at));
        let next: Vec<(u64, u64)> =
            tickets.iter().filter_map(|(thd, ticket)| Some((*thd, next(ticket)?))).collect();
        let asked: Vec<u64> = next.iter().map(|(_, at)| *at).collect();
        let read = reads.each(&asked, TICKET)?;
        let read = next.into_iter().zip(read).filter_map(|((thd, _), ticket)| Some((thd, ticket?)));
        tickets = read.filter(|(thd, ticket)| link.is_of(*thd, ticket)).collect();
    }
    let locks: Vec<u64> = locks.into_iter().filter(|lock| is_address(*lock)).collect();
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    for bytes in reads.each(&locks, KEY)?.iter().flatten() {
        texts(bytes).for_each(|text| *votes.entry(text).or_default() += 1);
    }
    let most = votes.values().max().copied();
    Ok(votes.into_iter().filter(|(_, of)| Some(*of) == most).map(|(text, _)| text).collect())
}

/// How a ticket hangs at its context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    context: u32,
    prev: u32,
    back: u32,
}

impl Link {
    fn is_of(&self, thd: u64, ticket: &[u8]) -> bool {
        let context = thd.checked_add(u64::from(self.context));
        context.is_some() && word(ticket, self.back as usize) == context
    }
}

/// How a word of a session may lead to a ticket that points back to the word itself, and to a place of the
/// session before it, its context.
fn links(thd: u64, head: u32, ticket: &[u8]) -> impl Iterator<Item = Link> + '_ {
    let at = thd.wrapping_add(u64::from(head));
    let prev = (0x10..0x30).step_by(8).filter(move |prev| word(ticket, *prev) == Some(at));
    prev.flat_map(move |prev| {
        (prev + 8..TICKET as usize - 8).step_by(8).filter_map(move |back| {
            let context = u32::try_from(word(ticket, back)?.checked_sub(thd)?).ok()?;
            let before = head.checked_sub(context)?;
            let fits = context >= 8 && context.is_multiple_of(8) && before > 0 && before < CONTEXT;
            let lock = word(ticket, back + 8)?;
            let (prev, back) = (prev as u32, back as u32);
            (fits && is_address(lock)).then_some(Link { context, prev, back })
        })
    })
}

/// The first word of all contexts that leads to one place in its own session, outside of the context.
fn owner(heads: &[u64], bodies: &[Option<Vec<u8>>], context: u32) -> Option<(u32, u32)> {
    let mut common: Option<BTreeSet<(u32, u32)>> = None;
    for (thd, body) in heads.iter().zip(bodies) {
        let Some(body) = body else { continue };
        let leads = (context..context + CONTEXT).step_by(8).filter_map(|at| {
            let to = u32::try_from(word(body, at as usize)?.checked_sub(*thd)?).ok()?;
            (to < context).then_some((at, to))
        });
        let leads: BTreeSet<(u32, u32)> = leads.collect();
        common = Some(match common {
            None => leads,
            Some(common) => common.intersection(&leads).copied().collect(),
        });
    }
    common?.first().copied()
}
