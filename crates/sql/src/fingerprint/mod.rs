//! Fingerprints: a statement without its values, as Percona Toolkit's `pt-query-digest` makes it.
//!
//! They let you compare with reports of that tool. Its behaviour is known from its documentation
//! and its answers (`tests/fingerprint.rs` asks it). The tool matches patterns on text, so it
//! treats every digit as a value: `sbtest1` becomes `sbtest?`. waggle finds strings and comments
//! with its lexer, as the server does, and then follows the tool. The two differ only where the
//! tool sees the end of a string or comment in another place than the server.

mod fold;
mod phrase;

use std::fmt;

use crate::SessionSettings;
use crate::lexer::{Lexeme, Lexer, Reading, Token};

/// `/*! … */` is code whatever its version, `/*M! … */` and hints are comments.
const READING: Reading = Reading { version: u32::MAX - 1, ..Reading::EVERYTHING };
/// How `mysqldump` reads a table; the tool has one name for all of these.
const DUMP: &[u8] = b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `";
/// How the slow log writes a command that is no statement.
const COMMAND: &[u8] = b"administrator command: ";

/// Makes fingerprints; its buffers are used again, so that a statement allocates nothing.
#[derive(Debug, Default)]
pub struct Fingerprinter {
    /// The statement without comments, each string a `?`.
    plain: Vec<u8>,
    folded: Vec<u8>,
    valid: String,
}

impl Fingerprinter {
    /// A fingerprinter with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The fingerprint of a statement, in time linear in its length, read as under the default
    /// settings. Broken UTF-8 is replaced.
    pub fn fingerprint(&mut self, sql: &[u8]) -> &str {
        self.fingerprint_in(sql, SessionSettings::default())
    }

    /// The fingerprint of a statement of a session with these settings. The tool itself knows of
    /// none: this is what it would give if it found strings where the server does.
    pub fn fingerprint_in(&mut self, sql: &[u8], settings: SessionSettings) -> &str {
        self.fold(sql, settings, false);
        self.text()
    }

    /// The fingerprint of the beginning of a statement, as a capture limit left it, and whether that
    /// is the fingerprint of the whole: the tool does not read behind the first row of an `INSERT`
    /// either. Any other ends with `...`. The last token may be a part of one and is left out, and a
    /// list of values that the cut leaves open counts as whole.
    pub fn fingerprint_cut_in(&mut self, sql: &[u8], settings: SessionSettings) -> (&str, bool) {
        let is_whole = self.fold(sql, settings, true);
        if !is_whole {
            self.end_cut();
        }
        (self.text(), is_whole)
    }

    /// Fills `folded`; whether the rest of a cut text changes nothing.
    fn fold(&mut self, sql: &[u8], settings: SessionSettings, cut: bool) -> bool {
        self.folded.clear();
        if sql.starts_with(DUMP) {
            self.folded.extend_from_slice(b"mysqldump");
            return true;
        }
        if sql.starts_with(COMMAND) {
            self.folded.extend_from_slice(sql);
            return !cut;
        }
        if let Some(call) = call(sql) {
            self.folded.extend(call.iter().map(u8::to_ascii_lowercase));
            return true;
        }
        self.plain.clear();
        let Plain { is_checksum, is_whole, .. } = Plain::of(sql, settings, cut, &mut self.plain);
        if is_checksum {
            self.folded.extend_from_slice(b"percona-toolkit");
            return true;
        }
        fold::fold(&mut self.plain, &mut self.folded);
        is_whole
    }

    /// Ends the text where the cut left it.
    fn end_cut(&mut self) {
        let is_listed = |byte: &u8| matches!(byte, b'?' | b',' | b' ' | b'+' | b'-' | b'.');
        let end = self.folded.iter().rposition(|byte| !is_listed(byte));
        self.folded.truncate(end.map_or(0, |at| at + 1));
        if let Some(before) = self.folded.strip_suffix(b"(") {
            let word = before.trim_ascii_end();
            let is_list = word.ends_with(b" in") || word.ends_with(b" values");
            let kept = if is_list { word.len() } else { before.len() };
            self.folded.truncate(kept);
            self.folded.extend_from_slice(b"(?+)");
        }
        self.folded.extend_from_slice(b" ...");
    }

    fn text(&mut self) -> &str {
        if let Ok(text) = std::str::from_utf8(&self.folded) {
            return text;
        }
        self.valid.clear();
        for chunk in self.folded.utf8_chunks() {
            self.valid.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.valid.push(char::REPLACEMENT_CHARACTER);
            }
        }
        &self.valid
    }
}

/// The procedure of a `CALL` with arguments, as far as its last parenthesis before a blank.
fn call(sql: &[u8]) -> Option<&[u8]> {
    let from = sql.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let verb = sql.get(from..from + 4)?;
    let behind = sql.get(from + 4..)?;
    let blanks = behind.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if !verb.eq_ignore_ascii_case(b"CALL") || blanks == 0 {
        return None;
    }
    let name = behind.get(blanks..)?.split(u8::is_ascii_whitespace).next()?;
    let end = memchr::memrchr(b'(', name).filter(|end| *end > 0)?;
    sql.get(from..from + 4 + blanks + end)
}

/// The first half of a fingerprint: what only a lexer can tell.
struct Plain<'a> {
    sql: &'a [u8],
    out: &'a mut Vec<u8>,
    /// What stands before is written, or will not be.
    written: usize,
    /// The comment that `pt-table-checksum` marks its statements with.
    is_checksum: bool,
    /// Nothing is missing that the tool would read.
    is_whole: bool,
}

impl<'a> Plain<'a> {
    fn of(sql: &'a [u8], settings: SessionSettings, cut: bool, out: &'a mut Vec<u8>) -> Self {
        let mut plain = Plain { sql, out, written: 0, is_checksum: false, is_whole: true };
        let mut rows = Rows::of(sql);
        let mut end = 0;
        for token in Lexer::with_settings(sql, READING, settings) {
            plain.gap(end, token.start);
            if let Some(first) = rows.ends_first(&token, sql) {
                plain.copy_to(first);
                return plain;
            }
            if cut && token.end == sql.len() {
                plain.copy_to(token.start);
                plain.is_whole = false;
                return plain;
            }
            end = token.end;
            match token.lexeme {
                Lexeme::Text => {
                    let quote = if is_national(token.bytes(sql)) { 1 } else { 0 };
                    plain.value(token.start + quote, end);
                }
                Lexeme::Hex | Lexeme::Bits => plain.value(token.start + 1, end),
                Lexeme::Repeated => plain.leave_out(token.start, end),
                _ => {}
            }
        }
        plain.gap(end, sql.len());
        plain.copy_to(sql.len());
        plain.is_whole = !cut;
        plain
    }

    fn copy_to(&mut self, end: usize) {
        self.out.extend_from_slice(self.sql.get(self.written..end).unwrap_or_default());
        self.written = self.written.max(end);
    }

    fn leave_out(&mut self, from: usize, to: usize) {
        self.copy_to(from);
        self.written = to;
    }

    fn value(&mut self, from: usize, to: usize) {
        self.leave_out(from, to);
        self.out.push(b'?');
    }

    /// What stands between two tokens: blanks, comments, and the marks of executable comments,
    /// which the tool keeps.
    #[inline]
    fn gap(&mut self, from: usize, to: usize) {
        let gap = self.sql.get(from..to).unwrap_or_default();
        if !gap.iter().all(u8::is_ascii_whitespace) {
            self.comments(from, to);
        }
    }

    fn comments(&mut self, from: usize, to: usize) {
        let gap = self.sql.get(..to).unwrap_or_default();
        let mut at = from;
        while let Some(rest) = gap.get(at..).filter(|rest| !rest.is_empty()) {
            let length = match rest {
                [b'/', b'*', b'!', ..] => 0,
                [b'/', b'*', inside @ ..] => {
                    let inner = memchr::memmem::find(inside, b"*/");
                    self.is_checksum |= inner.is_some_and(|end| is_chunk(&inside[..end]));
                    inner.map_or(rest.len(), |end| end + 4)
                }
                [b'#', ..] | [b'-', b'-', ..] => {
                    memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())
                }
                _ => 0,
            };
            if length > 0 {
                self.leave_out(at, at + length);
            }
            at += length.max(1);
        }
    }
}

fn is_national(text: &[u8]) -> bool {
    matches!(text, [b'n' | b'N', ..])
}

/// `database.table:1/10`, a part of a table.
fn is_chunk(comment: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        !word.is_empty() && word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let mut halves = comment.splitn(2, |byte| *byte == b':');
    let (name, part) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let mut names = name.split(|byte| *byte == b'.');
    let mut numbers = part.split(|byte| *byte == b'/');
    let number = |it: Option<&[u8]>, least: usize| {
        it.is_some_and(|it| it.len() >= least && it.iter().all(u8::is_ascii_digit))
    };
    let named = names.next().is_some_and(is_word) && names.next().is_some_and(is_word);
    named && names.next().is_none() && number(numbers.next(), 1) && number(numbers.next(), 0)
}

/// Where the first row of an `INSERT INTO … VALUES` with many rows ends: the tool leaves the rest
/// out, and here nobody reads it.
struct Rows {
    state: State,
    /// Behind the last token that belongs to the pattern.
    end: usize,
    close: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No such statement.
    Other,
    Head,
    Values,
    Inside,
    Closed,
    Comma,
}

impl Rows {
    fn of(sql: &[u8]) -> Self {
        let state = if inserts_into(sql) { State::Head } else { State::Other };
        Rows { state, end: 0, close: 0 }
    }

    /// The end of the first row where `token` begins the second.
    #[inline]
    fn ends_first(&mut self, token: &Token, sql: &[u8]) -> Option<usize> {
        if self.state == State::Other {
            return None;
        }
        let bytes = token.bytes(sql);
        let near = sql.get(self.end..token.start).unwrap_or_default();
        let near = near.iter().all(u8::is_ascii_whitespace);
        self.state = match (self.state, bytes) {
            (State::Comma, b"(") if near => return Some(self.close),
            (State::Closed, b",") if near => State::Comma,
            (State::Inside | State::Closed | State::Comma, b")") => {
                self.close = token.end;
                State::Closed
            }
            (State::Inside | State::Closed | State::Comma, _) => State::Inside,
            (State::Values, b"(") if near => State::Inside,
            _ if token.lexeme == Lexeme::Word && bytes.eq_ignore_ascii_case(b"VALUES") => {
                State::Values
            }
            _ => State::Head,
        };
        self.end = token.end;
        None
    }
}

/// Whether a text begins with `INSERT INTO`, `REPLACE INTO` or one of them with `IGNORE`.
fn inserts_into(sql: &[u8]) -> bool {
    let mut rest = sql;
    let mut skip = |word: &[u8]| {
        let is_next = rest.get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word));
        rest = rest.get(if is_next { word.len() } else { 0 }..).unwrap_or_default();
        is_next
    };
    let verb = skip(b"INSERT") || skip(b"REPLACE");
    skip(b" IGNORE");
    verb && rest.first().is_some_and(u8::is_ascii_whitespace) && {
        rest.trim_ascii_start().get(..4).is_some_and(|next| next.eq_ignore_ascii_case(b"INTO"))
    }
}

/// The identifier under which `pt-query-digest` lists a fingerprint: the MD5 of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueryId([u8; 16]);

impl QueryId {
    /// The identifier of a fingerprint.
    pub fn of(fingerprint: &str) -> Self {
        QueryId(md5::compute(fingerprint.as_bytes()).0)
    }

    /// `0x` and the last 16 digits, as older versions of the tool list it.
    pub fn short(self) -> String {
        format!("0x{:016X}", u128::from_be_bytes(self.0) & u128::from(u64::MAX))
    }
}

/// `0x` and 32 hexadecimal digits in capitals.
impl fmt::Display for QueryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "0x{:032X}", u128::from_be_bytes(self.0))
    }
}
