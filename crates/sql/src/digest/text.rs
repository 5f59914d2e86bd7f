//! The text of a digest while it grows.

use std::ops::Range;

use super::stack::{DIGEST_LENGTH, TOKEN_BYTES};
use crate::letters::{LETTERS, Letters};

/// Bytes of a token in the table of a server, with the blank after it.
pub(super) const PIECE: usize = 48;

/// What a token prints, with the blank after it where one follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    bytes: [u8; PIECE],
    length: u8,
}

impl Piece {
    /// Of a text of at most [`PIECE`] bytes; the rest of a longer one is cut.
    pub(super) fn new(text: &[u8]) -> Piece {
        let length = text.len().min(PIECE);
        let mut bytes = [0; PIECE];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Piece { bytes, length: length as u8 }
    }
}

/// Room for the text of a full token array of the usual length, and for one fixed write after it: no
/// token prints more than [`PIECE`] bytes but names, which take more of the array than of the text.
const ROOM: usize = (DIGEST_LENGTH / TOKEN_BYTES + 1) * PIECE;

/// A text that tokens are written to and cut from. A write copies a fixed number of bytes, of which
/// only the first count: that takes a few instructions where a copy of any length is a call.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    length: usize,
}

impl Text {
    pub(super) fn new() -> Text {
        Text { bytes: vec![0; ROOM], length: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Some of its bytes.
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// All of it.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Cuts the text where it is longer than `length`.
    #[inline]
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// `N` bytes after the text.
    #[inline]
    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if self.bytes.len() < self.length + N {
            self.grow(N);
        }
        self.bytes.get_mut(self.length..)?.first_chunk_mut()
    }

    /// Makes room for `more` bytes, where a server keeps longer digests than usual.
    #[cold]
    fn grow(&mut self, more: usize) {
        self.bytes.resize((self.length + more).max(2 * self.bytes.len()), 0);
    }

    /// Writes what a token prints.
    #[inline]
    pub(super) fn push(&mut self, piece: &Piece) {
        if let Some(place) = self.room() {
            *place = piece.bytes;
            self.length += usize::from(piece.length);
        }
    }

    /// Writes a name of at most 16 bytes in backticks, and a blank.
    #[inline]
    pub(super) fn push_name(&mut self, name: Letters, length: usize) {
        let end = 1 + length.min(LETTERS);
        if let Some(place) = self.room::<{ LETTERS + 3 }>() {
            let [quote, letters @ .., _, _] = place;
            *quote = b'`';
            *letters = name.bytes();
            place[end] = b'`';
            place[end + 1] = b' ';
            self.length += end + 2;
        }
    }

    /// Writes bytes as they are.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if self.bytes.len() < end {
            self.grow(bytes.len());
        }
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// Cuts the blank after the last token.
    pub(super) fn trim(&mut self) {
        self.length -= usize::from(self.bytes().ends_with(b" "));
    }
}

/// The bytes, with marks for those that are not UTF-8.
pub(super) fn in_utf8<'a>(shown: &'a [u8], lossy: &'a mut String) -> &'a [u8] {
    if std::str::from_utf8(shown).is_ok() {
        return shown;
    }
    lossy.clear();
    for part in shown.utf8_chunks() {
        lossy.push_str(part.valid());
        if !part.invalid().is_empty() {
            lossy.push(char::REPLACEMENT_CHARACTER);
        }
    }
    lossy.as_bytes()
}
