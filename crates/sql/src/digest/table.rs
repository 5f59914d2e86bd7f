//! The words and the token numbers of one server family.

use super::text::Piece;
use super::{Dialect, words};
use crate::kind::First;
use crate::letters::{LETTERS, Letters};

/// Number of a token. Below 128: the ASCII symbol itself; then the tokens below; then words.
pub(super) type Id = u16;

/// No blank follows it.
pub(super) const AT: Id = b'@' as Id;
pub(super) const VALUE: Id = 128;
pub(super) const VALUES: Id = 129;
pub(super) const ROW_OF_ONE: Id = 130;
pub(super) const ROWS_OF_ONE: Id = 131;
pub(super) const ROW: Id = 132;
pub(super) const ROWS: Id = 133;
pub(super) const IN_LIST: Id = 134;
pub(super) const CHARSET: Id = 135;
pub(super) const HINT_OPEN: Id = 136;
pub(super) const HINT_CLOSE: Id = 137;
pub(super) const UNKNOWN: Id = 138;
pub(super) const IDENT: Id = 139;
pub(super) const IDENT_AT: Id = 140;
pub(super) const COLUMN_NUMBER: Id = 141;
/// `NOT` under `HIGH_NOT_PRECEDENCE`.
pub(super) const NOT2: Id = 142;
/// `||` under `PIPES_AS_CONCAT`.
pub(super) const CONCAT: Id = 143;
/// A byte that is no character where a token begins.
const NO_CHARACTER: Id = 144;
const OPERATORS: Id = 145;

/// Behind the text of a token that another one prints as well.
pub(super) const OTHER_TOKEN: u8 = 0;

/// Texts of the tokens from [`VALUE`] on, in order (`lex_token_array[]`).
const FIXED: [&str; 17] = [
    "?",
    "?, ...",
    "(?)",
    "(?) /* , ... */",
    "(...)",
    "(...) /* , ... */",
    "IN (...)",
    "(_charset)",
    "/*+",
    "*/",
    "(unknown)",
    "",
    "",
    "",
    "!",
    "||",
    "\u{fffd}",
];

/// Operators of more than one byte; `<>` prints as `!=`.
const LONG: [&str; 12] = ["!=", "<=", ">=", "<=>", "<<", ">>", "&&", "||", ":=", "->", "->>", "<>"];

/// What the reduction asks about a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Plain,
    In,
    Is,
    Not,
    Null,
    By,
    /// `ORDER`, `GROUP`, `PARTITION`: what makes `BY` a list of columns.
    List,
    /// A word after which a list of `ORDER BY` or `GROUP BY` is over.
    ListEnd,
    /// `SELECT`: such a word, too.
    Select,
    /// `PROCEDURE`, `FUNCTION`, `TRIGGER`, `EVENT`: a body with semicolons may follow.
    Routine,
    /// A word before an expression, beside the words that make a sign unary.
    Expression,
    /// `ASC`, `DESC`, `WITH`: they follow an element of a list of columns.
    Order,
    /// `AS`: in a definition of a column, its expression follows.
    As,
    /// `CREATE`, `ALTER`: in a routine, columns may be defined after it.
    Verb,
    /// `BINARY`: an operator or an attribute of a column.
    Binary,
    /// `ROLLUP`, `CUBE`: a list of columns in parentheses.
    Rollup,
    /// The name of an option that can be `NULL`, which is no value then.
    NullOption,
    /// A word that is an operator: the number before it is not a whole element.
    Operator,
}

/// A word of the server.
#[derive(Debug)]
pub(super) struct Keyword {
    word: &'static str,
    folded: (u64, u64),
    /// Its token.
    pub(super) id: Id,
    /// What it prints.
    pub(super) piece: Piece,
    pub(super) role: Role,
    /// It is one only before a parenthesis.
    pub(super) function: bool,
    /// What it says of the kind of a statement that begins with it.
    pub(super) first: First,
}

impl Keyword {
    /// Whether a word is this one, where their folded letters are the same.
    #[inline]
    fn is(&self, word: &[u8]) -> bool {
        self.word.len() == word.len() && (word.len() <= LETTERS || self.is_long(word))
    }

    #[inline(never)]
    fn is_long(&self, word: &[u8]) -> bool {
        self.word.as_bytes().eq_ignore_ascii_case(word)
    }
}

/// What is known about a token.
#[derive(Debug)]
struct Facts {
    piece: Piece,
    role: Role,
    starts: bool,
}

#[derive(Debug)]
pub(super) struct Table {
    texts: Vec<&'static str>,
    /// Of the tokens in order.
    facts: Vec<Facts>,
    keywords: Vec<Keyword>,
    hints: Vec<Keyword>,
    /// Open addressing: index into `keywords` plus one; 0 is free.
    slots: [u16; SLOTS],
}

const SLOTS: usize = 4096;
/// The one-byte tokens: the flags of `STARTS` are found by their text.
const ASCII: &str = "\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f";

impl Table {
    pub(super) fn new(dialect: Dialect) -> Self {
        let [keywords, functions, hints, starts] = words::of(dialect);
        let mut table = Table {
            texts: (0..128).map(|byte| ASCII.get(byte..=byte).unwrap_or_default()).collect(),
            facts: Vec::new(),
            keywords: Vec::new(),
            hints: Vec::new(),
            slots: [0; SLOTS],
        };
        table.texts.extend(FIXED);
        table.texts.extend(LONG.map(|text| match (text, dialect) {
            ("<>", _) => "!=",
            ("||", Dialect::Mysql57 | Dialect::Mysql80) => "|",
            (text, _) => text,
        }));
        if dialect.is_mariadb() {
            // It has no text for this token.
            table.texts[usize::from(CONCAT)] = "(unknown)";
        }
        for (list, function) in [(keywords, false), (functions, true)] {
            for row in list {
                let keyword = table.intern(row, function);
                table.keywords.push(keyword);
            }
        }
        for row in hints {
            let keyword = table.intern(row, false);
            table.hints.push(keyword);
        }
        table.facts = (0..).zip(&table.texts).map(|(id, text)| facts(id, text, &starts)).collect();
        table.index();
        table
    }

    fn intern(&mut self, row: &'static str, function: bool) -> Keyword {
        let (word, text) = row.split_once('=').unwrap_or((row, row));
        let known = self.texts.iter().skip(usize::from(OPERATORS)).position(|it| *it == text);
        let id = match known {
            Some(at) => at + usize::from(OPERATORS),
            None => {
                self.texts.push(text);
                self.texts.len() - 1
            }
        };
        let folded = Letters::of(word.as_bytes(), 0, word.len()).folded();
        let id = Id::try_from(id).unwrap_or(UNKNOWN);
        Keyword {
            word,
            folded,
            id,
            piece: piece(id, text),
            role: role(text),
            function,
            first: First::of(word),
        }
    }

    fn index(&mut self) {
        for (number, keyword) in (1..).zip(&self.keywords) {
            let mut slot = hash(keyword.folded, keyword.word.len());
            while self.slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            self.slots[slot] = number;
        }
    }

    /// The keyword that a word is; `letters` are its first ones. It has rare callers
    /// too, for whose sake the compiler would make it a call for every word.
    #[inline(always)]
    pub(super) fn keyword(&self, word: &[u8], letters: Letters) -> Option<&Keyword> {
        let folded = letters.folded();
        let mut slot = hash(folded, word.len());
        loop {
            let number = usize::from(self.slots[slot]);
            let keyword = self.keywords.get(number.wrapping_sub(1))?;
            if keyword.folded == folded && keyword.is(word) {
                return Some(keyword);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The token of a word inside a hint.
    pub(super) fn hint(&self, word: &[u8]) -> Option<Id> {
        let found = self.hints.iter().find(|it| it.word.as_bytes().eq_ignore_ascii_case(word));
        found.map(|entry| entry.id)
    }

    /// What the token prints.
    #[inline]
    pub(super) fn piece(&self, id: Id) -> Option<&Piece> {
        self.facts.get(usize::from(id)).map(|facts| &facts.piece)
    }

    /// Whether an expression begins after the token (`m_start_expr`).
    #[inline]
    pub(super) fn starts(&self, id: Id) -> bool {
        self.facts.get(usize::from(id)).is_some_and(|facts| facts.starts)
    }

    #[inline]
    pub(super) fn role(&self, id: Id) -> Role {
        self.facts.get(usize::from(id)).map_or(Role::Plain, |facts| facts.role)
    }
}

/// The token of a punctuation mark of one byte.
#[inline]
pub(super) fn mark(byte: u8) -> Id {
    if byte.is_ascii() { Id::from(byte) } else { NO_CHARACTER }
}

/// The token of an operator of more than one byte.
pub(super) fn operator(symbol: &[u8]) -> Id {
    let Some(found) = LONG.iter().position(|it| it.as_bytes() == symbol) else {
        // The first mark swallowed the others.
        return symbol.first().map_or(UNKNOWN, |byte| Id::from(*byte));
    };
    // `<>` stands last and is `!=`.
    let found = if found + 1 == LONG.len() { 0 } else { found };
    OPERATORS + Id::try_from(found).unwrap_or(0)
}

#[inline]
fn hash((first, last): (u64, u64), length: usize) -> usize {
    let mixed = (first ^ last.rotate_left(29) ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize % SLOTS
}

fn piece(id: Id, text: &str) -> Piece {
    let behind: &[u8] = match id {
        // What is shown for these is not all that tells them from others.
        NOT2 | CONCAT => &[OTHER_TOKEN, b' '],
        0 | AT => b"",
        _ => b" ",
    };
    Piece::new(&[text.as_bytes(), behind].concat())
}

fn facts(id: Id, text: &str, starts: &[&str]) -> Facts {
    let piece = piece(id, text);
    match id {
        NOT2 => Facts { piece, role: Role::Not, starts: false },
        CONCAT => Facts { piece, role: Role::Plain, starts: false },
        // `||` prints as `|` in the older families, and both begin an expression.
        _ => Facts { piece, role: role(text), starts: starts.contains(&text) },
    }
}

fn role(text: &str) -> Role {
    match text {
        "IN" => Role::In,
        "IS" => Role::Is,
        "NOT" => Role::Not,
        "NULL" => Role::Null,
        "BY" => Role::By,
        "ORDER" | "GROUP" | "PARTITION" => Role::List,
        "LIMIT" | "INTO" | "ROWS" | "RANGE" | "GROUPS" | "HAVING" | "QUALIFY" | "WINDOW"
        | "SEPARATOR" | "FOR" | "LOCK" | "UNION" | "EXCEPT" | "INTERSECT" | "ON" => Role::ListEnd,
        "SELECT" => Role::Select,
        "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" | "PACKAGE" => Role::Routine,
        "THEN" | "ELSE" | "WHERE" | "DISTINCTROW" | ":=" => Role::Expression,
        "ASC" | "DESC" | "WITH" => Role::Order,
        "AS" => Role::As,
        "CREATE" | "ALTER" => Role::Verb,
        "BINARY" => Role::Binary,
        "ROLLUP" | "CUBE" => Role::Rollup,
        "SOURCE_TLS_CIPHERSUITES"
        | "MASTER_TLS_CIPHERSUITES"
        | "PRIVILEGE_CHECKS_USER"
        | "SECONDARY_ENGINE" => Role::NullOption,
        "AND" | "OR" | "XOR" | "LIKE" | "BETWEEN" | "DIV" | "MOD" | "RLIKE" | "COLLATE"
        | "MEMBER" | "SOUNDS" => Role::Operator,
        _ => Role::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::text::PIECE;

    #[test]
    fn no_token_of_any_server_prints_more_than_a_piece_holds() {
        use Dialect::{Mariadb, Mariadb11, Mariadb118, Mysql9, Mysql57, Mysql80};
        for dialect in [Mysql9, Mysql80, Mysql57, Mariadb, Mariadb11, Mariadb118] {
            let table = Table::new(dialect);
            let longest = table.texts.iter().max_by_key(|text| text.len()).unwrap();
            assert!(longest.len() + 2 <= PIECE, "{longest}");
        }
    }
}
