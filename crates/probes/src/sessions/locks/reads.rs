//! Bounded reads of many places, for what follows pointers.

use std::time::Duration;

use super::LocksError;
use crate::servers::{Batch, MemoryError, Place, ProcessMemory};

/// Most bytes that are asked for in one turn.
const TURN: u64 = 4 << 20;
/// User space of x86-64 ends here.
const HIGHEST: u64 = 1 << 47;
/// Nothing of a server lies below.
const LOWEST: u64 = 1 << 16;

/// Where places are read.
pub(crate) trait Memory {
    /// What lies at each of these addresses, where all of it is there.
    fn read(&mut self, places: &[(u64, u32)]) -> Result<Vec<Option<Vec<u8>>>, MemoryError>;

    /// What reading has taken, without the time in which nobody got to run.
    fn spent(&self) -> Duration;
}

impl Memory for ProcessMemory {
    fn spent(&self) -> Duration {
        ProcessMemory::spent(self)
    }

    fn read(&mut self, places: &[(u64, u32)]) -> Result<Vec<Option<Vec<u8>>>, MemoryError> {
        let mut batch = Batch::default();
        for (address, length) in places {
            batch.add(Place::new(*address, u64::from(*length)));
        }
        ProcessMemory::read(self, &mut batch)?;
        Ok((0..places.len()).map(|at| batch.get(at).map(<[u8]>::to_vec)).collect())
    }
}

/// The reads of one look, with a limit on their bytes and on their time.
pub(super) struct Reads<'a> {
    memory: &'a mut dyn Memory,
    bytes: u64,
    most: Duration,
}

impl<'a> Reads<'a> {
    pub(super) fn new(memory: &'a mut dyn Memory, bytes: u64, most: Duration) -> Self {
        Self { memory, bytes, most }
    }

    /// How many more may be read.
    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes
    }

    pub(super) fn places(
        &mut self,
        places: &[(u64, u32)],
    ) -> Result<Vec<Option<Vec<u8>>>, LocksError> {
        let mut read = Vec::with_capacity(places.len());
        let mut rest = places;
        while !rest.is_empty() {
            let mut length = 0u64;
            let fits = |(_, bytes): &&(u64, u32)| {
                length = length.saturating_add(u64::from(*bytes));
                length <= TURN
            };
            let turn = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(turn);
            rest = later;
            let asked = now.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
            self.bytes = self.bytes.checked_sub(asked).ok_or(LocksError::TooMuch)?;
            if self.memory.spent() > self.most {
                return Err(LocksError::TooMuch);
            }
            read.extend(self.memory.read(now)?);
        }
        Ok(read)
    }

    /// The same number of bytes at each address.
    pub(super) fn each(
        &mut self,
        addresses: &[u64],
        length: u32,
    ) -> Result<Vec<Option<Vec<u8>>>, LocksError> {
        let places: Vec<(u64, u32)> = addresses.iter().map(|address| (*address, length)).collect();
        self.places(&places)
    }

    /// The word at each address; none at what is no address.
    pub(super) fn words(&mut self, addresses: &[u64]) -> Result<Vec<Option<u64>>, LocksError> {
        let places: Vec<(u64, u32)> = addresses.iter().map(|at| (*at, 8)).collect();
        let read = self.places(&places)?;
        Ok(read.iter().map(|bytes| word(bytes.as_deref()?, 0)).collect())
    }
}

/// The word at an offset.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// The half word at an offset.
pub(super) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// Whether a word can be the address of an object.
pub(super) fn is_address(word: u64) -> bool {
    (LOWEST..HIGHEST).contains(&word) && word.is_multiple_of(8)
}

/// The words of some bytes that can be addresses of objects, with their offsets.
pub(super) fn addresses(bytes: &[u8]) -> impl Iterator<Item = (u32, u64)> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |(at, word): (usize, &[u8; 8])| (at as u32 * 8, u64::from_ne_bytes(*word));
    words.iter().enumerate().map(word).filter(|(_, word)| is_address(*word))
}
