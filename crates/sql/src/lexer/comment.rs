//! Blanks, comments and hints.

use super::BLANK;
use super::CONTROL;
use super::DIGIT;
use super::Lexeme;
use super::Lexer;
use super::WORD;

/// From this version on six digits of an executable comment are a version only before a blank, and
/// hints have fractions.
pub(super) const STRICT_VERSIONS: u32 = 80_100;

impl Lexer<'_> {
    /// Moves behind the first `needle` of the rest, or to the end.
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

    /// Skips blanks and comments; `Some` where a comment is a token of its own.
    #[inline]
    pub(super) fn skip(&mut self) -> Option<Lexeme> {
        // A hint stands right behind its word, or behind blanks.
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

    /// How many digits behind the mark are a version: none, five or six.
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
