//! A total lexer of MySQL's and MariaDB's SQL: any bytes give tokens, in linear time.
//!
//! It follows what the servers' lexers do (`lex_one_token` in `sql/sql_lex.cc`) with the default
//! `sql_mode`: `"x"` is a string and a backslash escapes. Comments and blanks are skipped; the
//! inside of an executable comment (`/*! … */`) is code where the server would run it.

/// What a token is. Its bytes are the span of the [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lexeme {
    /// An unquoted word: a keyword or an identifier.
    Word,
    /// An unquoted word that is an identifier because of a `.` next to it.
    Name,
    /// An identifier in backticks.
    Quoted,
    /// A decimal integer.
    Integer,
    /// Any other number: with a point, an exponent, `0x…`, `0b…`.
    Number,
    /// A string in quotes, also `N'…'`.
    Text,
    /// `x'…'`.
    Hex,
    /// `b'…'`.
    Bits,
    /// `?`.
    Parameter,
    /// What follows a single `@`: a host or the name of a user variable.
    Host,
    /// An operator or a punctuation mark.
    Symbol,
    /// The beginning of an optimizer hint.
    HintOpen,
    /// The end of an optimizer hint.
    HintClose,
    /// The `...` of a digest text.
    Ellipsis,
    /// The `/* , ... */` of a digest text.
    Repeated,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub lexeme: Lexeme,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// The text ended before the token did: an open string, identifier or comment.
    pub open: bool,
}

impl Token {
    /// Its bytes in the text it was read from.
    #[inline]
    pub fn bytes<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start..self.end).unwrap_or_default()
    }
}

/// Which comments are code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Executable comments up to this version run, e.g. 90704 (`MYSQL_VERSION_ID`).
    pub version: u32,
    /// `/*M! … */` is code and MySQL's versions 50700 to 99999 are not.
    pub mariadb: bool,
    /// `/*+ … */` behind SELECT, INSERT, REPLACE, UPDATE and DELETE is read.
    pub hints: bool,
}

impl Reading {
    /// Every executable comment is code: for whoever looks for secrets.
    pub const EVERYTHING: Reading = Reading { version: u32::MAX, mariadb: false, hints: false };
}

const BLANK: u8 = 1;
const WORD: u8 = 2;
const DIGIT: u8 = 4;

/// Classes of bytes: `my_charset_utf8mb4`'s `state_map` and `ident_map` reduced to what matters.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => BLANK,
            b'0'..=b'9' => WORD | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => WORD,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Whether a byte may stand in an unquoted identifier.
#[inline]
pub(crate) fn is_word(byte: u8) -> bool {
    CLASS[byte as usize] & WORD != 0
}

/// The tokens of a text, one by one.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    reading: Reading,
    /// Depth of executable comments that are open.
    executable: u32,
    in_hint: bool,
    before: Option<Token>,
    /// The one-byte symbol right before, without a blank between; else 0.
    glued: u8,
    /// The text ended inside a comment.
    open_comment: bool,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `sql`.
    pub fn new(sql: &'a [u8], reading: Reading) -> Self {
        let (at, executable, in_hint, open_comment) = (0, 0, false, false);
        Lexer { sql, at, reading, executable, in_hint, before: None, glued: 0, open_comment }
    }

    /// Whether the text ended inside a comment; known when the tokens are used up.
    pub fn ended_in_comment(&self) -> bool {
        self.open_comment || self.executable > 0 || self.in_hint
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    #[inline]
    fn class(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).map_or(0, |byte| CLASS[*byte as usize])
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.sql.get(self.at..).unwrap_or_default()
    }

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
    fn skip(&mut self) -> Option<Lexeme> {
        while self.at < self.sql.len() {
            if self.class(0) & BLANK != 0 {
                self.at += 1;
                continue;
            }
            match (self.peek(0), self.peek(1)) {
                (b'#', _) => self.line(),
                (b'-', b'-') if self.at + 2 >= self.sql.len() || self.peek(2) <= b' ' => {
                    self.line();
                }
                (b'/', b'*') => {
                    if let Some(lexeme) = self.comment() {
                        return Some(lexeme);
                    }
                }
                (b'*', b'/') if self.in_hint => {
                    self.at += 2;
                    self.in_hint = false;
                    return Some(Lexeme::HintClose);
                }
                (b'*', b'/') if self.executable > 0 => {
                    self.at += 2;
                    self.executable -= 1;
                }
                _ => break,
            }
        }
        None
    }

    fn line(&mut self) {
        self.at += memchr::memchr(b'\n', self.rest()).map_or(self.rest().len(), |end| end + 1);
    }

    fn comment(&mut self) -> Option<Lexeme> {
        const REPEATED: &[u8] = b"/* , ... */";
        let mark = match self.peek(2) {
            b'!' => 3,
            b'M' if self.peek(3) == b'!' => 4,
            b'+' if self.reading.hints && self.after_hintable() => {
                self.at += 3;
                self.in_hint = true;
                return Some(Lexeme::HintOpen);
            }
            _ => 0,
        };
        if mark == 0 {
            let repeated = self.rest().starts_with(REPEATED);
            self.at += 2;
            self.open_comment |= !self.skip_past(b"*/");
            return repeated.then_some(Lexeme::Repeated);
        }
        self.at += mark;
        let digits = (0..6).take_while(|n| self.class(*n) & DIGIT != 0).count();
        let digits = if digits >= 5 { digits } else { 0 };
        let version = (0..digits).fold(0, |sum, n| sum * 10 + u32::from(self.peek(n) - b'0'));
        if self.runs(mark == 4, version) {
            self.at += digits;
            self.executable += 1;
        } else {
            self.open_comment |= !self.skip_past(b"*/");
        }
        None
    }

    fn runs(&self, only_mariadb: bool, version: u32) -> bool {
        let everything = self.reading.version == u32::MAX;
        let foreign = if self.reading.mariadb {
            !only_mariadb && (50_700..=99_999).contains(&version)
        } else {
            only_mariadb
        };
        everything || (!foreign && version <= self.reading.version)
    }

    fn after_hintable(&self) -> bool {
        const HINTABLE: [&[u8]; 5] = [b"SELECT", b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"];
        self.before.is_some_and(|token| {
            let word = token.bytes(self.sql);
            token.lexeme == Lexeme::Word && HINTABLE.iter().any(|it| word.eq_ignore_ascii_case(it))
        })
    }

    #[inline]
    fn word_end(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len())
    }

    #[inline]
    fn digits_end(&self, from: usize, fits: fn(&u8) -> bool) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !fits(byte)).unwrap_or(rest.len())
    }

    /// The end of a string or a quoted identifier whose quote stands at `from`.
    #[inline]
    fn quoted_end(&self, from: usize, quote: u8, escapes: bool) -> (usize, bool) {
        let mut at = from + 1;
        while let Some(rest) = self.sql.get(at..) {
            let found = if escapes {
                memchr::memchr2(quote, b'\\', rest)
            } else {
                memchr::memchr(quote, rest)
            };
            let Some(found) = found else { break };
            at += found;
            if self.sql.get(at) == Some(&b'\\') || self.sql.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return (at + 1, false);
            }
        }
        (self.sql.len(), true)
    }

    /// `x'…'` and `b'…'` hold digits only; anything else is a word and a string.
    fn radix_end(&self, fits: fn(&u8) -> bool) -> Option<(usize, bool)> {
        let end = self.digits_end(self.at + 2, fits);
        match self.sql.get(end) {
            Some(b'\'') => Some((end + 1, false)),
            Some(_) => None,
            None => Some((end, true)),
        }
    }

    #[inline]
    fn is_after(&self, symbol: u8) -> bool {
        self.glued == symbol
    }

    #[inline]
    fn scan(&mut self) -> (Lexeme, usize, bool) {
        let byte = self.peek(0);
        if self.is_after(b'@') && (self.class(0) & WORD != 0 || byte == b'.') && !self.in_hint {
            return self.behind_at();
        }
        match byte {
            b'\'' | b'"' => {
                let (end, open) = self.quoted_end(self.at, byte, true);
                (Lexeme::Text, end, open)
            }
            b'`' => {
                let (end, open) = self.quoted_end(self.at, byte, false);
                (Lexeme::Quoted, end, open)
            }
            b'n' | b'N' if self.peek(1) == b'\'' => {
                let (end, open) = self.quoted_end(self.at + 1, b'\'', true);
                (Lexeme::Text, end, open)
            }
            b'x' | b'X' if self.peek(1) == b'\'' => {
                let end = self.radix_end(u8::is_ascii_hexdigit);
                end.map_or_else(|| self.word(), |(end, open)| (Lexeme::Hex, end, open))
            }
            b'b' | b'B' if self.peek(1) == b'\'' => {
                let end = self.radix_end(|byte| matches!(byte, b'0' | b'1'));
                end.map_or_else(|| self.word(), |(end, open)| (Lexeme::Bits, end, open))
            }
            b'?' => (Lexeme::Parameter, self.at + 1, false),
            b'.' if self.rest().starts_with(b"...") => (Lexeme::Ellipsis, self.at + 3, false),
            b'.' if self.class(1) & DIGIT != 0 && !self.glued_to_name() => self.fraction(self.at),
            _ if self.is_after(b'.') && self.class(0) & WORD != 0 => {
                (Lexeme::Name, self.word_end(self.at), false)
            }
            b'0'..=b'9' => self.number(),
            _ if self.class(0) & WORD != 0 => self.word(),
            _ => (Lexeme::Symbol, self.at + self.symbol_len(), false),
        }
    }

    /// Behind one `@` stands a host or a user variable, behind two a system variable.
    fn behind_at(&self) -> (Lexeme, usize, bool) {
        let twice = self.at >= 2 && self.sql.get(self.at - 2) == Some(&b'@');
        if twice && self.class(0) & WORD != 0 {
            return (Lexeme::Word, self.word_end(self.at), false);
        }
        let end = self.digits_end(self.at, |byte| is_word(*byte) || *byte == b'.');
        (Lexeme::Host, end, false)
    }

    #[inline]
    fn glued_to_name(&self) -> bool {
        self.before.is_some_and(|token| {
            let name = matches!(token.lexeme, Lexeme::Word | Lexeme::Name | Lexeme::Quoted);
            name && token.end == self.at
        })
    }

    #[inline]
    fn word(&self) -> (Lexeme, usize, bool) {
        let end = self.word_end(self.at);
        let dotted = self.sql.get(end) == Some(&b'.')
            && self.sql.get(end + 1).is_some_and(|byte| is_word(*byte));
        (if dotted { Lexeme::Name } else { Lexeme::Word }, end, false)
    }

    #[inline]
    fn number(&self) -> (Lexeme, usize, bool) {
        let word = self.word_end(self.at);
        let digits = self.digits_end(self.at, u8::is_ascii_digit);
        let radix: Option<fn(&u8) -> bool> = match (self.peek(0), self.peek(1)) {
            (b'0', b'x') => Some(u8::is_ascii_hexdigit),
            (b'0', b'b') => Some(|byte| matches!(byte, b'0' | b'1')),
            _ => None,
        };
        if let Some(fits) = radix {
            let end = self.digits_end(self.at + 2, fits);
            let whole = end == word && end > self.at + 2;
            return if whole { (Lexeme::Number, end, false) } else { self.word() };
        }
        if self.sql.get(digits) == Some(&b'.') {
            return self.fraction(digits);
        }
        if digits == word {
            return (Lexeme::Integer, digits, false);
        }
        match self.exponent_end(digits) {
            Some(end) => (Lexeme::Number, end, false),
            None => self.word(),
        }
    }

    fn fraction(&self, point: usize) -> (Lexeme, usize, bool) {
        let digits = self.digits_end(point + 1, u8::is_ascii_digit);
        (Lexeme::Number, self.exponent_end(digits).unwrap_or(digits), false)
    }

    fn exponent_end(&self, from: usize) -> Option<usize> {
        let sign = match self.sql.get(from..)? {
            [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => 1,
            [b'e' | b'E', b'0'..=b'9', ..] => 0,
            _ => return None,
        };
        Some(self.digits_end(from + 1 + sign, u8::is_ascii_digit))
    }

    #[inline]
    fn symbol_len(&self) -> usize {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'<', b'=', b'>') => 3,
            (b'-', b'>', b'>') if !self.reading.mariadb => 3,
            (b'-', b'>', _) if !self.reading.mariadb => 2,
            (b'<', b'=' | b'>' | b'<', _) | (b'>', b'=' | b'>', _) => 2,
            (b'!' | b':', b'=', _) | (b'&', b'&', _) | (b'|', b'|', _) => 2,
            _ => 1,
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let begin = self.at;
        let special = self.skip();
        if self.at != begin {
            self.glued = 0;
        }
        if special.is_none() && self.at >= self.sql.len() {
            return None;
        }
        let (lexeme, start, end, open) = match special {
            Some(lexeme) => (lexeme, begin, self.at, false),
            None => {
                let (lexeme, end, open) = self.scan();
                (lexeme, self.at, end, open)
            }
        };
        let token = Token { lexeme, start, end, open };
        let alone = lexeme == Lexeme::Symbol && end == start + 1;
        self.glued = if alone { self.sql.get(start).copied().unwrap_or(0) } else { 0 };
        self.at = end;
        self.before = Some(token);
        Some(token)
    }
}
