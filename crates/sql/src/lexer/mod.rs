//! A lexer for the SQL of MySQL and MariaDB. Any bytes give tokens, in linear time.
//!
//! It does what the servers' lexers do (`lex_one_token` in `sql/sql_lex.cc`) under the settings of
//! the session. It skips comments and blanks. The inside of an executable comment (`/*! … */`) is
//! code if the server would run it.

mod comment;
mod literal;
mod token;

use crate::charset::{BLANK, COMPARISON, CONTROL, DIGIT, LETTER, MARK, Shape, WORD};
use crate::{Charset, SessionSettings, SqlModes};
pub use token::{Lexeme, Reading, Token};

/// Whether a byte may stand in an unquoted identifier, in `utf8mb4`.
#[inline]
pub(crate) fn is_word(byte: u8) -> bool {
    Charset::UTF8MB4.classes()[usize::from(byte)] & WORD != 0
}

/// What the lexer has to expect of the next token, from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Right after a `.` that follows a name or is followed by one: no keyword.
    Name,
    /// Right after a name that a `.` follows: the `.` is no decimal point.
    Separator,
    /// Right after `@`.
    Host,
    /// Between the two of `@@`.
    SystemVariable,
    /// Right after `@@`.
    VariableName,
}

/// The tokens of a text, one by one.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    reading: Reading,
    modes: SqlModes,
    shape: Shape,
    /// [`Shape::hides_ascii`].
    hides_ascii: bool,
    classes: &'static [u8; 256],
    state: State,
    /// Inside an executable comment.
    executable: bool,
    in_hint: bool,
    /// What the token before is and where it begins; it ends where the next one is looked for.
    before: (Lexeme, usize),
    /// The text ended inside a comment.
    open_comment: bool,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `sql`, for a session with the default settings.
    pub fn new(sql: &'a [u8], reading: Reading) -> Self {
        Lexer::with_settings(sql, reading, SessionSettings::default())
    }

    /// A lexer at the beginning of `sql`, for a session with these settings.
    pub fn with_settings(sql: &'a [u8], reading: Reading, settings: SessionSettings) -> Self {
        Lexer {
            sql,
            at: 0,
            reading,
            modes: settings.modes,
            shape: settings.charset.shape(),
            hides_ascii: settings.charset.shape().hides_ascii(),
            classes: settings.charset.classes(),
            state: State::Start,
            executable: false,
            in_hint: false,
            before: (Lexeme::Symbol, 0),
            open_comment: false,
        }
    }

    /// Whether the text ended inside a comment; known when the tokens are used up.
    pub fn ended_in_comment(&self) -> bool {
        self.open_comment || self.executable || self.in_hint
    }

    /// Whether a parenthesis follows the last token, so that the name of a function is one: at once,
    /// or after blanks under `IGNORE_SPACE`.
    pub(crate) fn is_called(&self) -> bool {
        let mut end = self.at;
        if self.modes.contains(SqlModes::IGNORE_SPACE) {
            let rest = self.sql.get(end..).unwrap_or_default();
            end += rest.iter().take_while(|byte| self.class_of(**byte) & BLANK != 0).count();
        }
        self.sql.get(end) == Some(&b'(')
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    #[inline]
    fn class_of(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    #[inline]
    fn class(&self, ahead: usize) -> u8 {
        self.class_at(self.at + ahead)
    }

    /// The class of the byte that stands there, 0 after the end.
    #[inline]
    fn class_at(&self, at: usize) -> u8 {
        self.sql.get(at).map_or(0, |byte| self.class_of(*byte))
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.sql.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn begins_word(&self, at: usize) -> bool {
        self.sql.get(at).is_some_and(|byte| self.class_of(*byte) & WORD != 0)
    }

    /// The end of the word that goes on at `from`.
    #[inline]
    fn word_end(&self, from: usize) -> usize {
        if self.hides_ascii {
            return self.word_end_by_character(from);
        }
        let classes = self.classes;
        let ends = |byte: &u8| classes[usize::from(*byte)] & WORD == 0;
        let Some(rest) = self.sql.get(from..) else { return from };
        // The loop over the first bytes is unrolled.
        let first: Option<&[u8; 8]> = rest.first_chunk();
        let length = match first.and_then(|first| first.iter().position(ends)) {
            Some(length) => length,
            None => rest.iter().position(ends).unwrap_or(rest.len()),
        };
        from + length
    }

    #[inline(never)]
    fn word_end_by_character(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        let mut length = 0;
        while let Some(text) = rest.get(length..)
            && let Some(byte) = text.first()
            && self.class_of(*byte) & WORD != 0
        {
            length += self.shape.length(text).max(1);
        }
        from + length
    }

    #[inline]
    fn digits_end(&self, from: usize, fits: fn(&u8) -> bool) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !fits(byte)).unwrap_or(rest.len())
    }

    /// The next token, and what to expect after it.
    #[inline]
    fn scan(&mut self) -> (Lexeme, usize, bool, State) {
        let begin = |(lexeme, end, open)| (lexeme, end, open, State::Start);
        let byte = self.peek(0);
        match byte {
            b'\'' | b'"'
                if self.in_hint && self.is_text_quote(byte) && !self.has_hint_strings() =>
            {
                (Lexeme::Symbol, self.at + 1, false, State::Start)
            }
            b'\'' | b'"' if self.is_text_quote(byte) => begin(self.text(self.at, byte)),
            b'`' | b'"' => begin(self.quoted_name(byte)),
            b'n' | b'N' if self.peek(1) == b'\'' => begin(self.text(self.at + 1, b'\'')),
            b'x' | b'X' if self.peek(1) == b'\'' => match self.radix_end(u8::is_ascii_hexdigit) {
                Some((end, open)) => (Lexeme::Hex, end, open, State::Start),
                None => self.word(),
            },
            b'b' | b'B' if self.peek(1) == b'\'' => {
                match self.radix_end(|byte| matches!(byte, b'0' | b'1')) {
                    Some((end, open)) => (Lexeme::Bits, end, open, State::Start),
                    None => self.word(),
                }
            }
            b'?' => (Lexeme::Parameter, self.at + 1, false, State::Start),
            b'.' if self.rest().starts_with(b"...") => {
                (Lexeme::Ellipsis, self.at + 3, false, State::Start)
            }
            b'.' if self.class(1) & DIGIT != 0 && self.has_fractions() => {
                begin(self.fraction(self.at))
            }
            b'.' => self.separator(),
            b'@' => self.at_sign(),
            b'0'..=b'9' => self.number(),
            b'$' => self.dollar(),
            b'\\' if self.peek(1) == b'N' && self.reads_null() => {
                (Lexeme::Word, self.at + 2, false, State::Start)
            }
            _ if self.class(0) & WORD != 0 => self.word(),
            _ => (Lexeme::Symbol, self.at + self.symbol_len(), false, State::Start),
        }
    }

    /// Whether a quote begins a string, and not a name.
    #[inline]
    fn is_text_quote(&self, quote: u8) -> bool {
        quote == b'\'' || !self.modes.contains(SqlModes::ANSI_QUOTES)
    }

    /// 5.7 and MariaDB know `\N` for NULL.
    fn reads_null(&self) -> bool {
        self.reading.mariadb || self.reading.version < 80_000
    }

    /// A `.` that is no decimal point.
    fn separator(&self) -> (Lexeme, usize, bool, State) {
        let name = !self.in_hint && self.begins_word(self.at + 1);
        (Lexeme::Symbol, self.at + 1, false, if name { State::Name } else { State::Start })
    }

    /// After one `@` stands a host or a user variable, after two a system variable.
    fn at_sign(&self) -> (Lexeme, usize, bool, State) {
        let state = match self.peek(1) {
            b'\'' | b'"' | b'`' => State::Start,
            _ if self.in_hint => State::Start,
            b'@' => State::SystemVariable,
            _ => State::Host,
        };
        (Lexeme::Symbol, self.at + 1, false, state)
    }

    /// The token that the state asks for, where it does.
    #[inline]
    fn scan_in(&mut self, state: State) -> Option<(Lexeme, usize, bool, State)> {
        if state == State::Start { None } else { self.scan_by_state(state) }
    }

    fn scan_by_state(&mut self, state: State) -> Option<(Lexeme, usize, bool, State)> {
        match state {
            State::Start => None,
            State::Separator => Some(self.separator()),
            State::Name => {
                let end = self.word_end(self.at);
                Some((Lexeme::Name, end, false, self.behind_name(end)))
            }
            State::Host => {
                let letters = |byte: &&u8| self.class_of(**byte) & WORD != 0 || **byte == b'.';
                let length = self.rest().iter().take_while(letters).count();
                Some((Lexeme::Host, self.at + length, false, State::Start))
            }
            State::SystemVariable => {
                let quoted = self.peek(1) == b'`';
                let state = if quoted { State::Start } else { State::VariableName };
                Some((Lexeme::Symbol, self.at + 1, false, state))
            }
            State::VariableName => {
                let end = self.word_end(self.at);
                let dotted = self.sql.get(end) == Some(&b'.');
                let state = if dotted { State::Separator } else { State::Start };
                (end > self.at).then_some((Lexeme::Word, end, false, state))
            }
        }
    }

    /// The state after a name that ends at `end`.
    #[inline]
    fn behind_name(&self, end: usize) -> State {
        let dotted = self.sql.get(end) == Some(&b'.') && self.begins_word(end + 1);
        if dotted { State::Separator } else { State::Start }
    }

    #[inline]
    fn word(&self) -> (Lexeme, usize, bool, State) {
        let byte = self.peek(0);
        if byte >= 0x80 && self.shape.is_lead(byte) && self.shape.length(self.rest()) == 0 {
            return (Lexeme::Symbol, self.at + 1, false, State::Start);
        }
        self.word_to(self.word_end(self.at))
    }

    #[inline]
    fn word_to(&self, end: usize) -> (Lexeme, usize, bool, State) {
        let state = self.behind_name(end);
        let lexeme = if state == State::Separator { Lexeme::Name } else { Lexeme::Word };
        (lexeme, end, false, state)
    }

    #[inline]
    fn symbol_len(&self) -> usize {
        let compares = |byte| matches!(byte, b'<' | b'>' | b'=' | b'!');
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'-', b'>', b'>') if !self.reading.mariadb => 3,
            (b'-', b'>', _) if !self.reading.mariadb => 2,
            (b'<', second, b'>' | b'=' | b'!') if compares(second) => 3,
            (b'<' | b'>' | b'=' | b'!', second, _) if compares(second) => 2,
            (b':', b'=', _) | (b'&', b'&', _) | (b'|', b'|', _) => 2,
            _ => 1,
        }
    }
}

impl Lexer<'_> {
    /// Most tokens are words, whole numbers and marks after another token or a blank: these need one
    /// look at the class of their first byte and of the one after them.
    #[inline]
    fn next_usual(&mut self) -> Option<Lexeme> {
        let mut at = self.at;
        let mut class = self.class_at(at);
        while class & BLANK != 0 {
            at += 1;
            class = self.class_at(at);
        }
        let (lexeme, end) = if class & LETTER != 0 {
            let end = self.word_end(at);
            match self.sql.get(end) {
                // `b'…'`, `n'…'`, `x'…'`.
                Some(b'\'') if end == at + 1 => return None,
                Some(b'.') if self.begins_word(end + 1) => {
                    self.state = State::Separator;
                    (Lexeme::Name, end)
                }
                _ => (Lexeme::Word, end),
            }
        } else if class & DIGIT != 0 {
            let end = self.digits_end(at, u8::is_ascii_digit);
            match self.sql.get(end) {
                Some(byte) if *byte == b'.' || self.class_of(*byte) & WORD != 0 => return None,
                _ => (Lexeme::Integer, end),
            }
        } else if class & MARK != 0
            || class & COMPARISON != 0 && self.class_at(at + 1) & COMPARISON == 0
        {
            (Lexeme::Symbol, at + 1)
        } else {
            return None;
        };
        self.at = end;
        self.before = (lexeme, at);
        Some(lexeme)
    }

    /// Any token; whether the text ended before it did.
    #[inline(never)]
    fn next_unusual(&mut self) -> Option<(Lexeme, bool)> {
        let begin = self.at;
        let state = std::mem::replace(&mut self.state, State::Start);
        let (lexeme, start, end, open, state) = match self.scan_in(state) {
            Some((lexeme, end, open, state)) => (lexeme, begin, end, open, state),
            None => match self.skip() {
                Some(lexeme) => (lexeme, begin, self.at, false, State::Start),
                None if self.at >= self.sql.len() => return None,
                None => {
                    let (lexeme, end, open, state) = self.scan();
                    // A number may begin after what the server drops of it.
                    (lexeme, self.at, end, open, state)
                }
            },
        };
        self.state = state;
        self.at = end;
        self.before = (lexeme, start);
        Some((lexeme, open))
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let mut usual = None;
        if self.state == State::Start {
            if self.at >= self.sql.len() {
                return None;
            }
            usual = self.next_usual();
        }
        let (lexeme, open) = match usual {
            Some(lexeme) => (lexeme, false),
            None => self.next_unusual()?,
        };
        Some(Token { lexeme, start: self.before.1, end: self.at, open })
    }
}
