//! Statements that prepare and execute others by name (`PREPARE s FROM 'text'`).

use crate::lexer::{Lexeme, Lexer, Reading};
use crate::tables::plain;
use crate::{SessionSettings, SqlModes};

/// What a statement does with prepared statements of its session. Names are in lower case: their
/// case does not matter to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPrepared {
    /// `PREPARE name FROM …`.
    Prepare {
        /// The name.
        name: String,
        /// The text, where it stands in the statement; `None` if a variable holds it, or where
        /// the statement is cut inside of it.
        text: Option<Vec<u8>>,
    },
    /// `EXECUTE name`.
    Execute {
        /// The name.
        name: String,
    },
    /// `EXECUTE IMMEDIATE …` of MariaDB; `text` as above.
    Immediate {
        /// The text.
        text: Option<Vec<u8>>,
    },
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`.
    Deallocate {
        /// The name.
        name: String,
    },
}

impl SqlPrepared {
    /// Reads a statement under the settings of its session; `None` if it does none of this.
    pub fn of(sql: &[u8], settings: SessionSettings) -> Option<SqlPrepared> {
        let mut tokens = Lexer::with_settings(sql, Reading::EVERYTHING, settings);
        let mut word = || tokens.next().map(|token| token.bytes(sql));
        let is = |word: &[u8], other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        let name = |word: &[u8]| plain(word).to_lowercase();
        let first = word()?;
        if is(first, "PREPARE") {
            let name = name(word()?);
            let from = word()?;
            let text = if is(from, "FROM") { text(sql, tokens, settings) } else { None };
            return Some(SqlPrepared::Prepare { name, text });
        }
        let second = word()?;
        if is(first, "EXECUTE") {
            return Some(match is(second, "IMMEDIATE") {
                true => SqlPrepared::Immediate { text: text(sql, tokens, settings) },
                false => SqlPrepared::Execute { name: name(second) },
            });
        }
        let frees = (is(first, "DEALLOCATE") || is(first, "DROP")) && is(second, "PREPARE");
        frees.then_some(SqlPrepared::Deallocate { name: name(word()?) })
    }
}

/// The strings that follow, joined as the server joins them.
fn text(sql: &[u8], tokens: Lexer<'_>, settings: SessionSettings) -> Option<Vec<u8>> {
    let mut text = None;
    for token in tokens {
        match token.lexeme {
            Lexeme::Text if !token.open => {
                unescape(token.bytes(sql), settings, text.get_or_insert_with(Vec::new));
            }
            Lexeme::Symbol if token.bytes(sql) == b";" => break,
            // `CONCAT(…)`, a variable, the values after `USING`, a string without its end.
            _ => return None,
        }
    }
    text
}

/// The content of a string in quotes ("String Literals" of the MySQL manual).
fn unescape(string: &[u8], settings: SessionSettings, out: &mut Vec<u8>) {
    let quoted = string.strip_prefix(b"N").or(string.strip_prefix(b"n")).unwrap_or(string);
    let [quote, inside @ .., _] = quoted else { return };
    let escapes = !settings.modes.contains(SqlModes::NO_BACKSLASH_ESCAPES);
    let mut bytes = inside.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == *quote {
            bytes.next_if_eq(quote);
        }
        if byte != b'\\' || !escapes {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.push(0),
            Some(b'b') => out.push(8),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'Z') => out.push(26),
            // They stay escaped, for patterns.
            Some(wildcard @ (b'%' | b'_')) => out.extend([b'\\', wildcard]),
            Some(other) => out.push(other),
            None => {}
        }
    }
}
