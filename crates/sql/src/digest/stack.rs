//! The token array of a digest, reduced as it grows (`sql/sql_digest.cc`).
//!
//! The text is written at once. Taking back tokens cuts it. It is the final digest text, except for
//! names that the server shows in another form. Those are replaced at the end.

use super::Dialect;
use super::table::{
    AT, CHARSET, COLUMN_NUMBER, IDENT, IDENT_AT, IN_LIST, Id, OTHER_TOKEN, ROW, ROW_OF_ONE, ROWS,
    ROWS_OF_ONE, Role, Table, VALUE, VALUES,
};
use super::text::{Piece, Text};
use crate::Charset;
use crate::charset::{Name, NameBuffer};
use crate::letters::{LETTERS, Letters};

/// Bytes of the token array where nothing else is said: the default of `max_digest_length` in every
/// family.
pub const DIGEST_LENGTH: usize = 1024;
/// Bytes of a token in the array (`SIZE_OF_A_TOKEN`).
pub(super) const TOKEN_BYTES: usize = 2;

// Plus, comma and minus have numbers in a row.
const PLUS: Id = b'+' as Id;
const COMMA: Id = b',' as Id;
const MINUS: Id = b'-' as Id;

/// The bits that no ASCII letter has.
const ABOVE_ASCII: u64 = 0x8080_8080_8080_8080;
const OPEN: Id = b'(' as Id;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: Id,
    /// Length of the text before this token.
    before: u32,
}

/// Bytes of the number of a column in the array (`SIZE_OF_BY_NUMERIC_COLUMN_VALUE`).
const COLUMN_BYTES: usize = 4;

#[derive(Debug)]
pub(super) struct Stack {
    entries: Vec<Entry>,
    /// What tells one digest from another.
    pub(super) text: Text,
    /// Bytes of the array (`max_digest_length`).
    length: usize,
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
    /// A stack for a token array of `length` bytes.
    pub(super) fn new(length: usize) -> Stack {
        Stack {
            entries: Vec::with_capacity(DIGEST_LENGTH / TOKEN_BYTES),
            text: Text::new(),
            length,
            room: length,
            full: false,
            differs: false,
            names: 0,
            charset: Charset::default(),
        }
    }

    pub(super) fn clear(&mut self, charset: Charset) {
        self.entries.clear();
        self.text.clear();
        self.room = self.length;
        self.full = false;
        self.differs = false;
        self.names = 0;
        self.charset = charset;
    }

    /// The token `back` from the top, 0 if there is none.
    #[inline]
    pub(super) fn peek(&self, back: usize) -> Id {
        let at = self.entries.len().wrapping_sub(back + 1);
        self.entries.get(at).map_or(0, |entry| entry.id)
    }

    #[inline]
    fn pop(&mut self, count: usize) {
        let left = self.entries.len().saturating_sub(count);
        if let Some(entry) = self.entries.get(left) {
            self.text.truncate(entry.before as usize);
            self.room += (self.entries.len() - left) * TOKEN_BYTES;
            self.entries.truncate(left);
        }
    }

    /// Makes space for a token of this many bytes, and says whether there is room.
    #[inline]
    fn begin(&mut self, id: Id, bytes: usize) -> bool {
        if self.room < bytes {
            self.fill();
            return false;
        }
        self.room -= bytes;
        self.entries.push(Entry { id, before: self.text.len() as u32 });
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

    /// Stores a literal after a sign or a comma.
    fn value_behind(&mut self, is_number: bool, table: &Table) {
        if self.full {
            return;
        }
        while is_number && self.ends_in_sign(table) {
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

    /// Ends the list of values that the end of a cut text stands in. How much of a list was read says
    /// nothing about the statement, so every cut in the list gives one digest.
    pub(super) fn end_list(&mut self, table: &Table, dialect: Dialect) {
        if self.full {
            return;
        }
        let is_row = |id| matches!(id, ROW | ROWS | ROW_OF_ONE | ROWS_OF_ONE);
        while self.peek(0) == CHARSET || self.ends_in_sign(table) {
            self.pop(1);
        }
        if self.peek(0) == COMMA && matches!(self.peek(1), VALUE | VALUES) {
            self.pop(2);
            self.push(VALUES, table);
        }
        let begun = matches!(self.peek(0), VALUE | VALUES) && self.peek(1) == OPEN;
        if begun {
            self.pop(1);
        }
        if self.peek(0) == OPEN && self.peek(1) == COMMA && is_row(self.peek(2)) {
            self.pop(1);
        } else if begun || (self.peek(0) == OPEN && table.role(self.peek(1)) == Role::In) {
            self.push(VALUES, table);
            self.close(table, dialect);
        }
        if self.peek(0) == COMMA && is_row(self.peek(1)) {
            self.pop(1);
            self.repeat(table);
        }
    }

    /// Drops a semicolon at the end, as MySQL 9 does.
    pub(super) fn end_statement(&mut self) {
        if !self.full && self.peek(0) == Id::from(b';') {
            self.pop(1);
        }
    }

    /// Whether a sign on top belongs to a number that would follow.
    fn ends_in_sign(&self, table: &Table) -> bool {
        matches!(self.peek(0), PLUS | MINUS) && table.starts(self.peek(1))
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
        let ends = self.entries.iter().skip(1).map(|next| next.before as usize);
        for (entry, end) in self.entries.iter().zip(ends.chain([self.text.len()])) {
            let bytes = self.text.get(entry.before as usize..end);
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

    /// Whether what stands on top ends an operand, so that no expression can begin after it.
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
