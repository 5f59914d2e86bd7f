//! Digests: a statement without its values, in the words of the server.
//!
//! The server takes the tokens of its lexer, prints keywords in capitals (each under the last of
//! its names in `sql/lex.h`: `INT` is `INTEGER`, `USER` is `SYSTEM_USER`) and identifiers in
//! backticks, and folds values and lists of values (`sql/sql_digest.cc`). What its grammar alone
//! can tell, whether a `NULL` is a value and whether a number in `ORDER BY` is a column, is told
//! here from the tokens around.
//!
//! A password that a broken statement shows unquoted (`IDENTIFIED BY x`, quotes that do not pair)
//! would be a name in its digest: such a text is masked first.
//!
//! 5.7 and MariaDB end their text with a blank; here it has none.

mod charset;
mod stack;
mod table;
mod words;

use crate::kind::Classifier;
use crate::kind::Kind;
use crate::lexer::Lexeme;
use crate::lexer::Lexer;
use crate::lexer::Reading;
use crate::lexer::Token;
use crate::lexer::is_word;
use crate::mask;
use stack::Stack;
use table::CHARSET;
use table::HINT_CLOSE;
use table::HINT_OPEN;
use table::IDENT;
use table::IDENT_AT;
use table::Id;
use table::Role;
use table::Table;
use table::UNKNOWN;

/// Whose digests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// MySQL 9 (measured on 9.7).
    Mysql9,
    /// MySQL 8.0 (measured on 8.0.12).
    Mysql80,
    /// MySQL 5.7 (measured on 5.7.22).
    Mysql57,
    /// MariaDB (measured on 10.11).
    Mariadb,
}

impl Dialect {
    /// Which comments this server reads as code.
    pub fn reading(self) -> Reading {
        let (version, mariadb) = match self {
            Dialect::Mysql9 => (90_704, false),
            Dialect::Mysql80 => (80_099, false),
            Dialect::Mysql57 => (50_744, false),
            Dialect::Mariadb => (129_999, true),
        };
        Reading { version, mariadb, hints: !mariadb }
    }
}

/// The digest of one statement; its text lives in the [`Normaliser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest<'a> {
    /// The normalised text.
    pub text: &'a str,
    /// [`stable_hash`] of the text.
    pub hash: u64,
    /// What the statement does.
    pub kind: Kind,
    /// `false` when tokens are missing: the statement was cut, a literal or comment in it is
    /// open, or it has more tokens than a digest keeps (`max_digest_length`).
    pub complete: bool,
}

/// XXH3 with 64 bits and seed 0 (<https://xxhash.com>): the same on every host and in every run.
pub fn stable_hash(text: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

/// Makes digests; its buffers are used again, so that a statement allocates nothing.
#[derive(Debug)]
pub struct Normaliser {
    dialect: Dialect,
    table: Table,
    stack: Stack,
    lossy: String,
}

/// What is remembered along one statement.
#[derive(Default)]
struct Context<'a> {
    classifier: Classifier,
    depth: u32,
    in_hint: bool,
    /// A routine's body may follow, in which semicolons end nothing.
    routine: bool,
    /// Depths, as bits, at which a list of columns is open (`ORDER BY`, `GROUP BY`).
    columns: u64,
    /// A number that is a whole element of such a list if nothing but its end follows.
    number: Option<&'a [u8]>,
}

impl Context<'_> {
    /// The bit of the present depth; none below the 63rd parenthesis.
    fn level(&self) -> u64 {
        1_u64.checked_shl(self.depth).unwrap_or_default()
    }
}

impl Normaliser {
    /// A normaliser for one family of servers.
    pub fn new(dialect: Dialect) -> Self {
        let (stack, lossy) = (Stack::default(), String::new());
        Normaliser { dialect, table: Table::new(dialect), stack, lossy }
    }

    /// The digest of a whole statement.
    pub fn digest<'a>(&'a mut self, sql: &[u8]) -> Digest<'a> {
        self.run(sql, false)
    }

    /// The digest of the beginning of a statement, as a capture limit left it. The last token may
    /// be a part of one and is left out; the text ends with `...` and is never complete.
    pub fn digest_truncated<'a>(&'a mut self, sql: &[u8]) -> Digest<'a> {
        self.run(sql, true)
    }

    fn run<'a>(&'a mut self, sql: &[u8], truncated: bool) -> Digest<'a> {
        let sql = if truncated { sql } else { without_end(sql) };
        let (mut kind, mut complete, glued) = self.reduce(sql, truncated);
        let (accounts, data) = (kind == Kind::UserManagement, is_data(kind));
        if (!data || !complete || glued)
            && let Some(masked) = mask::masked_for_digest(sql, accounts, data)
        {
            let again = self.reduce(&masked, truncated);
            (kind, complete) = (again.0, again.1 && complete);
        }
        if truncated {
            let blank: &[u8] = if self.stack.text.is_empty() { b"" } else { b" " };
            self.stack.text.extend_from_slice(blank);
            self.stack.text.extend_from_slice(b"...");
        }
        let text = match std::str::from_utf8(&self.stack.text) {
            Ok(text) => text,
            Err(_) => {
                self.lossy.clear();
                self.lossy.push_str(&String::from_utf8_lossy(&self.stack.text));
                &self.lossy
            }
        };
        Digest { text, hash: stable_hash(text), kind, complete }
    }

    /// Fills the stack; gives the kind, whether nothing is missing, and whether a word stands right
    /// behind a string, as where quotes do not pair.
    fn reduce(&mut self, sql: &[u8], truncated: bool) -> (Kind, bool, bool) {
        self.stack.clear();
        let mut lexer = Lexer::new(sql, self.dialect.reading());
        let mut context = Context::default();
        let (mut open, mut glued) = (false, false);
        for token in lexer.by_ref() {
            if (truncated && token.end == sql.len()) || self.stack.full {
                break;
            }
            open |= token.open;
            glued |= token.lexeme == Lexeme::Text
                && sql.get(token.end).is_some_and(|byte| is_word(*byte));
            if token.lexeme == Lexeme::Symbol && token.bytes(sql) == b";" && !context.routine {
                break;
            }
            self.settle_number(&token, sql, &mut context);
            self.take(&token, sql, &mut context);
        }
        if let Some(digits) = context.number.filter(|_| !truncated) {
            self.stack.column_number(digits);
        }
        let complete = !(truncated || open || self.stack.full || lexer.ended_in_comment());
        (context.classifier.kind(), complete, glued)
    }

    fn take<'s>(&mut self, token: &Token, sql: &'s [u8], context: &mut Context<'s>) {
        let bytes = token.bytes(sql);
        match token.lexeme {
            Lexeme::Word if context.in_hint => self.hint_word(bytes, token, sql),
            Lexeme::Word => self.word(bytes, token, sql, context),
            Lexeme::Name => {
                self.classify(bytes, context);
                self.stack.identifier(IDENT, bytes);
            }
            Lexeme::Quoted => {
                let id = if context.in_hint { self.hint_name(token, sql) } else { IDENT };
                self.quoted(id, bytes, token.open);
            }
            Lexeme::Text if context.in_hint && bytes.starts_with(b"\"") => {
                let id = self.hint_name(token, sql);
                self.quoted(id, bytes, token.open);
            }
            Lexeme::Integer | Lexeme::Number => {
                let whole = token.lexeme == Lexeme::Integer && self.begins_element(context);
                self.stack.value(true, &self.table);
                context.number = (whole && is_long(bytes)).then_some(bytes);
            }
            Lexeme::Hex if self.dialect == Dialect::Mariadb => {
                self.stack.push(UNKNOWN, &self.table);
            }
            Lexeme::Hex | Lexeme::Bits => self.stack.value(true, &self.table),
            Lexeme::Text | Lexeme::Parameter | Lexeme::Host => {
                self.stack.value(false, &self.table);
            }
            Lexeme::Symbol => self.symbol(bytes, context),
            Lexeme::HintOpen => {
                context.in_hint = true;
                self.stack.push(HINT_OPEN, &self.table);
            }
            Lexeme::HintClose => {
                context.in_hint = false;
                self.stack.push(HINT_CLOSE, &self.table);
            }
            Lexeme::Ellipsis => self.stack.values(&self.table),
            Lexeme::Repeated => self.stack.repeat(&self.table),
        }
    }

    fn classify(&self, word: &[u8], context: &mut Context<'_>) {
        if !context.classifier.is_done() {
            context.classifier.word(word, context.depth);
        }
    }

    fn word(&mut self, word: &[u8], token: &Token, sql: &[u8], context: &mut Context<'_>) {
        self.classify(word, context);
        let called = sql.get(token.end) == Some(&b'(');
        let Some(id) = self.table.keyword(word, called) else {
            if charset::is_introducer(word) {
                self.stack.push(CHARSET, &self.table);
            } else {
                self.stack.identifier(IDENT, word);
            }
            return;
        };
        match self.table.role(id) {
            Role::Null if self.is_value(context) => {
                self.stack.value(false, &self.table);
                return;
            }
            Role::By if self.table.role(self.stack.peek(0)) == Role::List => {
                context.columns |= context.level();
            }
            Role::ListEnd => context.columns &= !context.level(),
            Role::Routine if context.classifier.kind() == Kind::Ddl => context.routine = true,
            _ => {}
        }
        self.stack.push(id, &self.table);
    }

    /// Whether a `NULL` here is a value: the grammar's `literal`, not an attribute of a column,
    /// `IS NULL`, `SET NULL` or `NULL ON EMPTY`.
    fn is_value(&self, context: &Context<'_>) -> bool {
        let last = self.stack.peek(0);
        if last == 0 || self.stack.ends_operand() {
            return false;
        }
        let role = self.table.role(last);
        let ddl = context.classifier.kind() == Kind::Ddl;
        match role {
            Role::Is => false,
            Role::Not => !ddl && self.table.role(self.stack.peek(1)) != Role::Is,
            Role::Expression | Role::By => true,
            _ if !ddl || last < table::VALUE => true,
            _ => self.table.starts(last),
        }
    }

    /// MySQL 9 keeps the number of a column in `ORDER BY 1`, as these are not values. A plus behind a
    /// comma goes without a trace.
    fn begins_element(&self, context: &Context<'_>) -> bool {
        if self.dialect != Dialect::Mysql9 || context.columns & context.level() == 0 {
            return false;
        }
        let mut back = 0;
        while self.stack.peek(back) == Id::from(b'+') {
            back += 1;
        }
        let values = matches!(self.stack.peek(back + 1), table::VALUE | table::VALUES);
        let fresh = self.stack.peek(back) == Id::from(b',') && !values;
        fresh || self.table.role(self.stack.peek(0)) == Role::By
    }

    /// Decides about the number before `token`.
    fn settle_number(&mut self, token: &Token, sql: &[u8], context: &mut Context<'_>) {
        let Some(digits) = context.number.take() else { return };
        let bytes = token.bytes(sql);
        let ends = match token.lexeme {
            Lexeme::Symbol => matches!(bytes, b"," | b")"),
            Lexeme::Word => self.table.keyword(bytes, false).is_some_and(|id| {
                !matches!(self.table.role(id), Role::Operator | Role::In | Role::Is | Role::Not)
            }),
            _ => false,
        };
        if ends {
            self.stack.column_number(digits);
        }
    }

    fn symbol(&mut self, symbol: &[u8], context: &mut Context<'_>) {
        match symbol {
            b"(" => {
                context.depth += 1;
                self.stack.push(Id::from(b'('), &self.table);
            }
            b")" => {
                context.columns &= !context.level();
                context.depth = context.depth.saturating_sub(1);
                self.stack.close(&self.table, self.dialect);
            }
            _ => {
                let id = self.table.symbol(symbol);
                self.stack.push(id, &self.table);
            }
        }
    }

    /// `table@query_block` in a hint: no blank before the `@`.
    fn hint_name(&self, token: &Token, sql: &[u8]) -> Id {
        if sql.get(token.end) == Some(&b'@') { IDENT_AT } else { IDENT }
    }

    fn hint_word(&mut self, word: &[u8], token: &Token, sql: &[u8]) {
        match self.table.hint(word) {
            Some(id) => self.stack.push(id, &self.table),
            None if self.is_size(word) => {
                self.stack.value(true, &self.table);
            }
            None => {
                let id = self.hint_name(token, sql);
                self.stack.identifier(id, word);
            }
        }
    }

    /// `16M` in a hint is a number from 8.0 on.
    fn is_size(&self, word: &[u8]) -> bool {
        let digit = word.first().is_some_and(u8::is_ascii_digit);
        digit && self.dialect != Dialect::Mysql57
    }

    /// MySQL prints a doubled backtick inside a name as one, MariaDB as two.
    fn quoted(&mut self, id: Id, bytes: &[u8], open: bool) {
        let end = if open { bytes.len() } else { bytes.len() - 1 };
        let name = bytes.get(1..end).unwrap_or_default();
        if self.dialect == Dialect::Mariadb || memchr::memchr(b'`', name).is_none() {
            self.stack.identifier(id, name);
            return;
        }
        let mut plain = Vec::with_capacity(name.len());
        let mut doubled = false;
        for byte in name {
            doubled = *byte == b'`' && !doubled;
            if !doubled {
                plain.push(*byte);
            }
        }
        self.stack.identifier(id, &plain);
    }
}

/// Whether digits are a number of the types `NUM` and `LONG_NUM`: at most 2^63 - 1.
fn is_long(digits: &[u8]) -> bool {
    std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<i64>().is_ok())
}

/// Statements in which a word behind `password =` is a column.
fn is_data(kind: Kind) -> bool {
    use Kind::Call;
    use Kind::Delete;
    use Kind::Insert;
    use Kind::Replace;
    use Kind::Select;
    use Kind::Update;
    matches!(kind, Select | Insert | Update | Delete | Replace | Call)
}

/// The server cuts blanks and semicolons off the end (`alloc_query` in `sql/sql_parse.cc`).
fn without_end(sql: &[u8]) -> &[u8] {
    let end = sql.iter().rposition(|byte| *byte != b';' && !byte.is_ascii_whitespace());
    sql.get(..end.map_or(0, |at| at + 1)).unwrap_or_default()
}
