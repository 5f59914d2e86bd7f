//! Places in the memory of another process, and what was read there.

use std::io::{self, Write};

/// Most bytes that one place gives; a longer one is cut. The largest text that can be asked for.
pub const LONGEST_PLACE: u32 = 64 * 1024;

/// Smallest page of any architecture that we run on: a read that ends with a page of this size
/// never touches one more page than it must.
pub(super) const PAGE: u64 = 4096;

/// Some bytes of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) address: u64,
    pub(super) length: u32,
}

impl Place {
    /// `length` bytes, at most [`LONGEST_PLACE`], from `address` on.
    pub fn new(address: u64, length: u64) -> Self {
        Self { address, length: length.min(u64::from(LONGEST_PLACE)) as u32 }
    }

    /// Its address and its length.
    pub(crate) fn parts(self) -> (u64, u32) {
        (self.address, self.length)
    }

    /// A string of unknown length that ends with a zero byte: the first `longest` bytes, as one
    /// place up to the end of the page and one after it. The second may be missing in memory
    /// although the string is whole.
    pub fn zero_ended(address: u64, longest: u32) -> [Place; 2] {
        let to_page_end = PAGE - address % PAGE;
        let first = u64::from(longest).min(to_page_end);
        [
            Place::new(address, first),
            Place::new(address.wrapping_add(first), u64::from(longest) - first),
        ]
    }
}

/// The places to read, and afterwards what was there. Kept between reads, so that no memory is
/// asked for each time.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) places: Vec<Place>,
    pub(super) starts: Vec<usize>,
    pub(super) present: Vec<bool>,
    pub(super) bytes: Vec<u8>,
}

impl Batch {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.clear();
        self.starts.clear();
        self.present.clear();
        self.bytes.clear();
    }

    /// Adds a place; gives its number.
    pub fn add(&mut self, place: Place) -> usize {
        self.starts.push(self.starts.last().map_or(0, |start| {
            start + self.places.last().map_or(0, |before| before.length as usize)
        }));
        self.places.push(place);
        self.places.len() - 1
    }

    /// The places, each by its address and its length.
    pub(crate) fn list(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.places.iter().map(|place| place.parts())
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What was read at a place; `None` if it could not be read whole.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        self.joined(number, 1)
    }

    /// What was read at `count` places that were added one after the other, as one piece; `None`
    /// where one of them could not be read whole.
    pub fn joined(&self, first: usize, count: usize) -> Option<&[u8]> {
        let last = (first + count).checked_sub(1)?;
        if !self.present.get(first..=last)?.iter().all(|present| *present) {
            return None;
        }
        let end = self.starts.get(last)? + self.places.get(last)?.length as usize;
        self.bytes.get(*self.starts.get(first)?..end)
    }

    /// The bytes before the first zero byte of a string that [`Place::zero_ended`] asked for.
    /// A string that does not end is cut at the length that was asked for.
    pub fn zero_ended(&self, first: usize) -> Option<&[u8]> {
        let head = self.get(first)?;
        if let Some(end) = head.iter().position(|byte| *byte == 0) {
            return head.get(..end);
        }
        let whole = self.joined(first, 2)?;
        whole.split(|byte| *byte == 0).next()
    }

    /// Makes room for what is there.
    pub(super) fn prepare(&mut self) {
        let total = self.places.iter().map(|place| place.length as usize).sum();
        self.bytes.clear();
        self.bytes.resize(total, 0);
        self.present.clear();
        self.present.resize(self.places.len(), false);
    }

    /// Tells another process the places.
    pub(super) fn write_places(&self, out: &mut Vec<u8>) {
        for place in &self.places {
            out.extend(place.address.to_ne_bytes());
            out.extend(place.length.to_ne_bytes());
        }
    }

    /// The places that another process told.
    pub(super) fn of_places(told: &[u8]) -> Batch {
        let mut batch = Batch::default();
        let (places, _) = told.as_chunks::<12>();
        for [a, b, c, d, e, f, g, h, length @ ..] in places {
            let address = u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            batch.add(Place::new(address, u32::from_ne_bytes(*length).into()));
        }
        batch
    }

    /// Tells what was read: of each place whether it is there, and the bytes of all.
    pub(super) fn write_read(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.present.iter().map(|present| u8::from(*present)).collect::<Vec<u8>>())?;
        out.write_all(&self.bytes)
    }

    /// How many bytes that takes.
    pub(super) fn length_read(&self) -> usize {
        self.present.len() + self.bytes.len()
    }

    /// Takes what another process has read at these places: `read` gives its next bytes.
    pub(super) fn take_read(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut present = vec![0; self.present.len()];
        read(&mut present)?;
        read(&mut self.bytes)?;
        self.present = present.into_iter().map(|present| present != 0).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_wild_length_is_cut() {
        let batch_of = |length| {
            let mut batch = Batch::default();
            batch.add(Place::new(0x1000, length));
            batch.prepare();
            batch.bytes.len()
        };
        assert_eq!(batch_of(u64::MAX), LONGEST_PLACE as usize);
        assert_eq!(batch_of(7), 7);
    }

    #[test]
    fn what_another_process_read_is_what_was_asked_for() {
        let mut batch = Batch::default();
        batch.add(Place::new(u64::MAX, 3));
        batch.add(Place::new(7, 2));
        let mut told = Vec::new();
        batch.write_places(&mut told);
        let mut other = Batch::of_places(&told);
        assert_eq!(other.places, batch.places);
        other.prepare();
        (other.present, other.bytes) = (vec![true, false], vec![1, 2, 3, 0, 0]);
        let mut told = Vec::new();
        other.write_read(&mut told).unwrap();
        batch.prepare();
        assert_eq!(batch.length_read(), told.len());
        let mut cut = &told[..told.len() - 1];
        assert!(batch.take_read(|into| cut.read_exact(into)).is_err());
        assert_eq!(batch.get(0), None);
        let mut told = &told[..];
        batch.take_read(|into| told.read_exact(into)).unwrap();
        assert_eq!((batch.get(0), batch.get(1)), (Some(&[1, 2, 3][..]), None));
    }
}
