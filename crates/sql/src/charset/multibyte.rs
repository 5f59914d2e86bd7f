//! Characters of more than one byte.

use encoding_rs::DecoderResult;
use encoding_rs::Encoding;

/// Which bytes make one character (`my_ismbchar` of the sets in `strings/ctype-*.cc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Every byte is a character.
    Single,
    Utf8mb3,
    Utf8mb4,
    Big5,
    Euckr,
    Gb2312,
    Gbk,
    Gb18030,
    /// `sjis` and `cp932`.
    Sjis,
    /// `ujis` and `eucjpms`.
    Ujis,
}

/// The beginning of a text as a character.
pub(super) enum Decoded<'a> {
    /// A character and what follows it.
    Character(char, &'a [u8]),
    /// No character of the set, or one that Unicode has not.
    None,
    /// The text ends inside the character.
    Cut,
}

impl Shape {
    /// Whether bytes below 128 can be the end of a character, so that a quote, a backslash or a
    /// letter need not be one.
    pub(crate) fn hides_ascii(self) -> bool {
        use Shape::{Big5, Euckr, Gb2312, Gb18030, Gbk, Sjis, Ujis};
        // The last byte of gb2312 and ujis is above 127, but no letter by itself.
        matches!(self, Big5 | Euckr | Gb2312 | Gbk | Gb18030 | Sjis | Ujis)
    }

    /// Whether a byte promises a character of more than one (`my_mbcharlen`).
    pub(crate) fn is_lead(self, byte: u8) -> bool {
        match self {
            Shape::Single => false,
            Shape::Utf8mb3 => matches!(byte, 0xc2..=0xef),
            Shape::Utf8mb4 => matches!(byte, 0xc2..=0xf7),
            Shape::Big5 => matches!(byte, 0xa1..=0xf9),
            Shape::Euckr | Shape::Gbk | Shape::Gb18030 => matches!(byte, 0x81..=0xfe),
            Shape::Gb2312 => matches!(byte, 0xa1..=0xf7),
            Shape::Sjis => matches!(byte, 0x81..=0x9f | 0xe0..=0xfc),
            Shape::Ujis => matches!(byte, 0x8e | 0x8f | 0xa1..=0xfe),
        }
    }

    /// Length of the character of more than one byte at the beginning of `text`; 0 where there is
    /// none.
    pub(crate) fn length(self, text: &[u8]) -> usize {
        let at = |index: usize| text.get(index).copied().unwrap_or(0);
        let (head, tail) = (at(0), at(1));
        let pair = match self {
            Shape::Single => false,
            Shape::Utf8mb3 | Shape::Utf8mb4 => return self.utf8_length(text),
            Shape::Big5 => matches!(tail, 0x40..=0x7e | 0xa1..=0xfe),
            Shape::Euckr => matches!(tail, 0x41..=0x5a | 0x61..=0x7a | 0x81..=0xfe),
            Shape::Gb2312 => matches!(tail, 0xa1..=0xfe),
            Shape::Gbk => matches!(tail, 0x40..=0x7e | 0x80..=0xfe),
            Shape::Sjis => matches!(tail, 0x40..=0x7e | 0x80..=0xfc),
            Shape::Gb18030 => {
                let four = matches!((tail, at(2), at(3)), (b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9'));
                if four && self.is_lead(head) {
                    return 4;
                }
                matches!(tail, 0x40..=0x7e | 0x80..=0xfe)
            }
            Shape::Ujis => match head {
                0x8e => matches!(tail, 0xa0..=0xdf),
                0x8f => {
                    let three = matches!((tail, at(2)), (0xa1..=0xfe, 0xa1..=0xfe));
                    return if three { 3 } else { 0 };
                }
                _ => matches!(tail, 0xa1..=0xfe),
            },
        };
        if pair && self.is_lead(head) { 2 } else { 0 }
    }

    fn utf8_length(self, text: &[u8]) -> usize {
        let next = |index: usize| matches!(text.get(index), Some(0x80..=0xbf));
        match (text.first(), text.get(1)) {
            (Some(0xc2..=0xdf), _) if next(1) => 2,
            (Some(0xe0), Some(..0xa0)) => 0,
            (Some(0xe0..=0xef), _) if next(1) && next(2) => 3,
            (Some(0xf0), Some(..0x90)) | (Some(0xf4), Some(0x90..)) => 0,
            (Some(0xf0..=0xf4), _) if self == Shape::Utf8mb4 => {
                if next(1) && next(2) && next(3) {
                    4
                } else {
                    0
                }
            }
            _ => 0,
        }
    }

    /// The first character of a text that does not begin with ASCII; `set` is the set's name.
    pub(super) fn decode<'a>(self, set: &str, text: &'a [u8]) -> Decoded<'a> {
        let length = self.length(text);
        if length == 0 {
            let promised = text.first().is_some_and(|byte| self.is_lead(*byte));
            if promised && text.len() < self.promised_length(text) {
                return Decoded::Cut;
            }
            return self.single(text);
        }
        let (bytes, behind) = text.split_at(length);
        match character(self, set, bytes) {
            Some(character) => Decoded::Character(character, behind),
            None => Decoded::None,
        }
    }

    /// Half-width katakana of `sjis` are single bytes.
    fn single(self, text: &[u8]) -> Decoded<'_> {
        match (self, text) {
            (Shape::Sjis, [byte @ 0xa1..=0xdf, behind @ ..]) => {
                let point = 0xff61 + u32::from(*byte) - 0xa1;
                char::from_u32(point).map_or(Decoded::None, |it| Decoded::Character(it, behind))
            }
            _ => Decoded::None,
        }
    }

    /// Bytes that a character with the first byte of `text` has.
    fn promised_length(self, text: &[u8]) -> usize {
        match (self, text.first()) {
            (Shape::Utf8mb3 | Shape::Utf8mb4, Some(0xe0..=0xef)) | (Shape::Ujis, Some(0x8f)) => 3,
            (Shape::Utf8mb4, Some(0xf0..)) => 4,
            (Shape::Gb18030, _) if matches!(text.get(1), Some(b'0'..=b'9')) => 4,
            _ => 2,
        }
    }
}

/// One character of more than one byte.
fn character(shape: Shape, set: &str, bytes: &[u8]) -> Option<char> {
    let encoding = match shape {
        Shape::Single | Shape::Utf8mb3 | Shape::Utf8mb4 => {
            return std::str::from_utf8(bytes).ok()?.chars().next();
        }
        Shape::Big5 => encoding_rs::BIG5,
        Shape::Euckr => encoding_rs::EUC_KR,
        Shape::Gb2312 | Shape::Gbk => encoding_rs::GBK,
        Shape::Gb18030 => encoding_rs::GB18030,
        Shape::Sjis => encoding_rs::SHIFT_JIS,
        Shape::Ujis => encoding_rs::EUC_JP,
    };
    let _ = set;
    decoded(encoding, bytes)
}

fn decoded(encoding: &'static Encoding, bytes: &[u8]) -> Option<char> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut units = [0_u16; 4];
    let (result, _, written) = decoder.decode_to_utf16_without_replacement(bytes, &mut units, true);
    if result != DecoderResult::InputEmpty {
        return None;
    }
    let mut characters = char::decode_utf16(units.get(..written)?.iter().copied());
    let character = characters.next()?.ok()?;
    characters.next().is_none().then_some(character)
}
