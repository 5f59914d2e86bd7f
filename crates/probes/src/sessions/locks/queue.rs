//! Who holds the locks of InnoDB that somebody waits for, or asked for them before.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::{Flavour, SeenRowWait};

use super::reads::{Reads, addresses};
use super::rows::{self, Lock, Transaction};
use super::{LocksError, Table, metadata};

/// Bytes of an index that are searched for the name of its table.
const INDEX: u32 = 0x180;
/// Longest name of a table in InnoDB: database, table and partition.
const NAME: u32 = 448;

/// All locks on the pages and tables for which somebody waits.
pub(super) struct Queue {
    pub(super) shape: rows::Shape,
    pub(super) flavour: Flavour,
    /// By transaction; and whether all its locks were met.
    pub(super) held: Vec<(Transaction, (Vec<Lock>, bool))>,
}

impl Queue {
    pub(super) fn waits(
        &self,
        reads: &mut Reads<'_>,
        waiting: &[(Transaction, Lock)],
        tickets: Option<&metadata::Tickets>,
    ) -> Result<Vec<SeenRowWait>, LocksError> {
        let locks = self.held.iter().flat_map(|(_, (locks, _))| locks);
        let bitmaps =
            locks.chain(waiting.iter().map(|(_, lock)| lock)).filter(|lock| !lock.is_table());
        let places: BTreeSet<(u64, u32)> = bitmaps.map(|lock| lock.bitmap(&self.shape)).collect();
        let places: Vec<(u64, u32)> = places.into_iter().collect();
        let read = reads.places(&places)?;
        let read = places.iter().zip(read).filter_map(|((at, _), bytes)| Some((*at, bytes?)));
        let bitmaps: BTreeMap<u64, Vec<u8>> = read.collect();
        let mut waits = Vec::new();
        for (trx, lock) in waiting {
            let wait = self.wait(reads, &bitmaps, trx, lock)?;
            let Some(mut wait) = wait else { continue };
            let tables = tickets.map(|tickets| tickets.tables(trx.at.thd)).unwrap_or_default();
            wait.table = table(reads, lock, &tables)?;
            waits.push(wait);
        }
        Ok(waits)
    }

    /// `None` where nobody waits any more.
    fn wait(
        &self,
        reads: &mut Reads<'_>,
        bitmaps: &BTreeMap<u64, Vec<u8>>,
        waiter: &Transaction,
        asked: &Lock,
    ) -> Result<Option<SeenRowWait>, LocksError> {
        let bitmap = |lock: &Lock| bitmaps.get(&lock.bitmap(&self.shape).0);
        let mut wait = SeenRowWait {
            connection_id: waiter.at.connection_id,
            mode: asked.mode,
            ..Default::default()
        };
        let mut heap = None;
        if !asked.is_table() {
            let numbers: Vec<u32> =
                bitmap(asked).map(|map| rows::bits(map).collect()).unwrap_or_default();
            let [number] = numbers[..] else {
                wait.unknown = Some("the record that it waits for could not be read".to_owned());
                return Ok(Some(wait));
            };
            heap = Some(number);
            let (low, high) = (asked.place as u32, (asked.place >> 32) as u32);
            wait.record = Some(match self.flavour {
                Flavour::Mysql => (low, high, number),
                Flavour::Mariadb => (high, low, number),
            });
        }
        // The supremum is the second record of every page.
        let is_supremum = heap == Some(1);
        let on_it = |lock: &&Lock| {
            lock.page() == asked.page()
                && heap.is_none_or(|heap| {
                    bitmap(lock).is_some_and(|map| rows::bits(map).any(|bit| bit == heap))
                })
                && rows::has_to_wait(asked.mode, lock.mode, asked.is_table(), is_supremum)
        };
        let others = self.held.iter().filter(|(trx, _)| trx.address != waiter.address);
        let in_the_way: Vec<(Transaction, &Lock)> = others
            .clone()
            .flat_map(|(trx, (locks, _))| locks.iter().filter(on_it).map(|lock| (*trx, lock)))
            .collect();
        let all: Vec<(Transaction, &Lock)> =
            std::iter::once((*waiter, asked)).chain(in_the_way).collect();
        let still = rows::is_still(reads, &self.shape, self.flavour, &all)?;
        if still.first() != Some(&true) {
            return Ok(None);
        }
        let proven = || all.iter().zip(&still).skip(1).filter(|(_, still)| **still);
        let of = |waits: bool| -> BTreeSet<u64> {
            let those = proven().filter(|((_, lock), _)| lock.waits() == waits);
            those.map(|((trx, _), _)| trx.at.connection_id).collect()
        };
        let (holders, before) = (of(false), of(true));
        let is_whole = others.clone().all(|(_, (_, whole))| *whole);
        wait.is_whole = is_whole;
        match (holders.is_empty(), before.len()) {
            (false, _) => wait.blockers = holders.into_iter().collect(),
            // Nobody holds it, so it stands behind one that asked before; with one there is no doubt.
            (true, 1) if is_whole => wait.blockers = before.into_iter().collect(),
            (true, _) => {
                wait.candidates = before.into_iter().collect();
                wait.unknown = Some(match is_whole {
                    true => {
                        "no session that was read holds a lock in the way: it may be a thread of the \
                             server, such as an applier of replication, or a transaction without a session, or \
                             the lock was let go of while it was read"
                            .to_owned()
                    }
                    false => {
                        "the holder may be a transaction whose locks could not all be read: it has \
                              too many, or they changed meanwhile"
                            .to_owned()
                    }
                });
            }
        }
        Ok(Some(wait))
    }
}

/// The table of a lock: the one of the waiter's metadata locks whose name the index, or the table, of
/// InnoDB leads to.
fn table(
    reads: &mut Reads<'_>,
    lock: &Lock,
    tables: &BTreeSet<Table>,
) -> Result<Option<Table>, LocksError> {
    if tables.is_empty() {
        return Ok(None);
    }
    let object = if lock.is_table() { lock.place } else { lock.index };
    let Some(body) = reads.each(&[object], INDEX)?.remove(0) else { return Ok(None) };
    let (words, _) = body.as_chunks::<8>();
    let texts = words.iter().map(|word| u64::from_ne_bytes(*word)).filter(|word| word >> 16 != 0);
    let mut texts: Vec<u64> = texts.filter(|word| word >> 47 == 0).collect();
    let inner: Vec<u64> = addresses(&body).map(|(_, to)| to).collect();
    for bytes in reads.each(&inner, 0x40)?.into_iter().flatten() {
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_ne_bytes(*word));
        texts.extend(words.filter(|word| word >> 16 != 0 && word >> 47 == 0));
    }
    let read = reads.each(&texts, NAME)?;
    let mut found = BTreeSet::new();
    for bytes in read.iter().flatten() {
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_of = |(schema, table): &&Table| {
            let rest =
                name.strip_prefix(schema.as_slice()).and_then(|rest| rest.strip_prefix(b"/"));
            let rest = rest.and_then(|rest| rest.strip_prefix(table.as_slice()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"#"))
        };
        found.extend(tables.iter().filter(is_of));
    }
    Ok(match found.len() {
        1 => found.into_iter().next().cloned(),
        _ => None,
    })
}
