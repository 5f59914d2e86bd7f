//! A statement or a digest text on several lines, for a person.
//!
//! Clauses and joins begin lines, conditions and subqueries are indented, what is longer than a line
//! goes on below. Nothing but the blanks between tokens changes, and none comes or goes where that
//! could join or split tokens: a blank is new only next to a parenthesis or behind a comma.

mod clause;

use crate::lexer::Lexeme;
use crate::lexer::Lexer;
use crate::lexer::Reading;
use crate::lexer::Token;
use clause::Clauses;
use clause::Start;

/// The narrowest layout, in characters.
const WIDTH_MIN: usize = 20;
/// Indentation of conditions and subqueries, in characters.
const STEP: usize = 2;
/// Indentation of what goes on from the line above, beyond that of its clause.
const CONTINUED: usize = 4;

/// Lays `sql` out in lines of at most `width` characters, as far as its tokens are not longer
/// (at least 20). Comments stay; `reading` tells which are code.
pub fn format(sql: &str, reading: Reading, width: usize) -> String {
    let mut layout = Layout {
        sql,
        out: String::with_capacity(sql.len() + sql.len() / 4),
        width: width.max(WIDTH_MIN),
        column: 0,
        indent: 0,
        end: 0,
        must_break: false,
    };
    let mut clauses = Clauses::default();
    let mut tokens = Lexer::new(sql.as_bytes(), reading).map(without_gap).peekable();
    let mut before = None;
    while let Some(token) = tokens.next() {
        let following = tokens.peek().map(|next| text(sql, next));
        let start = clauses.start(&token, text(sql, &token), following);
        layout.indent = clauses.indent() * STEP;
        layout.gap(token.start, before.as_ref(), &token, start);
        layout.put(text(sql, &token));
        layout.end = token.end;
        before = Some(token);
    }
    layout.comments(sql.len());
    layout.out
}

fn text<'a>(sql: &'a str, token: &Token) -> &'a str {
    sql.get(token.start..token.end).unwrap_or_default()
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
    sql: &'a str,
    out: String,
    width: usize,
    /// Characters of the line so far.
    column: usize,
    indent: usize,
    /// End of the token before.
    end: usize,
    /// A comment that ends with its line was written.
    must_break: bool,
}

impl Layout<'_> {
    /// Writes what stands before `token`.
    fn gap(&mut self, from: usize, before: Option<&Token>, token: &Token, start: Start) {
        let blank = self.comments(from);
        let Some(before) = before else {
            if self.must_break {
                self.line(0);
            } else if blank && !self.out.is_empty() {
                self.put(" ");
            }
            return;
        };
        let free = blank || self.may_part(before, token);
        let length = self.run(token);
        match start {
            _ if self.must_break => self.line(if start == Start::Inside { CONTINUED } else { 0 }),
            Start::Line if free => self.line(0),
            Start::Condition if free => self.line(STEP),
            _ if free && self.column + usize::from(blank) + length > self.width => {
                self.line(CONTINUED);
            }
            _ if blank => self.put(" "),
            _ => {}
        }
    }

    /// Characters of a token and of what cannot be parted from it; no more than need to be known.
    fn run(&self, token: &Token) -> usize {
        let length = text(self.sql, token).chars().count();
        if matches!(text(self.sql, token), "(" | ",") {
            return length;
        }
        let behind = self.sql.get(token.end..).unwrap_or_default().bytes().take(self.width);
        let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b',');
        let more = behind.take_while(|byte| !ends(*byte)).count();
        let last = self.sql.as_bytes().get(token.end + more);
        length + more + usize::from(matches!(last, Some(b',' | b'(')))
    }

    /// Writes the comments up to `to`; whether the next token may be moved away.
    fn comments(&mut self, to: usize) -> bool {
        let gap = self.sql.get(self.end..to).unwrap_or_default();
        let comments = gap.trim_ascii();
        if comments.is_empty() {
            return !gap.is_empty();
        }
        if gap.starts_with(|first: char| first.is_ascii_whitespace()) && self.column > 0 {
            self.put(" ");
        }
        self.put(comments);
        // One of these may go to the end of its line.
        self.must_break = comments.contains('#') || comments.contains("--");
        gap.ends_with(|last: char| last.is_ascii_whitespace())
    }

    /// Whether a blank can come between two tokens that had none.
    fn may_part(&self, before: &Token, token: &Token) -> bool {
        let symbol = |token: &Token| match token.lexeme {
            Lexeme::Symbol => text(self.sql, token),
            _ => "",
        };
        // A blank behind `--` would make a comment of it.
        let closes = symbol(token) == ")" && symbol(before) != "-";
        token.start == self.end && (closes || matches!(symbol(before), "(" | ","))
    }

    fn line(&mut self, more: usize) {
        self.must_break = false;
        let indent = (self.indent + more).min(self.width / 2);
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        let last = text.rsplit('\n').next().unwrap_or_default();
        let before = if last.len() == text.len() { self.column } else { 0 };
        self.column = before + last.chars().count();
    }
}
