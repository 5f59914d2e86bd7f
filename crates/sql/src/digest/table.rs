//! The words and the token numbers of one server family.

use super::Dialect;
use super::words;

/// Number of a token. Below 128: the ASCII symbol itself; then the tokens below; then words.
pub(super) type Id = u16;

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
    /// A word behind which a list of `ORDER BY` or `GROUP BY` is over.
    ListEnd,
    /// `SELECT`: such a word, too.
    Select,
    /// `PROCEDURE`, `FUNCTION`, `TRIGGER`, `EVENT`: a body with semicolons may follow.
    Routine,
    /// A word behind which an expression begins, beside those that make a sign unary.
    Expression,
    /// `ASC`, `DESC`, `WITH`: they follow an element of a list of columns.
    Order,
    /// `AS`: in a definition of a column, its expression follows.
    As,
    /// `CREATE`, `ALTER`: in a routine, columns may be defined behind it.
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

#[derive(Clone, Copy, Debug)]
struct Entry {
    word: &'static str,
    folded: Folded,
    id: Id,
    function: bool,
}

impl Entry {
    /// Whether a word is this one, where their folded letters are. Up to 16 bytes these tell all: two
    /// bytes that differ by a case bit are one letter, or one of them is in no word.
    #[inline]
    fn is(&self, word: &[u8]) -> bool {
        self.word.len() == word.len()
            && (word.len() <= 16 || self.word.as_bytes().eq_ignore_ascii_case(word))
    }
}

#[derive(Debug)]
pub(super) struct Table {
    texts: Vec<&'static str>,
    starts: Vec<bool>,
    roles: Vec<Role>,
    entries: Vec<Entry>,
    hints: Vec<Entry>,
    /// Open addressing: index into `entries` plus one; 0 is free.
    slots: Vec<u16>,
}

const SLOTS: usize = 4096;
/// The one-byte tokens: the flags of `STARTS` are found by their text.
const ASCII: &str = "\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f";

impl Table {
    pub(super) fn new(dialect: Dialect) -> Self {
        let (keywords, functions, hints, starts) = words::of(dialect);
        let mut table = Table {
            texts: (0..128).map(|byte| ASCII.get(byte..=byte).unwrap_or_default()).collect(),
            starts: Vec::new(),
            roles: Vec::new(),
            entries: Vec::new(),
            hints: Vec::new(),
            slots: vec![0; SLOTS],
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
                let entry = table.intern(row, function);
                table.entries.push(entry);
            }
        }
        for row in hints {
            let entry = table.intern(row, false);
            table.hints.push(entry);
        }
        table.starts = table.texts.iter().map(|text| starts.contains(text)).collect();
        // `||` prints as `|` in the older families, and both begin an expression.
        table.roles = table.texts.iter().map(|text| role(text)).collect();
        // These print as others do, but are not the same.
        table.mark(NOT2, Role::Not);
        table.mark(CONCAT, Role::Plain);
        table.index();
        table
    }

    fn intern(&mut self, row: &'static str, function: bool) -> Entry {
        let (word, text) = row.split_once('=').unwrap_or((row, row));
        let known = self.texts.iter().skip(usize::from(OPERATORS)).position(|it| *it == text);
        let id = match known {
            Some(at) => at + usize::from(OPERATORS),
            None => {
                self.texts.push(text);
                self.texts.len() - 1
            }
        };
        let folded = fold(word.as_bytes());
        Entry { word, folded, id: Id::try_from(id).unwrap_or(UNKNOWN), function }
    }

    /// Sets the role of a token behind which no expression begins.
    fn mark(&mut self, id: Id, role: Role) {
        if let Some(old) = self.roles.get_mut(usize::from(id)) {
            *old = role;
        }
        if let Some(starts) = self.starts.get_mut(usize::from(id)) {
            *starts = false;
        }
    }

    fn index(&mut self) {
        for (number, entry) in self.entries.iter().enumerate() {
            let mut slot = hash(entry.folded, entry.word.len());
            while self.slots.get(slot).is_some_and(|taken| *taken != 0) {
                slot = (slot + 1) % SLOTS;
            }
            if let (Some(free), Ok(number)) = (self.slots.get_mut(slot), u16::try_from(number + 1))
            {
                *free = number;
            }
        }
    }

    /// The token of a keyword; `called` when a parenthesis follows at once.
    #[inline]
    pub(super) fn keyword(&self, word: &[u8], called: bool) -> Option<Id> {
        let folded = fold(word);
        let mut slot = hash(folded, word.len());
        loop {
            let number = usize::from(*self.slots.get(slot)?);
            let entry = self.entries.get(number.checked_sub(1)?)?;
            if entry.folded == folded && entry.is(word) {
                return (called || !entry.function).then_some(entry.id);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The token of a word inside a hint.
    pub(super) fn hint(&self, word: &[u8]) -> Option<Id> {
        let found = self.hints.iter().find(|it| it.word.as_bytes().eq_ignore_ascii_case(word));
        found.map(|entry| entry.id)
    }

    /// The token of an operator or a punctuation mark.
    #[inline]
    pub(super) fn symbol(&self, symbol: &[u8]) -> Id {
        if let [byte] = symbol {
            return if byte.is_ascii() { Id::from(*byte) } else { NO_CHARACTER };
        }
        let Some(found) = LONG.iter().position(|it| it.as_bytes() == symbol) else {
            // The first mark swallowed the others.
            return symbol.first().map_or(UNKNOWN, |byte| Id::from(*byte));
        };
        // `<>` stands last and is `!=`.
        let found = if found + 1 == LONG.len() { 0 } else { found };
        OPERATORS + Id::try_from(found).unwrap_or(0)
    }

    #[inline]
    pub(super) fn text(&self, id: Id) -> &'static str {
        self.texts.get(usize::from(id)).copied().unwrap_or_default()
    }

    /// Whether an expression begins behind the token (`m_start_expr`).
    #[inline]
    pub(super) fn starts(&self, id: Id) -> bool {
        self.starts.get(usize::from(id)).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn role(&self, id: Id) -> Role {
        self.roles.get(usize::from(id)).copied().unwrap_or_default()
    }
}

/// The letters of a word as far as they fit in two numbers, without their case. Words of different
/// letters have different numbers up to 16 letters.
type Folded = (u64, u64);

#[inline]
fn fold(word: &[u8]) -> Folded {
    const CASE: u64 = 0xdfdf_dfdf_dfdf_dfdf;
    let (first, last) = match (word.first_chunk(), word.last_chunk()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (word.first_chunk(), word.last_chunk()) {
            (Some(first), Some(last)) => {
                (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
            }
            _ => (word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), 0),
        },
    };
    (first & CASE, last & CASE)
}

#[inline]
fn hash((first, last): Folded, length: usize) -> usize {
    let mixed = (first ^ last.rotate_left(29) ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize % SLOTS
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
