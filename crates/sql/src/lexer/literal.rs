//! Strings, quoted names and numbers.

use super::comment::STRICT_VERSIONS;
use super::{Lexeme, Lexer, SqlModes, State, WORD};

impl Lexer<'_> {
    /// A string whose quote stands at `from`. One that is open goes to the end of the text.
    #[inline]
    pub(super) fn text(&self, from: usize, quote: u8) -> (Lexeme, usize, bool) {
        // In hints a backslash is a character like any other.
        let escapes = !self.in_hint && !self.modes.contains(SqlModes::NO_BACKSLASH_ESCAPES);
        let (end, open) = self.quoted_end(from, quote, escapes);
        (Lexeme::Text, end, open)
    }

    /// An identifier in quotes.
    #[inline]
    pub(super) fn quoted_name(&self, quote: u8) -> (Lexeme, usize, bool) {
        let (end, open) = self.quoted_end(self.at, quote, false);
        (Lexeme::Quoted, end, open)
    }

    /// Where what is in quotes ends, and whether the text does before.
    #[inline]
    pub(super) fn quoted_end(&self, from: usize, quote: u8, escapes: bool) -> (usize, bool) {
        if self.hides_ascii {
            return self.quoted_end_by_character(from, quote, escapes);
        }
        let mut at = from + 1;
        while let Some(rest) = self.sql.get(at..) {
            let found = if escapes {
                memchr::memchr2(quote, b'\\', rest)
            } else {
                memchr::memchr(quote, rest)
            };
            let Some(found) = found else { break };
            at += found;
            if self.sql.get(at) == Some(&b'\\') || self.sql.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return (at + 1, false);
            }
        }
        (self.sql.len(), true)
    }

    /// The same where a quote or a backslash may be a part of a character.
    fn quoted_end_by_character(&self, from: usize, quote: u8, escapes: bool) -> (usize, bool) {
        let mut at = from + 1;
        while let Some(rest) = self.sql.get(at..) {
            let Some(byte) = rest.first() else { break };
            let length = self.shape.length(rest);
            at += match *byte {
                _ if length > 1 => length,
                b'\\' if escapes => 2,
                byte if byte == quote && rest.get(1) == Some(&quote) => 2,
                byte if byte == quote => return (at + 1, false),
                _ => 1,
            };
        }
        (self.sql.len(), true)
    }

    /// `x'…'` and `b'…'` hold digits only; anything else is a word and a string.
    pub(super) fn radix_end(&self, fits: fn(&u8) -> bool) -> Option<(usize, bool)> {
        let end = self.digits_end(self.at + 2, fits);
        match self.sql.get(end) {
            Some(b'\'') => Some((end + 1, false)),
            Some(_) => None,
            None => Some((end, true)),
        }
    }

    /// `$tag$…$tag$` is a string from MySQL 9 on; any other `$` begins a word.
    pub(super) fn dollar(&self) -> (Lexeme, usize, bool, State) {
        let knows = (90_000..u32::MAX).contains(&self.reading.version) && !self.reading.mariadb;
        let rest = self.rest();
        let tag = 1 + self.tag_len(rest.get(1..).unwrap_or_default());
        if !knows || rest.get(tag) != Some(&b'$') {
            return self.word();
        }
        let delimiter = rest.get(..=tag).unwrap_or_default();
        let body = rest.get(tag + 1..).unwrap_or_default();
        match memchr::memmem::find(body, delimiter) {
            Some(found) => {
                let end = self.at + 2 * delimiter.len() + found;
                (Lexeme::Text, end, false, State::Start)
            }
            None => (Lexeme::Text, self.sql.len(), true, State::Start),
        }
    }

    /// Letters up to a `$`.
    fn tag_len(&self, text: &[u8]) -> usize {
        let mut length = 0;
        while let Some(rest) = text.get(length..)
            && let Some(byte) = rest.first().filter(|byte| **byte != b'$')
            && self.class_of(*byte) & super::WORD != 0
        {
            length += self.shape.length(rest).max(1);
        }
        length
    }

    #[inline]
    pub(super) fn number(&mut self) -> (Lexeme, usize, bool, State) {
        let digits = self.digits_end(self.at, u8::is_ascii_digit);
        if self.sql.get(digits).is_none_or(|byte| self.class_of(*byte) & WORD == 0 && *byte != b'.')
        {
            return (Lexeme::Integer, digits, false, State::Start);
        }
        let word = self.word_end(self.at);
        let radix: Option<fn(&u8) -> bool> = match (self.peek(0), self.peek(1)) {
            (b'0', b'x') => Some(u8::is_ascii_hexdigit),
            (b'0', b'b') => Some(|byte| matches!(byte, b'0' | b'1')),
            _ => None,
        };
        if let Some(fits) = radix {
            let end = self.digits_end(self.at + 2, fits);
            let whole = end == word && end > self.at + 2;
            let number = (Lexeme::Number, end, false, State::Start);
            return if whole { number } else { self.word_to(word) };
        }
        if self.has_fractions() && self.sql.get(digits) == Some(&b'.') {
            let (lexeme, end, open) = self.fraction(digits);
            return (lexeme, end, open, State::Start);
        }
        if digits == word {
            return (Lexeme::Integer, digits, false, State::Start);
        }
        match self.exponent_end(digits) {
            Some(end) => (Lexeme::Number, end, false, State::Start),
            None => self.word_to(word),
        }
    }

    /// In hints the older servers have none.
    pub(super) fn has_fractions(&self) -> bool {
        !self.in_hint || self.reading.version >= STRICT_VERSIONS
    }

    /// A number with a point. Where an `e` after it begins no exponent, the server drops what it
    /// has read and goes on with the mark after the `e`: of `` `a`.1e.b `` it sees `` `a`.b ``.
    #[inline]
    pub(super) fn fraction(&mut self, point: usize) -> (Lexeme, usize, bool) {
        let digits = self.digits_end(point + 1, u8::is_ascii_digit);
        if let Some(end) = self.exponent_end(digits) {
            return (Lexeme::Number, end, false);
        }
        if let Some(b'e' | b'E') = self.sql.get(digits) {
            let sign = matches!(self.sql.get(digits + 1), Some(b'+' | b'-'));
            let mark = digits + 1 + usize::from(sign);
            if mark < self.sql.len() {
                self.at = mark;
                return (Lexeme::Symbol, mark + 1, false);
            }
        }
        (Lexeme::Number, digits, false)
    }

    #[inline]
    fn exponent_end(&self, from: usize) -> Option<usize> {
        let sign = match self.sql.get(from..)? {
            [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => 1,
            [b'e' | b'E', b'0'..=b'9', ..] => 0,
            _ => return None,
        };
        Some(self.digits_end(from + 1 + sign, u8::is_ascii_digit))
    }
}
