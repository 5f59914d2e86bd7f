//! The text of a digest while it is made.

use crate::letters::LETTERS;
use crate::letters::Letters;
use std::ops::Range;

/// Bytes of a token in the table of a server, with the blank behind it.
pub(super) const PIECE: usize = 48;

/// What a token prints, with the blank behind it where one follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    bytes: [u8; PIECE],
    length: u8,
}

impl Piece {
    /// Of a text of less than [`PIECE`] bytes; the rest of a longer one is cut.
    pub(super) fn new(text: &[u8]) -> Piece {
        let length = text.len().min(PIECE);
        let mut bytes = [0; PIECE];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Piece { bytes, length: length as u8 }
    }
}

/// A text that tokens are written to and cut from. Every write copies a fixed number of bytes, of
/// which only the first count: that takes a few instructions where a copy of any length is a call.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The text, and room behind it.
    bytes: Vec<u8>,
    length: usize,
}

impl Text {
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
    pub(super) fn bytes(&self) -> &[u8] {
        self.get(0..self.length)
    }

    /// Cuts the text where it is longer than `length`.
    #[inline]
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Writes what a token prints.
    #[inline]
    pub(super) fn push(&mut self, piece: &Piece) {
        let length = usize::from(piece.length);
        let Some(place) = self.bytes.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut)
        else {
            return self.extend(piece.bytes.get(..length).unwrap_or_default());
        };
        *place = piece.bytes;
        self.length += length;
    }

    /// Writes a name of at most 16 bytes in backticks, and a blank.
    #[inline]
    pub(super) fn push_name(&mut self, name: Letters, length: usize) {
        let mut piece = [b'`'; LETTERS + 3];
        let [_, letters @ .., _, _] = &mut piece;
        *letters = name.bytes();
        let end = 1 + length.min(LETTERS);
        piece[end] = b'`';
        piece[end + 1] = b' ';
        let Some(place) = self.bytes.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut)
        else {
            return self.extend(piece.get(..end + 2).unwrap_or_default());
        };
        *place = piece;
        self.length += end + 2;
    }

    /// Writes bytes as they are.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(2 * end + PIECE, 0);
        }
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// Cuts the blank behind the last token.
    pub(super) fn trim(&mut self) {
        self.length -= usize::from(self.bytes().ends_with(b" "));
    }
}
