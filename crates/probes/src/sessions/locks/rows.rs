//! Locks of InnoDB: the transactions of sessions, and their lists of locks.
//!
//! A session (`THD`) leads to its transaction (`trx_t`), at once (MariaDB) or by another object (MySQL),
//! and the transaction leads back. Two words of the transaction, side by side, are the first and the last
//! of its locks (`lock_t`), each of which begins with the address of the transaction. The rest of a lock
//! has the order of all versions: neighbours in that list, index, next in the hash, and then tablespace,
//! page and size of the bitmap, or the table. Where the mode lies is found by what fits all locks.

mod find;

use waggle_model::Flavour;

use super::reads::{Reads, half, is_address, word};
use super::{At, LocksError};

pub(super) use find::derive;

/// Bytes of a lock before its bitmap, at most.
const LOCK: u32 = 0x80;
/// Offsets in a lock.
const PREV: usize = 0x08;
const NEXT: usize = 0x10;
const INDEX: usize = 0x18;
/// Largest bitmap, in bits: a page of 64 KiB has fewer records.
const BITS_MAX: u32 = 1 << 16;

/// Where a build keeps transactions and locks. Everything that is read has to prove itself again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Of the word in the session that leads to the transaction.
    slot: u32,
    /// Whether another object lies between.
    indirect: bool,
    /// Of the session in the transaction.
    back: u32,
    /// Of the first lock in the transaction; the last one is the next word.
    locks: u32,
    /// In the lock.
    lock: LockShape,
}

/// Where a lock keeps what differs between builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockShape {
    /// Tablespace and page, and in the next word the size of the bitmap; or the table.
    place: u32,
    mode: u32,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) address: u64,
    prev: u64,
    next: u64,
    /// 0 of a lock of a table.
    pub(super) index: u64,
    /// Tablespace and page, or the address of the table.
    pub(super) place: u64,
    bits: u32,
    pub(super) mode: u32,
}

const WAIT: u32 = 0x100;
pub(super) const GAP: u32 = 0x200;
pub(super) const NOT_GAP: u32 = 0x400;
pub(super) const INSERT_INTENTION: u32 = 0x800;
/// All flags that a lock can have: those, and of spatial indexes.
const FLAGS: u32 = 0x3f00;

/// Whether a mode is that of a lock of a table, or of records (`lock0types.h`, the same in all versions); `None` if it
/// is neither.
fn is_of_table(flavour: Flavour, mode: u32) -> Option<bool> {
    let kind = mode & 0xff;
    let (table, records) = match flavour {
        Flavour::Mysql => (0x10..=0x14, 0x22..=0x23),
        Flavour::Mariadb => (8..=12, 2..=3),
    };
    let is_table = table.contains(&kind);
    let fits = (is_table || records.contains(&kind)) && mode & !(FLAGS | 0xff) == 0;
    fits.then_some(is_table)
}

impl Lock {
    fn of(
        bytes: &[u8],
        transaction: u64,
        address: u64,
        shape: LockShape,
        flavour: Flavour,
    ) -> Option<Lock> {
        let at = |offset| word(bytes, offset);
        let mode = half(bytes, shape.mode as usize)?;
        let is_table = is_of_table(flavour, mode)?;
        let lock = Lock {
            address,
            prev: at(PREV)?,
            next: at(NEXT)?,
            // Of a table MySQL leaves there what was in the memory before.
            index: if is_table { 0 } else { at(INDEX)? },
            place: at(shape.place as usize)?,
            bits: half(bytes, shape.place as usize + 8)?,
            mode,
        };
        let sound = |link| link == 0 || is_address(link);
        let fits = at(0)? == transaction
            && sound(lock.prev)
            && sound(lock.next)
            && match is_table {
                true => is_address(lock.place),
                false => {
                    is_address(lock.index)
                        && lock.bits > 0
                        && lock.bits <= BITS_MAX
                        && lock.bits.is_multiple_of(8)
                }
            };
        fits.then_some(lock)
    }

    pub(super) fn is_table(&self) -> bool {
        self.index == 0
    }

    pub(super) fn waits(&self) -> bool {
        self.mode & WAIT != 0
    }

    /// What it is on, without the record.
    pub(super) fn page(&self) -> (u64, u64) {
        (self.index, self.place)
    }

    /// Where its bitmap lies: behind the mode, at the next word.
    pub(super) fn bitmap(&self, shape: &Shape) -> (u64, u32) {
        let end = u64::from(shape.lock.mode + 4).next_multiple_of(8);
        (self.address.wrapping_add(end), self.bits / 8)
    }
}

/// Whether a lock that is asked for has to wait for one of another transaction on the same record or
/// table: `lock_rec_has_to_wait` in `storage/innobase/lock/lock0lock.cc`, the same in all versions.
pub(super) fn has_to_wait(asked: u32, other: u32, is_table: bool, is_supremum: bool) -> bool {
    const MODES: [&[u8; 5]; 5] = [b"+++-+", b"++--+", b"+-+--", b"-----", b"++---"];
    let of = |mode: u32| (mode & 7) as usize;
    let row = MODES.get(of(asked)).and_then(|row| row.get(of(other)));
    let excludes = row == Some(&b'-');
    let (is_insert, has) = (asked & INSERT_INTENTION != 0, |mode: u32, flag: u32| mode & flag != 0);
    if !excludes || is_table {
        return excludes;
    }
    let is_on_gap = (is_supremum || has(asked, GAP)) && !is_insert;
    !(is_on_gap
        || !is_insert && has(other, GAP)
        || has(asked, GAP) && has(other, NOT_GAP)
        || has(other, INSERT_INTENTION))
}

/// The numbers of the bits that are set.
pub(super) fn bits(bitmap: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let of = |(at, byte): (usize, &u8)| {
        let byte = *byte;
        (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at as u32 * 8 + bit)
    };
    bitmap.iter().enumerate().flat_map(of)
}

/// A transaction of a session, with the ends of its list of locks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) at: At,
    pub(super) address: u64,
    first: u64,
    last: u64,
}

/// The transactions of sessions that have locks.
pub(super) fn transactions(
    reads: &mut Reads<'_>,
    shape: &Shape,
    sessions: &[At],
) -> Result<Vec<Transaction>, LocksError> {
    let slots: Vec<u64> =
        sessions.iter().map(|at| at.thd.wrapping_add(u64::from(shape.slot))).collect();
    let mut to = reads.words(&slots)?;
    if shape.indirect {
        let between: Vec<u64> = to.iter().map(|to| to.unwrap_or(0)).collect();
        to = reads.words(&between)?;
    }
    let led = sessions
        .iter()
        .zip(to)
        .filter_map(|(at, to)| Some((*at, to.filter(|to| is_address(*to))?)));
    let led: Vec<(At, u64)> = led.collect();
    let places: Vec<(u64, u32)> = led
        .iter()
        .flat_map(|(_, to)| {
            let at = |offset: u32| to.wrapping_add(u64::from(offset));
            [(at(shape.back), 8), (at(shape.locks), 16)]
        })
        .collect();
    let read = reads.places(&places)?;
    let own = led.into_iter().zip(read.chunks(2)).filter_map(|((at, address), read)| {
        let [Some(back), Some(ends)] = read else { return None };
        let (first, last) = (word(ends, 0)?, word(ends, 8)?);
        let fits = word(back, 0)? == at.thd && is_address(first) && is_address(last);
        fits.then_some(Transaction { at, address, first, last })
    });
    Ok(own.collect())
}

/// Reads the locks of transactions, from the last one back; `want` says which are kept. The second part
/// says whether all of a transaction's locks were met: `steps` bounds their number.
pub(super) fn locks(
    reads: &mut Reads<'_>,
    shape: &Shape,
    flavour: Flavour,
    of: &[Transaction],
    steps: usize,
    want: impl Fn(&Lock) -> bool,
) -> Result<Vec<(Vec<Lock>, bool)>, LocksError> {
    let mut all: Vec<(Vec<Lock>, bool)> = vec![(Vec::new(), false); of.len()];
    let mut next: Vec<(usize, u64, u64)> =
        of.iter().enumerate().map(|(at, one)| (at, one.last, 0)).collect();
    for _ in 0..steps {
        if next.is_empty() {
            break;
        }
        let asked: Vec<u64> = next.iter().map(|(_, address, _)| *address).collect();
        let read = reads.each(&asked, LOCK)?;
        let mut later = Vec::new();
        for ((at, address, behind), bytes) in next.into_iter().zip(&read) {
            let Some(bytes) = bytes else { continue };
            let lock = Lock::of(bytes, of[at].address, address, shape.lock, flavour);
            let Some(lock) = lock.filter(|lock| lock.next == behind) else { continue };
            if lock.prev == 0 {
                all[at].1 = address == of[at].first;
            } else {
                later.push((at, lock.prev, address));
            }
            if want(&lock) {
                all[at].0.push(lock);
            }
        }
        next = later;
    }
    Ok(all)
}

/// Whether a lock is still what it was, and one of that transaction.
pub(super) fn is_still(
    reads: &mut Reads<'_>,
    shape: &Shape,
    flavour: Flavour,
    of: &[(Transaction, &Lock)],
) -> Result<Vec<bool>, LocksError> {
    let places: Vec<(u64, u32)> = of
        .iter()
        .flat_map(|(trx, lock)| {
            [(lock.address, LOCK), (trx.address.wrapping_add(u64::from(shape.back)), 8)]
        })
        .collect();
    let read = reads.places(&places)?;
    let holds = of.iter().zip(read.chunks(2)).map(|((trx, lock), read)| {
        let [Some(bytes), Some(back)] = read else { return false };
        let now = Lock::of(bytes, trx.address, lock.address, shape.lock, flavour);
        let is_same = |now: Lock| now.page() == lock.page() && now.mode == lock.mode;
        word(back, 0) == Some(trx.at.thd) && now.is_some_and(is_same)
    });
    Ok(holds.collect())
}
