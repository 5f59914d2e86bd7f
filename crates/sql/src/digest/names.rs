//! Names: in quotes, in hints, and those of functions.

use super::context::Context;
use super::table::{HINT_OPEN, IDENT, IDENT_AT, Id};
use super::{Dialect, Normaliser};
use crate::Charset;
use crate::letters::Letters;
use crate::lexer::{Lexeme, Lexer, Token};

impl Normaliser {
    /// MariaDB knows a few functions after the name of a schema, too
    /// (`find_keyword_qualified_special_func` in its `sql/sql_lex.cc`), and in the expression of a
    /// generated column every keyword (`lookup_keywords_after_qualifier`).
    pub(super) fn qualified_keyword(
        &self,
        token: Token,
        lexer: &Lexer<'_>,
        sql: &[u8],
        context: &Context<'_>,
    ) -> Option<Id> {
        const SPECIAL: [&[u8]; 4] = [b"SUBSTRING", b"SUBSTR", b"TRIM", b"REPLACE"];
        if !self.dialect.is_mariadb() || self.stack.peek(0) != Id::from(b'.') {
            return None;
        }
        let (name, called) = (token.bytes(sql), lexer.is_called());
        let special = called && SPECIAL.iter().any(|it| name.eq_ignore_ascii_case(it));
        let generated = context.generated.is_some() && context.query.is_none();
        if !(special || generated) {
            return None;
        }
        let found = self.table.keyword(name, Letters::of(sql, token.start, name.len()));
        found.filter(|it| !it.function || called).map(|it| it.id)
    }

    /// Takes what is a token of another kind inside a hint; whether it was one.
    pub(super) fn take_in_hint(
        &mut self,
        token: Token,
        sql: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        if !context.hinted && token.lexeme != Lexeme::HintClose {
            context.hinted = true;
            self.stack.push(HINT_OPEN, &self.table);
        }
        let bytes = token.bytes(sql);
        match token.lexeme {
            Lexeme::Word => self.hint_word(bytes, token, sql),
            Lexeme::Quoted => self.quoted(hint_name(token, sql), token, sql),
            _ => return false,
        }
        true
    }

    fn hint_word(&mut self, word: &[u8], token: Token, sql: &[u8]) {
        match self.table.hint(word) {
            Some(id) => self.stack.push(id, &self.table),
            None if self.is_size(word) => {
                self.stack.value(true, &self.table);
            }
            None => self.stack.identifier(hint_name(token, sql), word),
        }
    }

    /// `16M` in a hint is a number from 8.0 on.
    fn is_size(&self, word: &[u8]) -> bool {
        let size = matches!(word, [digits @ .., b'K' | b'M' | b'G']
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
        size && self.dialect != Dialect::Mysql57
    }

    /// MySQL prints a doubled quote inside a name as one, MariaDB as two.
    pub(super) fn quoted(&mut self, id: Id, token: Token, sql: &[u8]) {
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
        // drops the byte after each that looks like a quote, and may so read beyond the name.
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

/// `table@query_block` in a hint: no blank before the `@`.
fn hint_name(token: Token, sql: &[u8]) -> Id {
    if sql.get(token.end) == Some(&b'@') { IDENT_AT } else { IDENT }
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
