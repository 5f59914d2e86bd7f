//! The token array of a digest, reduced as it grows: `sql/sql_digest.cc`.
//!
//! The text is written at once; taking tokens back cuts it. It is the digest's text but for names
//! that the server shows otherwise than they were written: these are shown at the end.

use super::Dialect;
use super::table::AT;
use super::table::CHARSET;
use super::table::COLUMN_NUMBER;
use super::table::IDENT;
use super::table::IDENT_AT;
use super::table::IN_LIST;
use super::table::Id;
use super::table::OTHER_TOKEN;
use super::table::ROW;
use super::table::ROW_OF_ONE;
use super::table::ROWS;
use super::table::ROWS_OF_ONE;
use super::table::Role;
use super::table::Table;
use super::table::VALUE;
use super::table::VALUES;
use super::text::Piece;
use super::text::Text;
use crate::Charset;
use crate::charset::Name;
use crate::charset::NameBuffer;
use crate::letters::LETTERS;
use crate::letters::Letters;

/// Bytes of the token array (`max_digest_length`, default 1024).
pub(super) const ARRAY_BYTES: usize = 1024;
/// Bytes of a token in the array (`SIZE_OF_A_TOKEN`).
pub(super) const TOKEN_BYTES: usize = 2;

// Plus, comma and minus have numbers in a row.
const PLUS: Id = b'+' as Id;
const COMMA: Id = b',' as Id;
const MINUS: Id = b'-' as Id;

/// The bits that no ASCII letter has.
const ABOVE_ASCII: u64 = 0x8080_8080_8080_8080;
const OPEN: Id = b'(' as Id;

/// Tokens in the array at most.
const MOST: usize = ARRAY_BYTES / TOKEN_BYTES;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: Id,
    /// Length of the text before this token.
    before: u16,
}

/// Bytes of the number of a column in the array (`SIZE_OF_BY_NUMERIC_COLUMN_VALUE`).
const COLUMN_BYTES: usize = 4;

#[derive(Debug)]
pub(super) struct Stack {
    entries: [Entry; MOST],
    /// How many of them are on the stack.
    count: usize,
    /// What tells one digest from another.
    pub(super) text: Text,
    /// Bytes that are left in the array.
    room: usize,
    /// The array is full: the server stores no further token.
    pub(super) full: bool,
    /// A token, or a name that is not in `names`, is shown otherwise than it stands in the text.
    pub(super) differs: bool,
    /// All letters of short names together: what none of them has is 0.
    names: u64,
    charset: Charset,
}

impl Stack {
    pub(super) fn new() -> Stack {
        Stack {
            entries: [Entry { id: 0, before: 0 }; MOST],
            count: 0,
            text: Text::new(),
            room: ARRAY_BYTES,
            full: false,
            differs: false,
            names: 0,
            charset: Charset::default(),
        }
    }

    pub(super) fn clear(&mut self, charset: Charset) {
        self.count = 0;
        self.text.clear();
        self.room = ARRAY_BYTES;
        self.full = false;
        self.differs = false;
        self.names = 0;
        self.charset = charset;
    }

    /// The token `back` from the top, 0 where there is none.
    #[inline]
    pub(super) fn peek(&self, back: usize) -> Id {
        let at = self.count.wrapping_sub(back + 1);
        self.entries.get(at).map_or(0, |entry| entry.id)
    }

    #[inline]
    fn pop(&mut self, count: usize) {
        let left = self.count.saturating_sub(count);
        if let Some(entry) = self.entries.get(left) {
            self.text.truncate(usize::from(entry.before));
            self.room += (self.count - left) * TOKEN_BYTES;
            self.count = left;
        }
    }

    /// Makes place for a token of so many bytes; whether there is room.
    #[inline]
    fn begin(&mut self, id: Id, bytes: usize) -> bool {
        let (count, before) = (self.count, self.text.len() as u16);
        if self.room < bytes || count >= MOST {
            self.fill();
            return false;
        }
        self.count = count + 1;
        self.room -= bytes;
        self.entries[count] = Entry { id, before };
        true
    }

    /// No further token is stored.
    #[cold]
    fn fill(&mut self) {
        self.full = true;
        self.room = 0;
    }

    /// Whether a name or a token is shown otherwise than it stands in the text.
    pub(super) fn differs(&self) -> bool {
        let as_it_is = self.charset == Charset::UTF8MB4 && self.names & ABOVE_ASCII == 0;
        self.differs || (self.names != 0 && !as_it_is)
    }

    /// Stores a token.
    #[inline]
    pub(super) fn push(&mut self, id: Id, table: &Table) {
        if let Some(piece) = table.piece(id) {
            self.store(id, piece);
        }
    }

    /// Stores a token that prints this.
    #[inline]
    pub(super) fn store(&mut self, id: Id, piece: &Piece) {
        if self.begin(id, TOKEN_BYTES) {
            self.text.push(piece);
        }
    }

    /// Stores an identifier, without its quotes.
    #[inline]
    pub(super) fn identifier(&mut self, id: Id, name: &[u8]) {
        if self.begin(id, 2 * TOKEN_BYTES + name.len()) {
            self.text.extend(b"`");
            self.text.extend(name);
            self.text.extend(if id == IDENT_AT { b"`" } else { b"` " });
            self.differs |= !self.charset.keeps(name);
        }
    }

    /// Stores an unquoted word as an identifier; `letters` are its first ones.
    #[inline]
    pub(super) fn word(&mut self, word: &[u8], letters: Letters) {
        if word.len() > LETTERS {
            self.identifier(IDENT, word);
        } else if self.begin(IDENT, 2 * TOKEN_BYTES + word.len()) {
            self.text.push_name(letters, word.len());
            self.names |= letters.together();
        }
    }

    /// Stores a literal; the sign before a number goes with it where it is unary.
    #[inline]
    pub(super) fn value(&mut self, is_number: bool, table: &Table) {
        if (PLUS..=MINUS).contains(&self.peek(0)) {
            self.value_behind(is_number, table);
        } else {
            self.push(VALUE, table);
        }
    }

    /// Stores a literal behind a sign or a comma.
    fn value_behind(&mut self, is_number: bool, table: &Table) {
        if self.full {
            return;
        }
        while is_number && matches!(self.peek(0), PLUS | MINUS) && table.starts(self.peek(1)) {
            self.pop(1);
        }
        let listed = self.peek(0) == COMMA && matches!(self.peek(1), VALUE | VALUES);
        if listed {
            self.pop(2);
        }
        self.push(if listed { VALUES } else { VALUE }, table);
    }

    /// Stores a `NULL` that is a value: the server stores the word first, which may find no room.
    pub(super) fn null(&mut self, table: &Table) {
        if self.room < TOKEN_BYTES {
            self.fill();
        }
        self.value(false, table);
    }

    /// Stores the `...` of a digest text, which stands for a list of values.
    pub(super) fn values(&mut self, table: &Table) {
        if self.peek(0) == COMMA && matches!(self.peek(1), VALUE | VALUES) {
            self.pop(2);
        }
        self.push(VALUES, table);
    }

    /// Stores `)`, which closes a row of values where there is one.
    #[inline]
    pub(super) fn close(&mut self, table: &Table, dialect: Dialect) {
        if self.full {
            return;
        }
        let (one, many) = match self.peek(0) {
            VALUE => (ROW_OF_ONE, ROWS_OF_ONE),
            VALUES => (ROW, ROWS),
            _ => return self.push(Id::from(b')'), table),
        };
        if self.peek(1) != OPEN {
            return self.push(Id::from(b')'), table);
        }
        self.pop(2);
        if self.peek(0) == COMMA && (self.peek(1) == one || self.peek(1) == many) {
            self.pop(2);
            self.push(many, table);
        } else if folds_in(dialect) && table.role(self.peek(0)) == Role::In {
            self.pop(1);
            self.push(IN_LIST, table);
        } else {
            self.push(one, table);
        }
    }

    /// The `/* , ... */` of a digest text: the row before it stands for many.
    pub(super) fn repeat(&mut self, table: &Table) {
        let many = match self.peek(0) {
            ROW_OF_ONE => ROWS_OF_ONE,
            ROW => ROWS,
            _ => return,
        };
        self.pop(1);
        self.push(many, table);
    }

    /// Turns the value on top into the number of a column; the server has four bytes for it. It
    /// does so when it has read `next` already: that may fill the array before, or be the last
    /// token in it because the number finds no room.
    pub(super) fn column_number(&mut self, digits: &[u8], next: Option<Id>, table: &Table) {
        let behind = if next.is_some() { TOKEN_BYTES } else { 0 };
        if self.full || self.room < behind || self.peek(0) != VALUE {
            return;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = digits.get(zeros..).unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|it| it.parse::<u32>().ok());
        if number.is_none() {
            return;
        }
        self.pop(1);
        let room = self.room;
        if self.begin(COLUMN_NUMBER, TOKEN_BYTES + COLUMN_BYTES) {
            self.text.extend(digits);
            self.text.extend(b" ");
        } else if let Some(next) = next {
            self.room = room;
            self.push(next, table);
            self.fill();
        }
    }

    /// Writes the text as the server shows it (`compute_digest_text` in `sql/sql_digest.cc`).
    pub(super) fn show(&self, out: &mut Vec<u8>) {
        let mut buffer: NameBuffer = [0; _];
        let mut blank = false;
        let entries = self.entries.get(..self.count).unwrap_or_default();
        let ends = entries.iter().skip(1).map(|next| usize::from(next.before));
        for (entry, end) in entries.iter().zip(ends.chain([self.text.len()])) {
            let bytes = self.text.get(usize::from(entry.before)..end);
            let bytes = bytes.strip_suffix(b" ").unwrap_or(bytes);
            let is_name = matches!(entry.id, IDENT | IDENT_AT);
            let inside = bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default();
            let name = is_name.then(|| self.charset.show(inside, &mut buffer));
            if name == Some(Name::Omitted) {
                continue;
            }
            if blank {
                out.push(b' ');
            }
            blank = !matches!(name, Some(Name::Long)) && !is_joined(entry.id);
            match name {
                Some(Name::Text(name)) => {
                    out.push(b'`');
                    out.extend_from_slice(name);
                    out.push(b'`');
                }
                Some(_) => out.extend_from_slice(b"..."),
                None => out.extend_from_slice(bytes.strip_suffix(&[OTHER_TOKEN]).unwrap_or(bytes)),
            }
        }
    }

    /// Whether what stands on top ends an operand, so that no expression can begin behind it.
    #[inline]
    pub(super) fn ends_operand(&self) -> bool {
        matches!(
            self.peek(0),
            VALUE | VALUES | ROW | ROWS | ROW_OF_ONE | ROWS_OF_ONE | IN_LIST | CHARSET | IDENT
        ) || self.peek(0) == Id::from(b')')
    }
}

/// Whether no blank follows a token.
fn is_joined(id: Id) -> bool {
    matches!(id, IDENT_AT | AT)
}

/// MySQL has a token for `IN (...)` from 8.0 on: a list of one looks like a longer one.
fn folds_in(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Mysql9 | Dialect::Mysql80)
}
