//! Characters of more than one byte.

use super::exceptions;
use encoding_rs::{DecoderResult, Encoding};

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

    /// Length of the character of more than one byte at the beginning of `text`; 0 if there is
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
            (Some(0xf0..=0xf4), _) if self == Shape::Utf8mb4 && next(1) && next(2) && next(3) => 4,
            _ => 0,
        }
    }

    /// The first character of a text that does not begin with ASCII, as the server converts it
    /// (`mb_wc` of the set): pairs are looked up without a look at what they may consist of.
    pub(super) fn decode<'a>(self, set: &str, text: &'a [u8]) -> Decoded<'a> {
        let Some(length) = self.coded_length(text) else { return Decoded::None };
        let Some((bytes, behind)) = text.split_at_checked(length) else { return Decoded::Cut };
        match self.character(set, bytes) {
            Some(character) => Decoded::Character(character, behind),
            None => Decoded::None,
        }
    }

    /// Bytes that the first character takes; none if the first byte begins none.
    fn coded_length(self, text: &[u8]) -> Option<usize> {
        let (head, tail) = (text.first().copied()?, text.get(1).copied());
        match self {
            Shape::Utf8mb4 => match head {
                0xc2..=0xdf => Some(2),
                0xe0..=0xef => Some(3),
                0xf0..=0xf7 => Some(4),
                0xf8.. => Some(usize::MAX),
                _ => None,
            },
            Shape::Sjis if matches!(head, 0xa1..=0xdf) => Some(1),
            Shape::Ujis if head == 0x8f => Some(3),
            Shape::Ujis | Shape::Gb18030 if !self.is_lead(head) => None,
            Shape::Gb18030 if matches!(tail, Some(b'0'..=b'9')) => Some(4),
            _ => Some(2),
        }
    }

    /// One character of the set; `bytes` are as many as it should have.
    fn character(self, set: &str, bytes: &[u8]) -> Option<char> {
        let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
        let run = |(first, count, _): &&(u32, u32, u32)| (*first..first + count).contains(&code);
        match exceptions::of(set).iter().find(run) {
            Some((_, _, 0)) => None,
            Some((first, _, point)) => char::from_u32(point + code - first),
            None => self.standard(set, bytes),
        }
    }

    /// The same by the Encoding Standard, with the rules of the server.
    fn standard(self, set: &str, bytes: &[u8]) -> Option<char> {
        match (self, bytes) {
            (Shape::Single | Shape::Utf8mb3 | Shape::Utf8mb4, _) => {
                std::str::from_utf8(bytes).ok()?.chars().next()
            }
            // Without the characters of Hong Kong.
            (Shape::Big5, [..=0xa0 | 0xfa.., ..]) => None,
            (Shape::Big5, _) => decoded(encoding_rs::BIG5, bytes),
            (Shape::Euckr, _) => decoded(encoding_rs::EUC_KR, bytes),
            // The upper bits do not count.
            (Shape::Gb2312, [head, tail]) => match [head | 0x80, tail | 0x80] {
                bytes @ [0xa1..=0xf7, 0xa1..=0xfe] => gbk(&bytes),
                _ => None,
            },
            (Shape::Gbk | Shape::Gb2312, _) => gbk(bytes),
            // Four bytes without a character are a question mark.
            (Shape::Gb18030, [_, _, _, _]) => {
                let any = self.length(bytes) == 4;
                decoded(encoding_rs::GB18030, bytes).or(any.then_some('?'))
            }
            (Shape::Gb18030, _) => decoded(encoding_rs::GB18030, bytes),
            (Shape::Sjis, _) => shift_jis(set, bytes),
            (Shape::Ujis, _) => euc_jp(set, bytes),
        }
    }
}

/// Without what has come with GB 18030.
fn gbk(bytes: &[u8]) -> Option<char> {
    let later = bytes.first() == Some(&0xfe);
    decoded(encoding_rs::GBK, bytes).filter(|it| !later && !is_private(*it))
}

/// The rows from 85 on are for private use, those of JIS X 0212 after those of JIS X 0208; `ujis`
/// is without NEC's row 13.
fn euc_jp(set: &str, bytes: &[u8]) -> Option<char> {
    let private = match bytes {
        [head @ 0xf5..=0xfe, tail @ 0xa1..=0xfe] => Some((0xe000, head, tail)),
        [0x8f, head @ 0xf5..=0xfe, tail @ 0xa1..=0xfe] => Some((0xe3ac, head, tail)),
        _ => None,
    };
    match private {
        Some((first, head, tail)) => {
            char::from_u32(first + u32::from(head - 0xf5) * 94 + u32::from(tail - 0xa1))
        }
        None if set == "ujis" && bytes.first() == Some(&0xad) => None,
        None => decoded(encoding_rs::EUC_JP, bytes),
    }
}

/// `sjis` has the characters of JIS X 0208 alone, without the vendors'.
fn shift_jis(set: &str, bytes: &[u8]) -> Option<char> {
    if set == "sjis" && matches!(bytes, [0x87 | 0xed | 0xee | 0xf0.., ..]) {
        return None;
    }
    decoded(encoding_rs::SHIFT_JIS, bytes)
}

fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}')
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
