//! Lays out a statement or a digest text on several lines, for a person.
//!
//! Clauses and joins begin lines. Conditions and subqueries are indented. Long lines continue
//! below. Only blanks between tokens change, and never where that could join or split tokens: a new
//! blank appears only next to a parenthesis or after a comma.

mod clause;

use crate::lexer::{Lexeme, Lexer, Reading, Token};
use crate::{SessionSettings, SqlModes};
use clause::{Clauses, Start};

/// The narrowest layout, in characters.
const WIDTH_MIN: usize = 20;
/// Indentation of conditions and subqueries, in characters.
const STEP: usize = 2;
/// Indentation of what goes on from the line above, beyond that of its clause.
const CONTINUED: usize = 4;

/// Lays `sql` out in lines of at most `width` characters, as far as its tokens are not longer
/// (at least 20). Comments stay; `reading` tells which are code, `modes` are those of the session. Its
/// character set does not matter, since the text is UTF-8 here.
pub fn format(sql: &str, reading: Reading, modes: SqlModes, width: usize) -> String {
    // A lexer of bytes may part a character; what it parts stays together here.
    let sql = sql.as_bytes();
    let mut layout = Layout {
        sql,
        out: Vec::with_capacity(sql.len() + sql.len() / 4),
        width: width.max(WIDTH_MIN),
        column: 0,
        indent: 0,
        end: 0,
        must_break: false,
        marked: false,
    };
    let settings = SessionSettings { modes, ..SessionSettings::default() };
    let mut clauses = Clauses::default();
    let mut tokens = Lexer::with_settings(sql, reading, settings).map(without_gap).peekable();
    let (mut before, mut in_hint) = (None, false);
    while let Some(token) = tokens.next() {
        let following = tokens.peek().map(|next| word(next.bytes(sql)));
        let start = clauses.start(&token, word(token.bytes(sql)), following);
        layout.indent = clauses.indent() * STEP;
        layout.gap(token.start, before.as_ref(), &token, start);
        layout.put(token.bytes(sql));
        layout.end = token.end;
        in_hint = token.lexeme == Lexeme::HintOpen || in_hint && token.lexeme != Lexeme::HintClose;
        before = Some(token);
    }
    let length = layout.out.len();
    if layout.comments(sql.len()) && (in_hint || layout.out.len() > length) {
        // The blank may end the version of an executable comment, or `x'1` in a hint that stays open.
        layout.put(b" ");
    }
    String::from_utf8(layout.out)
        .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

fn word(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// How many characters begin in a text.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Hints and `/* , ... */` begin where the gap before them does; here only where they do.
fn without_gap(token: Token) -> Token {
    let length = match token.lexeme {
        Lexeme::HintOpen => "/*+".len(),
        Lexeme::HintClose => "*/".len(),
        Lexeme::Repeated => "/* , ... */".len(),
        _ => return token,
    };
    Token { start: token.end.saturating_sub(length), ..token }
}

struct Layout<'a> {
    sql: &'a [u8],
    out: Vec<u8>,
    width: usize,
    /// Characters of the line so far.
    column: usize,
    indent: usize,
    /// End of the token before.
    end: usize,
    /// A comment that ends with its line was written.
    must_break: bool,
    /// The token before begins with a digit right after a comment: perhaps one of its version.
    marked: bool,
}

impl Layout<'_> {
    /// Writes what stands before `token`.
    fn gap(&mut self, from: usize, before: Option<&Token>, token: &Token, start: Start) {
        let (end, marked) = (self.end, self.marked);
        let blank = self.comments(from);
        let digit = token.bytes(self.sql).first().is_some_and(u8::is_ascii_digit);
        self.marked = digit && from > end && !blank && !self.must_break;
        let Some(before) = before else {
            if self.must_break {
                self.line(0);
            } else if blank && !self.out.is_empty() {
                self.put(b" ");
            }
            return;
        };
        let free = blank || (!marked && self.may_part(before, token));
        let length = self.run(token);
        match start {
            _ if self.must_break => self.line(if start == Start::Inside { CONTINUED } else { 0 }),
            Start::Line if free => self.line(0),
            Start::Condition if free => self.line(STEP),
            _ if free && self.column + usize::from(blank) + length > self.width => {
                self.line(CONTINUED);
            }
            _ if blank => self.put(b" "),
            _ => {}
        }
    }

    /// Characters of a token and of what cannot be parted from it; no more than need to be known.
    fn run(&self, token: &Token) -> usize {
        let length = characters(token.bytes(self.sql));
        if matches!(token.bytes(self.sql), b"(" | b",") {
            return length;
        }
        let behind = self.sql.get(token.end..).unwrap_or_default().iter().take(self.width);
        let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b',');
        let more = behind.take_while(|byte| !ends(**byte)).count();
        let last = self.sql.get(token.end + more);
        length + more + usize::from(matches!(last, Some(b',' | b'(')))
    }

    /// Writes the comments up to `to`; whether the next token may be moved away.
    fn comments(&mut self, to: usize) -> bool {
        let gap = self.sql.get(self.end..to).unwrap_or_default();
        let comments = gap.trim_ascii();
        if comments.is_empty() {
            return !gap.is_empty();
        }
        if gap.first().is_some_and(u8::is_ascii_whitespace) && self.column > 0 {
            self.put(b" ");
        }
        self.put(comments);
        // One of these may go to the end of its line, if there is one. A zero byte ends it, too.
        let last = comments.rsplit(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
        let is_marked = last.contains(&b'#') || last.windows(2).any(|it| it == b"--");
        let behind = gap.get(gap.trim_ascii_end().len()..).unwrap_or_default();
        self.must_break = is_marked && behind.contains(&b'\n');
        gap.last().is_some_and(u8::is_ascii_whitespace)
    }

    /// Whether a blank can come between two tokens that had none.
    fn may_part(&self, before: &Token, token: &Token) -> bool {
        let symbol = |token: &Token| match token.lexeme {
            Lexeme::Symbol => token.bytes(self.sql),
            _ => b"",
        };
        // A blank after `--` would make a comment of it.
        let closes = symbol(token) == b")" && symbol(before) != b"-";
        token.start == self.end && (closes || matches!(symbol(before), b"(" | b","))
    }

    fn line(&mut self, more: usize) {
        self.must_break = false;
        let indent = (self.indent + more).min(self.width / 2);
        self.out.push(b'\n');
        self.out.extend(std::iter::repeat_n(b' ', indent));
        self.column = indent;
    }

    fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        let last = memchr::memrchr(b'\n', text);
        let before = if last.is_none() { self.column } else { 0 };
        let line = text.get(last.map_or(0, |last| last + 1)..).unwrap_or_default();
        self.column = before + characters(line);
    }
}
