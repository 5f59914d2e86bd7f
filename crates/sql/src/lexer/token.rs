//! The lexer's tokens, and what it must know about a server.

/// What a token is. Its bytes are the span of the [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lexeme {
    /// An unquoted word: a keyword or an identifier.
    Word,
    /// An unquoted word that is an identifier because of a `.` next to it.
    Name,
    /// An identifier in backticks, or in double quotes under `ANSI_QUOTES`.
    Quoted,
    /// A decimal integer.
    Integer,
    /// Any other number: with a point, an exponent, `0x…`, `0b…`.
    Number,
    /// A string in quotes, also `N'…'`, and from MySQL 9 on in dollars: `$$…$$`, `$tag$…$tag$`.
    Text,
    /// `x'…'`.
    Hex,
    /// `b'…'`.
    Bits,
    /// `?`.
    Parameter,
    /// What follows a single `@`: a host or the name of a user variable; it may be empty.
    Host,
    /// An operator or a punctuation mark. `=` and `<` swallow marks of comparison after them even
    /// where both are no operator: of `=!` the server sees `=` alone.
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
    /// Offset after its last byte.
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
    /// `/*+ … */` after SELECT, INSERT, REPLACE, UPDATE and DELETE is read.
    pub hints: bool,
}

impl Reading {
    /// Every executable comment is code. The search for secrets needs this.
    pub const EVERYTHING: Reading = Reading { version: u32::MAX, mariadb: false, hints: false };
}
