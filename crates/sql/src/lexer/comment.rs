//! Blanks, comments and hints.

use super::{BLANK, CONTROL, DIGIT, Lexeme, Lexer, WORD};

/// From this version on six digits of an executable comment are a version only before a blank, and
/// hints have fractions.
pub(super) const STRICT_VERSIONS: u32 = 80_100;

impl Lexer<'_> {
    /// Moves after the first `needle` of the rest, or to the end.
    fn skip_past(&mut self, needle: &[u8]) -> bool {
        match memchr::memmem::find(self.rest(), needle) {
            Some(found) => {
                self.at += found + needle.len();
                true
            }
            None => {
                self.at = self.sql.len();
                false
            }
        }
    }

    /// Skips blanks and comments; `Some` if a comment is a token of its own.
    #[inline]
    pub(super) fn skip(&mut self) -> Option<Lexeme> {
        // A hint stands right after its word, or after blanks.
        let (end, mut only_blanks) = (self.at, true);
        while self.at < self.sql.len() {
            let class = self.class(0);
            if class & BLANK != 0 {
                self.at += 1;
                continue;
            }
            if class & WORD != 0 {
                break;
            }
            match (self.peek(0), self.peek(1)) {
                (b'*', b'/') if self.in_hint => {
                    self.at += 2;
                    self.in_hint = false;
                    return Some(Lexeme::HintClose);
                }
                _ if self.in_hint && self.skip_broken_string() => {}
                _ if self.in_hint => break,
                (b'#', _) => self.line(),
                (b'-', b'-') if self.is_dash_comment() => self.line(),
                (b'/', b'*') if only_blanks && self.peek(2) == b'+' && self.after_hintable(end) => {
                    self.at += 3;
                    self.in_hint = true;
                    return Some(Lexeme::HintOpen);
                }
                (b'/', b'*') => {
                    if let Some(lexeme) = self.comment() {
                        return Some(lexeme);
                    }
                }
                (b'*', b'/') if self.executable => {
                    self.at += 2;
                    self.executable = false;
                }
                _ => break,
            }
            only_blanks = false;
        }
        None
    }

    /// What the scanner of hints cannot take goes without a token (`scan_quoted` in
    /// `sql/sql_lex_hints.h`): the first quote of an empty string, so that the second begins another
    /// one; a string that the hint ends in; and a name behind `@` in the quotes of a string. Whether
    /// something was skipped.
    fn skip_broken_string(&mut self) -> bool {
        let (at, quote) = (self.at, self.peek(0));
        if quote == b'@' && matches!(self.peek(1), b'\'' | b'"') && self.is_text_quote(self.peek(1))
        {
            self.at += match (self.peek(1), self.has_hint_strings()) {
                (b'\'', _) => 1,
                (_, false) => 2,
                (quote, true) => self.quoted_end(at + 1, quote, false).0 - at,
            };
            return true;
        }
        let is_name = quote == b'`' || quote == b'"' && !self.is_text_quote(quote);
        let is_text = self.has_hint_strings() && matches!(quote, b'\'' | b'"');
        if !(is_name || is_text) {
            return false;
        }
        let (end, open) = self.quoted_end(at, quote, false);
        let inside = self.sql.get(at + 1..end).unwrap_or_default();
        match memchr::memmem::find(inside, b"*/") {
            _ if end == at + 2 && !open => self.at += 1,
            Some(closed) => self.at += 1 + closed,
            None if open => self.at = end,
            None => {}
        }
        self.at != at
    }

    /// Hints of 5.7 have no strings.
    pub(super) fn has_hint_strings(&self) -> bool {
        self.reading.version >= 80_000
    }

    /// `--` begins a comment before a blank, a control character and the end.
    fn is_dash_comment(&self) -> bool {
        self.at + 2 >= self.sql.len() || self.class(2) & (BLANK | CONTROL) != 0
    }

    /// A zero byte ends a comment as the end of the line does.
    fn line(&mut self) {
        let end = memchr::memchr2(b'\n', 0, self.rest());
        self.at += end.unwrap_or(self.rest().len());
    }

    fn comment(&mut self) -> Option<Lexeme> {
        const REPEATED: &[u8] = b"/* , ... */";
        let mark = match self.peek(2) {
            b'!' => 3,
            b'M' if self.peek(3) == b'!' => 4,
            _ => 0,
        };
        let foreign = mark == 4 && !self.reading.mariadb && self.reading.version != u32::MAX;
        if mark == 0 || foreign {
            let repeated = self.rest().starts_with(REPEATED);
            self.at += 2;
            self.open_comment |= !self.skip_past(b"*/");
            return repeated.then_some(Lexeme::Repeated);
        }
        self.at += mark;
        let digits = self.version_digits();
        let version = (0..digits).fold(0, |sum, n| sum * 10 + u32::from(self.peek(n) - b'0'));
        if self.runs(mark == 4, version) {
            self.at += digits;
            self.executable = true;
        } else {
            self.skip_executable();
        }
        None
    }

    /// How many digits after the mark are a version: none, five or six.
    fn version_digits(&self) -> usize {
        let digits = (0..6).take_while(|n| self.class(*n) & DIGIT != 0).count();
        let mysql = !self.reading.mariadb && self.reading.version != u32::MAX;
        let only_five =
            mysql && (self.reading.version < STRICT_VERSIONS || self.class(6) & BLANK == 0);
        match digits {
            0..=4 => 0,
            6 if only_five => 5,
            digits => digits,
        }
    }

    /// Skips what does not run; it may hold comments, but these none.
    fn skip_executable(&mut self) {
        loop {
            let (inner, outer) = (
                memchr::memmem::find(self.rest(), b"/*"),
                memchr::memmem::find(self.rest(), b"*/"),
            );
            match (inner, outer) {
                (Some(inner), Some(outer)) if inner < outer => {
                    self.at += inner + 2;
                    if !self.skip_past(b"*/") {
                        break;
                    }
                }
                (_, Some(outer)) => {
                    self.at += outer + 2;
                    return;
                }
                _ => break,
            }
        }
        self.at = self.sql.len();
        self.open_comment = true;
    }

    fn runs(&self, only_mariadb: bool, version: u32) -> bool {
        let everything = self.reading.version == u32::MAX;
        let foreign = self.reading.mariadb && !only_mariadb && (50_700..=99_999).contains(&version);
        everything || (!foreign && version <= self.reading.version)
    }

    /// Whether the token that ends at `end` is a word that a hint may follow.
    fn after_hintable(&self, end: usize) -> bool {
        const HINTABLE: [&[u8]; 5] = [b"SELECT", b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"];
        let (lexeme, start) = self.before;
        let word = self.sql.get(start..end).unwrap_or_default();
        self.reading.hints
            && lexeme == Lexeme::Word
            && HINTABLE.iter().any(|it| word.eq_ignore_ascii_case(it))
    }
}
