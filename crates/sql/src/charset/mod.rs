//! A session's character sets, as far as they change how a statement is read: which bytes are
//! letters and blanks, which bytes form one character, and how a name looks in UTF-8.

mod exceptions;
mod multibyte;
mod sets;

pub(crate) use multibyte::Shape;
use sets::SETS;

/// `NAME_LEN` (`include/mysql_com.h`): the most bytes of a converted name.
const NAME_LEN: usize = 192;
/// Bytes that the server reckons for a character (`mbmaxlen` of `utf8mb3`).
const UTF8MB3_LEN: usize = 3;

/// What stands in a table for a byte without a character.
const NONE: char = '\0';

/// Space for one converted name.
pub(crate) type NameBuffer = [u8; NAME_LEN];

/// A character set that can be `character_set_client`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charset(u8);

struct Set {
    name: &'static str,
    shape: Shape,
    /// Classes of the bytes, for the lexer.
    classes: &'static [u8; 256],
    /// Bytes below 128 that are other characters than in ASCII.
    lower: &'static [(u8, u16)],
    /// Characters of the bytes from 128 on, [`NONE`] where there is none; empty in ASCII and in
    /// multi-byte sets.
    upper: &'static [u16],
}

/// What sets have that is not said of them: single bytes, of which the lower half is ASCII.
const PLAIN: Set =
    Set { name: "", shape: Shape::Single, classes: &[0; 256], lower: &[], upper: &[] };

/// Blank between tokens (`my_isspace`).
pub(crate) const BLANK: u8 = 1;
/// May stand in an unquoted identifier (`ident_map`).
pub(crate) const WORD: u8 = 2;
/// A decimal digit.
pub(crate) const DIGIT: u8 = 4;
/// Neither of these, but makes `--` the beginning of a comment (`my_iscntrl`).
pub(crate) const CONTROL: u8 = 8;
/// Begins a word wherever a token begins, except for `b'…'`, `n'…'` and `x'…'`.
pub(crate) const LETTER: u8 = 16;
/// A token by itself wherever one begins, whatever follows.
pub(crate) const MARK: u8 = 32;
/// A token by itself wherever one begins and none of these follows.
pub(crate) const COMPARISON: u8 = 64;

/// The classes of all bytes from those of the upper half; `odd` are those of the lower half that
/// are not as in ASCII.
const fn classes(odd: &[(u8, u8)], upper: &[u8; 128]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => BLANK,
            b'0'..=b'9' => WORD | DIGIT,
            // It may begin `$$…$$`.
            b'$' => WORD,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => WORD | LETTER,
            b'(' | b')' | b'+' | b',' | b';' => MARK,
            b'<' | b'>' | b'=' | b'!' => COMPARISON,
            0..0x20 | 0x7f => CONTROL,
            0x80.. => class(upper[byte - 128]),
            _ => 0,
        };
        byte += 1;
    }
    let mut at = 0;
    while at < odd.len() {
        table[odd[at].0 as usize] = class(odd[at].1);
        at += 1;
    }
    table
}

/// The characters of the bytes from 128 on: those below `first` are their own code points, and the others stand in a text.
const fn upper(first: usize, text: &str) -> [u16; 128] {
    let (mut points, mut bytes) = ([0; 128], text.as_bytes());
    let mut at = 0;
    while at < points.len() {
        if at + 128 < first {
            points[at] = at as u16 + 128;
            at += 1;
            continue;
        }
        // A first byte of UTF-8 says by its ones how many bytes follow, six bits each.
        let Some((head, mut rest)) = bytes.split_first() else { break };
        points[at] = match head.leading_ones() {
            0 => *head as u16,
            ones => (*head & (0x7f >> ones)) as u16,
        };
        while let Some((next, tail)) = rest.split_first()
            && matches!(*next, 0x80..0xc0)
        {
            points[at] = points[at] << 6 | (*next & 0x3f) as u16;
            rest = tail;
        }
        bytes = rest;
        at += 1;
    }
    points
}

const fn class(letter: u8) -> u8 {
    match letter {
        b's' => BLANK,
        b'w' => WORD,
        b'c' => CONTROL,
        _ => 0,
    }
}

/// What a digest shows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// The name in UTF-8.
    Text(&'a [u8]),
    /// `...`: the converted name might not fit.
    Long,
    /// Nothing: a character of it has no place in `utf8mb3`.
    Omitted,
}

impl Charset {
    /// The default of every server from 8.0 on.
    pub const UTF8MB4: Charset = Charset(36);

    /// The set of this name, such as `latin1` or `utf8mb4`; `utf8` is `utf8mb3`. None for names that
    /// no server knows and for `ucs2`, `utf16`, `utf16le` and `utf32`, which no statement is in.
    pub fn from_name(name: &str) -> Option<Charset> {
        let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        let found = SETS.iter().position(|set| set.name.eq_ignore_ascii_case(name))?;
        u8::try_from(found).ok().map(Charset)
    }

    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = Charset> {
        (0..=u8::MAX).zip(&SETS).map(|(number, _)| Charset(number))
    }

    /// Its name as in `SHOW CHARACTER SET`.
    pub fn name(self) -> &'static str {
        self.set().name
    }

    fn set(self) -> &'static Set {
        SETS.get(usize::from(self.0)).unwrap_or(&SETS[36])
    }

    pub(crate) fn classes(self) -> &'static [u8; 256] {
        self.set().classes
    }

    pub(crate) fn shape(self) -> Shape {
        self.set().shape
    }

    /// Whether a digest shows a name as its bytes are.
    #[inline]
    pub(crate) fn keeps(self, name: &[u8]) -> bool {
        if name.is_empty() || name.len() * UTF8MB3_LEN > NAME_LEN {
            return false;
        }
        self == Charset::UTF8MB4 && name.is_ascii()
    }

    /// A name as the digest shows it: converted to `utf8mb3` (`compute_digest_text` in
    /// `sql/sql_digest.cc`).
    pub(crate) fn show<'a>(self, name: &'a [u8], buffer: &'a mut NameBuffer) -> Name<'a> {
        let set = self.set();
        if set.shape == Shape::Utf8mb3 {
            return if name.is_empty() { Name::Omitted } else { Name::Text(name) };
        }
        if name.len() * UTF8MB3_LEN > NAME_LEN {
            return Name::Long;
        }
        let mut rest = name;
        let mut length = 0;
        while let Some((head, tail)) = rest.split_first() {
            let (decoded, behind) = match (set.shape, head) {
                (Shape::Single, _) => (set.decode_byte(*head), tail),
                (_, ..0x80) => (Some(char::from(*head)), tail),
                (shape, _) => match shape.decode(self.name(), rest) {
                    multibyte::Decoded::Character(character, behind) => (Some(character), behind),
                    multibyte::Decoded::None => (None, tail),
                    multibyte::Decoded::Cut => break,
                },
            };
            let Some(character) = decoded.filter(|it| u32::from(*it) <= 0xffff) else {
                return Name::Omitted;
            };
            let end = length + character.len_utf8();
            let Some(place) = buffer.get_mut(length..end) else { return Name::Long };
            character.encode_utf8(place);
            length = end;
            rest = behind;
        }
        match buffer.get(..length) {
            Some(text) if length > 0 => Name::Text(text),
            _ => Name::Omitted,
        }
    }
}

impl Set {
    fn decode_byte(&self, byte: u8) -> Option<char> {
        let point = match byte {
            0 => return Some('\0'),
            0x80.. => *self.upper.get(usize::from(byte - 0x80))?,
            _ => {
                let odd = self.lower.iter().find(|(odd, _)| *odd == byte);
                odd.map_or(u16::from(byte), |(_, point)| *point)
            }
        };
        char::from_u32(u32::from(point)).filter(|it| *it != NONE)
    }
}

impl Default for Charset {
    fn default() -> Self {
        Charset::UTF8MB4
    }
}

impl std::fmt::Debug for Charset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
