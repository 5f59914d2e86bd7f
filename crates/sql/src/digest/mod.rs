//! Digests: a statement without its values, as the server writes it.
//!
//! The server takes the tokens of its lexer and writes keywords in capitals, each under the last of
//! its names in `sql/lex.h` (`INT` is `INTEGER`, `USER` is `SYSTEM_USER`). It puts identifiers in
//! backticks, and folds values and lists of values (`sql/sql_digest.cc`). Its grammar also knows
//! whether a `NULL` is a value, and whether a number in `ORDER BY` is a column. waggle tells this
//! from the tokens around.
//!
//! A broken statement can show a password without quotes (`IDENTIFIED BY x`, unmatched quotes). It
//! would become a name in the digest, so waggle masks such a text first.
//!
//! MySQL 5.7 and MariaDB end the digest text with a blank. waggle does not.

mod context;
mod dialect;
mod introducer;
mod names;
mod stack;
mod table;
mod text;
mod values;
mod words;

use crate::kind::Kind;
use crate::letters::Letters;
use crate::lexer::{Lexeme, Lexer, Token, is_word};
use crate::{SessionSettings, SqlModes, mask};
use context::{Context, is_before_empty};
pub use dialect::Dialect;
pub use stack::DIGEST_LENGTH;
use stack::Stack;
use table::{CHARSET, CONCAT, HINT_CLOSE, IDENT, Id, NOT2, Role, Table, UNKNOWN};
use text::in_utf8;

/// The digest of one statement; its text lives in the [`Normaliser`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest<'a> {
    /// UTF-8.
    text: &'a [u8],
    /// Tells digests apart as the server's own hash does: [`stable_hash`] of the text, and of what
    /// the text does not show (a long name, two operators with one text) where there is such.
    pub hash: u64,
    /// What the statement does.
    pub kind: Kind,
    /// `false` when tokens are missing: the statement was cut, a literal or comment in it is
    /// open, or it has more tokens than a digest keeps (`max_digest_length`).
    pub complete: bool,
    /// The text was cut before the server would have stopped reading it, so nobody knows its digest
    /// on the server. The text ends with `...`, and no whole statement has this hash.
    pub cut: bool,
}

impl<'a> Digest<'a> {
    /// The normalised text. Most digests are known by their hash, so it is not looked at before.
    pub fn text(&self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }
}

impl std::fmt::Debug for Digest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Digest { hash, kind, complete, cut, .. } = self;
        write!(f, "{:?} {hash:016x} {kind:?} complete: {complete} cut: {cut}", self.text())
    }
}

/// XXH3 with 64 bits and seed 0 (<https://xxhash.com>): the same on every host and in every run.
pub fn stable_hash(bytes: impl AsRef<[u8]>) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes.as_ref())
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

impl Normaliser {
    /// A normaliser for one family of servers, with digests of the usual length.
    pub fn new(dialect: Dialect) -> Self {
        Normaliser::with_length(dialect, DIGEST_LENGTH)
    }

    /// A normaliser for a server with this `max_digest_length`, in bytes: a digest keeps as many
    /// tokens as have room in it.
    pub fn with_length(dialect: Dialect, max_digest_length: usize) -> Self {
        Normaliser {
            dialect,
            table: Table::new(dialect),
            stack: Stack::new(max_digest_length),
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
    /// be a part of one and is left out. A list of values that the cut leaves open counts as whole.
    /// The text ends with `...` unless the server would not have read further either, and is never
    /// complete.
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
        let (accounts, data) = (kind == Kind::UserManagement, kind.is_data());
        if (!data || !complete || glued)
            && let Some(masked) =
                mask::masked_for_digest(sql, self.dialect.reading(), settings, accounts, data)
        {
            let again = self.reduce(&masked, truncated);
            (kind, complete) = (again.0, again.1 && complete);
        }
        let cut = truncated && !self.stack.full;
        let (hash, text) = self.text(cut);
        Digest { text, hash, kind, complete, cut }
    }

    /// The text of the stack as the server shows it, in UTF-8, and the hash.
    fn text(&mut self, cut: bool) -> (u64, &[u8]) {
        let differs = self.stack.differs();
        self.shown.clear();
        if differs {
            self.stack.show(&mut self.shown);
        }
        self.stack.text.trim();
        if cut {
            let rest = |is_empty: bool| if is_empty { "..." } else { " ..." };
            self.shown.extend_from_slice(rest(self.shown.is_empty()).as_bytes());
            self.stack.text.extend(rest(self.stack.text.len() == 0).as_bytes());
        }
        let text = self.stack.text.bytes();
        let hash = xxhash_rust::xxh3::xxh3_64(text);
        // Names that are shown as they stand are ASCII.
        (hash, if differs { in_utf8(&self.shown, &mut self.lossy) } else { text })
    }

    /// Fills the stack; gives the kind, whether nothing is missing, and whether a word stands right
    /// after a string, as where quotes do not pair.
    fn reduce(&mut self, sql: &[u8], truncated: bool) -> (Kind, bool, bool) {
        self.stack.clear(self.settings.charset);
        let mut lexer = Lexer::with_settings(sql, self.dialect.reading(), self.settings);
        let mut context = Context::default();
        let (mut cut_off, mut glued) = (false, false);
        // A token that ends here may be cut.
        let cut = if truncated { sql.len() } else { usize::MAX };
        while let Some(Token { lexeme, start, end, open }) = lexer.next() {
            if end == cut || self.stack.full {
                // However a string goes on, it is a value.
                if lexeme == Lexeme::Text && !context.in_hint {
                    self.stack.value(false, &self.table);
                }
                break;
            }
            // Two steps are fewer instructions than one range.
            let Some(until) = sql.get(..end) else { break };
            let Some(bytes) = until.get(start..) else { break };
            // For those who seldom come to see it; its parts stay in registers.
            let token = || Token { lexeme, start, end, open };
            if context.number.is_some() || context.in_hint {
                cut_off |= open;
                glued |= is_glued(token(), sql);
                if self.take_in_context(token(), sql, &mut context) {
                    continue;
                }
            }
            match lexeme {
                Lexeme::Word => {
                    let letters = Letters::of(sql, start, bytes.len());
                    self.word(bytes, letters, &lexer, sql, &mut context);
                }
                Lexeme::Symbol => match bytes {
                    b";" if !context.routine => {
                        self.end_statement(&mut lexer, truncated);
                        break;
                    }
                    [mark] => self.mark(*mark, &mut context),
                    _ => self.operator(bytes),
                },
                Lexeme::Integer => self.integer(bytes, &mut context),
                _ => {
                    cut_off |= open;
                    glued |= is_glued(token(), sql);
                    self.take(token(), bytes, &lexer, sql, &mut context);
                }
            }
        }
        match context.number {
            _ if truncated => self.stack.end_list(&self.table, self.dialect),
            Some(digits) => self.stack.column_number(digits, None, &self.table),
            // Behind the last semicolon of a routine stands a comment.
            None if self.dialect == Dialect::Mysql9 => self.stack.end_statement(),
            None => {}
        }
        let complete = !(truncated || cut_off || self.stack.full || lexer.ended_in_comment());
        (context.classifier.kind(), complete, glued)
    }

    /// A semicolon outside of a routine. Servers before MySQL 9 keep it where nothing but a comment
    /// follows. Another statement of a packet is none of this digest.
    #[cold]
    fn end_statement(&mut self, lexer: &mut Lexer<'_>, truncated: bool) {
        let is_kept = !truncated && self.dialect != Dialect::Mysql9;
        if is_kept && lexer.next().is_none() {
            self.stack.push(Id::from(b';'), &self.table);
        }
    }

    /// What is read otherwise after the number of a column and in a hint; whether it was taken.
    #[cold]
    fn take_in_context(&mut self, token: Token, sql: &[u8], context: &mut Context<'_>) -> bool {
        if let Some(digits) = context.number.take() {
            self.settle_number(digits, token, sql);
        }
        context.in_hint && self.take_in_hint(token, sql, context)
    }

    #[inline]
    fn integer<'s>(&mut self, digits: &'s [u8], context: &mut Context<'s>) {
        let column = context.columns != 0 && self.begins_element(context);
        self.stack.value(true, &self.table);
        if column {
            context.number = Some(digits);
        }
    }

    /// Takes any token except the most frequent ones.
    #[inline(never)]
    fn take(
        &mut self,
        token: Token,
        bytes: &[u8],
        lexer: &Lexer<'_>,
        sql: &[u8],
        context: &mut Context<'_>,
    ) {
        match token.lexeme {
            Lexeme::Word | Lexeme::Symbol | Lexeme::Integer => {}
            Lexeme::Number => self.stack.value(true, &self.table),
            Lexeme::Name => {
                context.classify(None, Letters::of(sql, token.start, bytes.len()), bytes.len());
                match self.qualified_keyword(token, lexer, sql, context) {
                    Some(id) => self.stack.push(id, &self.table),
                    None => self.stack.identifier(IDENT, bytes),
                }
            }
            Lexeme::Quoted => self.quoted(IDENT, token, sql),
            Lexeme::Hex if self.dialect.is_mariadb() => {
                self.stack.push(UNKNOWN, &self.table);
            }
            Lexeme::Hex | Lexeme::Bits => self.stack.value(true, &self.table),
            Lexeme::Text if bytes.starts_with(b"$") => self.stack.push(UNKNOWN, &self.table),
            Lexeme::Text | Lexeme::Parameter | Lexeme::Host => {
                self.stack.value(false, &self.table);
            }
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

    #[inline]
    fn word(
        &mut self,
        word: &[u8],
        letters: Letters,
        lexer: &Lexer<'_>,
        sql: &[u8],
        context: &mut Context<'_>,
    ) {
        let found = self.table.keyword(word, letters);
        context.classify(found, letters, word.len());
        let Some(keyword) = found.filter(|it| !it.function || lexer.is_called()) else {
            match letters.first() {
                b'_' if introducer::is_introducer(word) => self.stack.push(CHARSET, &self.table),
                b'\\' if word == b"\\N" => self.short_null(context),
                _ => self.stack.word(word, letters),
            }
            return;
        };
        match keyword.role {
            Role::Null if self.is_value(context, is_before_empty(lexer, sql)) => {
                self.stack.null(&self.table);
                return;
            }
            Role::Not if self.settings.modes.contains(SqlModes::HIGH_NOT_PRECEDENCE) => {
                self.stack.push(NOT2, &self.table);
                self.stack.differs = true;
                return;
            }
            Role::By if self.table.role(self.stack.peek(0)) == Role::List => {
                context.columns |= context.level();
            }
            Role::ListEnd | Role::Select => {
                context.end_columns();
                if keyword.role == Role::Select && context.query.is_none() {
                    context.query = Some(context.depth);
                }
            }
            Role::Verb => context.inner_ddl |= context.routine,
            Role::Routine if context.classifier.kind() == Kind::Ddl => context.routine = true,
            _ => {}
        }
        self.stack.store(keyword.id, &keyword.piece);
    }

    /// MySQL 5.7 and MariaDB know `\N` for `NULL`, but not before `ON EMPTY`.
    fn short_null(&mut self, context: &Context<'_>) {
        if self.is_value(context, false) {
            self.stack.null(&self.table);
        } else if let Some(null) = self.table.keyword(b"NULL", Letters::of(b"NULL", 0, 4)) {
            self.stack.push(null.id, &self.table);
        }
    }

    #[inline]
    fn mark(&mut self, mark: u8, context: &mut Context<'_>) {
        match mark {
            b'(' => self.parenthesis(context),
            b')' => {
                context.end_columns();
                context.depth = context.depth.saturating_sub(1);
                context.query = context.query.filter(|depth| *depth <= context.depth);
                context.generated = context.generated.filter(|depth| *depth <= context.depth);
                self.stack.close(&self.table, self.dialect);
            }
            b';' => {
                context.end_statement();
                self.stack.push(Id::from(b';'), &self.table);
            }
            _ => self.stack.push(table::mark(mark), &self.table),
        }
    }

    fn parenthesis(&mut self, context: &mut Context<'_>) {
        let before = self.table.role(self.stack.peek(0));
        let nested = before == Role::Rollup && context.columns & context.level() != 0;
        let generated = before == Role::As && context.classifier.kind() == Kind::Ddl;
        context.depth += 1;
        if generated && context.generated.is_none() {
            context.generated = Some(context.depth);
        }
        if nested {
            context.columns |= context.level();
        }
        self.stack.push(Id::from(b'('), &self.table);
    }

    #[inline(never)]
    fn operator(&mut self, symbol: &[u8]) {
        let concat = symbol == b"||" && self.settings.modes.contains(SqlModes::PIPES_AS_CONCAT);
        let id = if concat { CONCAT } else { table::operator(symbol) };
        self.stack.push(id, &self.table);
        self.stack.differs |= concat;
    }
}

/// Whether it is a string after which a word stands at once.
fn is_glued(token: Token, sql: &[u8]) -> bool {
    token.lexeme == Lexeme::Text && sql.get(token.end).is_some_and(|byte| is_word(*byte))
}

/// The server cuts blanks and semicolons off the end (`alloc_query` in `sql/sql_parse.cc`).
fn without_end(sql: &[u8]) -> &[u8] {
    let end = sql.iter().rposition(|byte| *byte != b';' && !byte.is_ascii_whitespace());
    sql.get(..end.map_or(0, |at| at + 1)).unwrap_or_default()
}
