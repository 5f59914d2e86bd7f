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

mod introducer;
mod stack;
mod table;
mod words;

use crate::Charset;
use crate::SessionSettings;
use crate::SqlModes;
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
use table::CONCAT;
use table::HINT_CLOSE;
use table::HINT_OPEN;
use table::IDENT;
use table::IDENT_AT;
use table::Id;
use table::NOT2;
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
    /// MariaDB 10 (measured on 10.11).
    Mariadb,
    /// MariaDB 11 and later (measured on 11.4).
    Mariadb11,
}

impl Dialect {
    /// Whether the server is a MariaDB.
    pub(crate) fn is_mariadb(self) -> bool {
        matches!(self, Dialect::Mariadb | Dialect::Mariadb11)
    }

    /// Which comments this server reads as code.
    pub fn reading(self) -> Reading {
        let (version, mariadb) = match self {
            Dialect::Mysql9 => (90_704, false),
            Dialect::Mysql80 => (80_099, false),
            Dialect::Mysql57 => (50_744, false),
            Dialect::Mariadb | Dialect::Mariadb11 => (129_999, true),
        };
        Reading { version, mariadb, hints: !mariadb }
    }
}

/// The digest of one statement; its text lives in the [`Normaliser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest<'a> {
    /// The normalised text.
    pub text: &'a str,
    /// Tells digests apart as the server's own hash does: [`stable_hash`] of the text, and of what
    /// the text does not show (a long name, two operators with one text) where there is such.
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
    settings: SessionSettings,
    /// The text where the stack's is not what the server shows.
    shown: Vec<u8>,
    /// A name without its doubled quotes.
    plain: Vec<u8>,
    lossy: String,
}

/// What is remembered along one statement.
#[derive(Default)]
struct Context<'a> {
    classifier: Classifier,
    /// A parenthesis follows the word.
    called: bool,
    /// `ON EMPTY` or `ON ERROR` follows the word.
    on_empty: bool,
    depth: u32,
    in_hint: bool,
    /// The hint has something in it.
    hinted: bool,
    /// A routine's body may follow, in which semicolons end nothing.
    routine: bool,
    /// The depth of the outermost query that is open.
    query: Option<u32>,
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
        Normaliser {
            dialect,
            table: Table::new(dialect),
            stack: Stack::default(),
            settings: SessionSettings::default(),
            shown: Vec::new(),
            plain: Vec::new(),
            lossy: String::new(),
        }
    }

    /// The digest of a whole statement of a session whose settings are not known: read under the
    /// default ones, and with more care for secrets.
    pub fn digest<'a>(&'a mut self, sql: &[u8]) -> Digest<'a> {
        self.run(sql, None, false)
    }

    /// The digest of a whole statement of a session with these settings.
    pub fn digest_in<'a>(&'a mut self, sql: &[u8], settings: SessionSettings) -> Digest<'a> {
        self.run(sql, Some(settings), false)
    }

    /// The digest of the beginning of a statement, as a capture limit left it. The last token may
    /// be a part of one and is left out; the text ends with `...` and is never complete.
    pub fn digest_truncated<'a>(&'a mut self, sql: &[u8]) -> Digest<'a> {
        self.run(sql, None, true)
    }

    /// [`Normaliser::digest_truncated`] for a session with these settings.
    pub fn digest_truncated_in<'a>(
        &'a mut self,
        sql: &[u8],
        settings: SessionSettings,
    ) -> Digest<'a> {
        self.run(sql, Some(settings), true)
    }

    fn run<'a>(
        &'a mut self,
        sql: &[u8],
        settings: Option<SessionSettings>,
        truncated: bool,
    ) -> Digest<'a> {
        self.settings = settings.unwrap_or_default();
        let sql = if truncated { sql } else { without_end(sql) };
        let (mut kind, mut complete, glued) = self.reduce(sql, truncated);
        let (accounts, data) = (kind == Kind::UserManagement, is_data(kind));
        if (!data || !complete || glued)
            && let Some(masked) =
                mask::masked_for_digest(sql, self.dialect.reading(), settings, accounts, data)
        {
            let again = self.reduce(&masked, truncated);
            (kind, complete) = (again.0, again.1 && complete);
        }
        let (hash, text) = self.text(truncated);
        Digest { text, hash, kind, complete }
    }

    /// The text of the stack as the server shows it, and the hash.
    fn text(&mut self, truncated: bool) -> (u64, &str) {
        self.shown.clear();
        if self.stack.differs {
            self.stack.show(&mut self.shown);
        }
        if truncated {
            for text in [&mut self.stack.text, &mut self.shown] {
                let blank: &[u8] = if text.is_empty() { b"" } else { b" " };
                text.extend_from_slice(blank);
                text.extend_from_slice(b"...");
            }
        }
        let hash = xxhash_rust::xxh3::xxh3_64(&self.stack.text);
        let shown = if self.stack.differs { &self.shown } else { &self.stack.text };
        match std::str::from_utf8(shown) {
            Ok(text) => (hash, text),
            Err(_) => {
                self.lossy.clear();
                self.lossy.push_str(&String::from_utf8_lossy(shown));
                (hash, &self.lossy)
            }
        }
    }

    /// Fills the stack; gives the kind, whether nothing is missing, and whether a word stands right
    /// behind a string, as where quotes do not pair.
    fn reduce(&mut self, sql: &[u8], truncated: bool) -> (Kind, bool, bool) {
        self.stack.clear(self.settings.charset);
        let mut lexer = Lexer::with_settings(sql, self.dialect.reading(), self.settings);
        let mut context = Context::default();
        let (mut open, mut glued) = (false, false);
        while let Some(token) = lexer.next() {
            if matches!(token.lexeme, Lexeme::Word | Lexeme::Name) {
                context.called = lexer.is_called(&token);
                let null = token.bytes(sql).eq_ignore_ascii_case(b"NULL");
                context.on_empty = null && is_before_empty(&lexer, sql);
            }
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
            self.stack.column_number(digits, None, &self.table);
        }
        let complete = !(truncated || open || self.stack.full || lexer.ended_in_comment());
        (context.classifier.kind(), complete, glued)
    }

    fn take<'s>(&mut self, token: &Token, sql: &'s [u8], context: &mut Context<'s>) {
        let bytes = token.bytes(sql);
        if context.in_hint && !context.hinted && token.lexeme != Lexeme::HintClose {
            context.hinted = true;
            self.stack.push(HINT_OPEN, &self.table);
        }
        match token.lexeme {
            Lexeme::Word if context.in_hint => self.hint_word(bytes, token, sql),
            Lexeme::Word => self.word(bytes, context),
            Lexeme::Name => {
                self.classify(bytes, context);
                match self.qualified_function(bytes, context.called) {
                    Some(id) => self.stack.push(id, &self.table),
                    None => self.stack.identifier(IDENT, bytes),
                }
            }
            Lexeme::Quoted => {
                let id = if context.in_hint { self.hint_name(token, sql) } else { IDENT };
                self.quoted(id, token, sql);
            }
            Lexeme::Text if context.in_hint && bytes.starts_with(b"\"") => {
                let id = self.hint_name(token, sql);
                self.quoted(id, token, sql);
            }
            Lexeme::Integer | Lexeme::Number => {
                let whole = token.lexeme == Lexeme::Integer && self.begins_element(context);
                self.stack.value(true, &self.table);
                context.number = (whole && is_long(bytes)).then_some(bytes);
            }
            Lexeme::Hex if self.dialect.is_mariadb() => {
                self.stack.push(UNKNOWN, &self.table);
            }
            Lexeme::Hex | Lexeme::Bits => self.stack.value(true, &self.table),
            Lexeme::Text if bytes.starts_with(b"$") => self.stack.push(UNKNOWN, &self.table),
            Lexeme::Text | Lexeme::Parameter | Lexeme::Host => {
                self.stack.value(false, &self.table);
            }
            Lexeme::Symbol => self.symbol(bytes, context),
            Lexeme::HintOpen => (context.in_hint, context.hinted) = (true, false),
            Lexeme::HintClose => {
                context.in_hint = false;
                if context.hinted {
                    self.stack.push(HINT_CLOSE, &self.table);
                }
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

    fn word(&mut self, word: &[u8], context: &mut Context<'_>) {
        self.classify(word, context);
        let Some(id) = self.keyword(word, context.called) else {
            if introducer::is_introducer(word) {
                self.stack.push(CHARSET, &self.table);
            } else {
                self.stack.identifier(IDENT, word);
            }
            return;
        };
        let role = self.table.role(id);
        match role {
            Role::Null if self.is_value(context) => {
                self.stack.null(&self.table);
                return;
            }
            Role::By if self.table.role(self.stack.peek(0)) == Role::List => {
                context.columns |= context.level();
            }
            Role::ListEnd | Role::Select => {
                context.columns &= !context.level();
                if role == Role::Select && context.query.is_none() {
                    context.query = Some(context.depth);
                }
            }
            Role::Routine if context.classifier.kind() == Kind::Ddl => context.routine = true,
            _ => {}
        }
        self.stack.push(id, &self.table);
    }

    /// The token of a keyword, as the modes of the session have it.
    fn keyword(&self, word: &[u8], called: bool) -> Option<Id> {
        let id = self.table.keyword(if word == b"\\N" { b"NULL" } else { word }, called)?;
        let not2 = self.settings.modes.contains(SqlModes::HIGH_NOT_PRECEDENCE)
            && self.table.role(id) == Role::Not;
        Some(if not2 { NOT2 } else { id })
    }

    /// MariaDB knows a few functions behind the name of a schema, too
    /// (`find_keyword_qualified_special_func` in its `sql/sql_lex.cc`).
    fn qualified_function(&self, name: &[u8], called: bool) -> Option<Id> {
        const SPECIAL: [&[u8]; 4] = [b"SUBSTRING", b"SUBSTR", b"TRIM", b"REPLACE"];
        let special = called
            && self.dialect.is_mariadb()
            && self.stack.peek(0) == Id::from(b'.')
            && SPECIAL.iter().any(|it| name.eq_ignore_ascii_case(it));
        if special { self.table.keyword(name, true) } else { None }
    }

    /// Whether a `NULL` here is a value: the grammar's `literal`, not an attribute of a column,
    /// `IS NULL`, `SET NULL` or `NULL ON EMPTY`.
    fn is_value(&self, context: &Context<'_>) -> bool {
        let last = self.stack.peek(0);
        if last == 0 || self.stack.ends_operand() {
            return false;
        }
        let role = self.table.role(last);
        // Where NULL may be an attribute of a column: not in a query or a routine.
        let ddl =
            context.classifier.kind() == Kind::Ddl && !(context.query.is_some() || context.routine);
        match role {
            Role::Is => false,
            _ if context.on_empty => false,
            _ if last == Id::from(b'=') && !is_data(context.classifier.kind()) => {
                self.table.role(self.stack.peek(1)) != Role::NullOption
            }
            Role::Not => !ddl && self.table.role(self.stack.peek(1)) != Role::Is,
            Role::Expression | Role::By => true,
            Role::Binary if self.table.starts(self.stack.peek(1)) => true,
            // Attributes of columns stand in no inner parenthesis.
            _ if !ddl || context.depth > 1 || last < table::VALUE => true,
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
        let nested = self.stack.peek(0) == Id::from(b'(');
        fresh || nested || self.table.role(self.stack.peek(0)) == Role::By
    }

    /// Decides about the number before `token`.
    fn settle_number(&mut self, token: &Token, sql: &[u8], context: &mut Context<'_>) {
        let Some(digits) = context.number.take() else { return };
        let bytes = token.bytes(sql);
        let next = match token.lexeme {
            Lexeme::Symbol => bytes.first().filter(|byte| matches!(byte, b',' | b')')),
            _ => None,
        };
        let next = match next {
            Some(symbol) => Some(Id::from(*symbol)),
            None if token.lexeme == Lexeme::Word => self.table.keyword(bytes, false).filter(|id| {
                !matches!(self.table.role(*id), Role::Operator | Role::In | Role::Is | Role::Not)
            }),
            None => None,
        };
        if next.is_some() {
            self.stack.column_number(digits, next, &self.table);
        }
    }

    fn symbol(&mut self, symbol: &[u8], context: &mut Context<'_>) {
        match symbol {
            b"(" => {
                let nested = context.columns & context.level() != 0
                    && self.table.role(self.stack.peek(0)) == Role::Rollup;
                context.depth += 1;
                if nested {
                    context.columns |= context.level();
                }
                self.stack.push(Id::from(b'('), &self.table);
            }
            b")" => {
                context.columns &= !context.level();
                context.depth = context.depth.saturating_sub(1);
                context.query = context.query.filter(|depth| *depth <= context.depth);
                self.stack.close(&self.table, self.dialect);
            }
            _ => {
                let concat =
                    symbol == b"||" && self.settings.modes.contains(SqlModes::PIPES_AS_CONCAT);
                let id = if concat { CONCAT } else { self.table.symbol(symbol) };
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
        let size = matches!(word, [digits @ .., b'K' | b'M' | b'G']
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
        size && self.dialect != Dialect::Mysql57
    }

    /// MySQL prints a doubled quote inside a name as one, MariaDB as two.
    fn quoted(&mut self, id: Id, token: &Token, sql: &[u8]) {
        let end = if token.open { token.end } else { token.end - 1 };
        let name = sql.get(token.start + 1..end).unwrap_or_default();
        let quote = sql.get(token.start).copied().unwrap_or(b'`');
        if self.dialect.is_mariadb() || memchr::memchr(quote, name).is_none() {
            self.stack.identifier(id, name);
            return;
        }
        let doubled = doubled_quotes(name, quote, self.settings.charset);
        if doubled == 0 {
            self.stack.identifier(id, name);
            return;
        }
        self.plain.clear();
        // The server does not look for characters here (`get_quoted_token` in `sql/sql_lex.cc`): it
        // drops the byte behind each that looks like a quote, and may so read beyond the name.
        let mut from = sql.get(token.start + 1..).unwrap_or_default().iter().chain([&0]);
        while self.plain.len() < name.len() - doubled
            && let Some(byte) = from.next()
        {
            self.plain.push(*byte);
            if *byte == quote {
                from.next();
            }
        }
        self.stack.identifier(id, &self.plain);
    }
}

/// Whether `ON EMPTY` or `ON ERROR` follows, as behind the `NULL` of `JSON_VALUE`.
fn is_before_empty(lexer: &Lexer<'_>, sql: &[u8]) -> bool {
    let mut ahead = lexer.clone();
    let mut next = || ahead.next().map(|token| token.bytes(sql)).unwrap_or_default();
    let (on, empty) = (next(), next());
    on.eq_ignore_ascii_case(b"ON")
        && (empty.eq_ignore_ascii_case(b"EMPTY") || empty.eq_ignore_ascii_case(b"ERROR"))
}

/// How often a name has its quote twice.
fn doubled_quotes(name: &[u8], quote: u8, charset: Charset) -> usize {
    let (mut doubled, mut rest) = (0, name);
    while let Some(byte) = rest.first() {
        let pair = *byte == quote && rest.get(1) == Some(&quote);
        doubled += usize::from(pair);
        let length = if pair { 2 } else { charset.shape().length(rest).max(1) };
        rest = rest.get(length..).unwrap_or_default();
    }
    doubled
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
    use Kind::Load;
    use Kind::Replace;
    use Kind::Select;
    use Kind::Update;
    matches!(kind, Select | Insert | Update | Delete | Replace | Call | Load)
}

/// The server cuts blanks and semicolons off the end (`alloc_query` in `sql/sql_parse.cc`).
fn without_end(sql: &[u8]) -> &[u8] {
    let end = sql.iter().rposition(|byte| *byte != b';' && !byte.is_ascii_whitespace());
    sql.get(..end.map_or(0, |at| at + 1)).unwrap_or_default()
}
