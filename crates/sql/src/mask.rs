//! Removes passwords from statements before anything is printed or kept.
//!
//! If a statement has no word that goes with secrets (`marks`), it is returned unchanged. If it has
//! one, as a word or inside a string, waggle removes every string, numbers where a secret may be one, all
//! comments, and unquoted text where a password belongs. Account names and names in backticks stay. In doubt waggle
//! masks: for example
//! `INSERT INTO t (password) VALUES ('x')`, and any text that is not a valid statement.

mod marks;

use std::borrow::Cow;

use crate::SessionSettings;
use crate::lexer::{Lexeme, Lexer, Reading, Token, is_word};
use marks::{Mark, mentions_secret, strongest_mark};

/// What stands for a name that holds a secret.
pub(crate) const HIDDEN: &str = "<secret>";
/// What stands for a secret.
const SECRET: &[u8] = b"'<secret>'";

/// Replaces every secret in `sql` by `'<secret>'`; borrows where there is none.
///
/// `settings` are those of the session, where they are known: they tell where strings end. What a
/// string could be under others is masked all the same, since settings can change unseen.
pub fn mask_secrets(sql: &[u8], settings: Option<SessionSettings>) -> Cow<'_, [u8]> {
    let settings = settings.unwrap_or_default();
    let suspicious = match strongest_mark(sql) {
        Mark::None => false,
        Mark::Nested => hides_secret(sql, settings),
        Mark::Account | Mark::Secret => true,
    };
    if suspicious {
        Cow::Owned(mask(sql, Reading::EVERYTHING, settings, Trust::Doubted).text)
    } else {
        Cow::Borrowed(sql)
    }
}

/// Whether the strings of a text, joined and without escapes, mention a secret: the server joins
/// `'IDENT' 'IFIED'` and reads `\I` as `I`. Where strings begin and end may be in doubt, so the whole
/// text without quotes and blanks must not mention one either.
fn hides_secret(sql: &[u8], settings: SessionSettings) -> bool {
    let is_mark = |byte: &&u8| matches!(byte, b'\\' | b'\'' | b'"');
    let mut joined = Vec::new();
    let lexer = Lexer::with_settings(sql, Reading::EVERYTHING, settings);
    for token in lexer.filter(|it| it.lexeme == Lexeme::Text) {
        joined.extend(token.bytes(sql).iter().filter(|byte| !is_mark(byte)));
    }
    let glued = sql.iter().filter(|byte| !is_mark(byte) && !byte.is_ascii_whitespace());
    mentions_secret(&joined) || mentions_secret(&glued.copied().collect::<Vec<u8>>())
}

/// What stood before a token, as far as it decides about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Anywhere,
    /// Behind a word or mark that an account name follows.
    Account,
    /// Behind the `@` of an account.
    Host,
    /// Behind `BY`, `AS`, `USING`, `=`: a secret may follow even unquoted.
    Secret,
    /// Behind `(` or `,`: an argument.
    Argument,
}

/// What is known where the walk stands.
#[derive(Clone, Copy, Debug)]
struct Walk {
    place: Place,
    depth: u32,
    /// The last name mentions a secret: `MASTER_PASSWORD =`.
    secret_name: bool,
    /// The statement is about accounts.
    accounts: bool,
    trust: Trust,
}

/// Whether strings end where the lexer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// The settings of the session are known.
    Certain,
    /// They may have been others.
    Doubted,
}

/// A text without its secrets.
struct Masked {
    text: Vec<u8>,
    /// Something unquoted was masked.
    bare: bool,
    /// Quotes do not pair: a lexer would see a part of a secret as a name.
    broken: bool,
    /// A string ends elsewhere under another `sql_mode`.
    ambiguous: bool,
}

fn mask(sql: &[u8], reading: Reading, settings: SessionSettings, trust: Trust) -> Masked {
    let text = Vec::with_capacity(sql.len());
    let mut out = Masked { text, bare: false, broken: false, ambiguous: false };
    let mut lexer = Lexer::with_settings(sql, reading, settings).peekable();
    let accounts = strongest_mark(sql) == Mark::Account;
    let mut walk = Walk { place: Place::Anywhere, depth: 0, secret_name: false, accounts, trust };
    let (mut end, mut sure, mut in_bare) = (0, None, false);
    while let Some(token) = lexer.next() {
        let gap = sql.get(end..token.start).unwrap_or_default();
        let plain = gap.iter().all(u8::is_ascii_whitespace);
        // Two minus signs before a comment: a blank in its place would make a comment of the rest.
        if !out.text.ends_with(b"--") {
            out.text.extend_from_slice(if plain { gap } else { b" " });
        }
        end = token.end;
        let bytes = token.bytes(sql);
        let following = lexer.peek().map(|next| next.bytes(sql));
        // Without quotes a secret goes on to a blank: `password=a.b`.
        in_bare &= gap.is_empty() && !matches!(bytes, b"," | b";" | b"(" | b")");
        if in_bare || walk.is_secret(&token, sql, following) {
            if !out.text.ends_with(SECRET) {
                out.text.extend_from_slice(SECRET);
            }
            let quoted = matches!(token.lexeme, Lexeme::Text | Lexeme::Hex | Lexeme::Bits);
            let number = matches!(token.lexeme, Lexeme::Integer | Lexeme::Number);
            // A letter right after a string: the quotes before it do not pair.
            let glued = quoted && is_glued(sql.get(end..).unwrap_or_default());
            out.bare |= !(quoted || number);
            in_bare |= matches!(token.lexeme, Lexeme::Word | Lexeme::Name);
            let is_statement = token.lexeme == Lexeme::Quoted && holds_statement(bytes);
            out.broken |= token.open || glued || is_statement;
            out.ambiguous |= walk.is_in_doubt() && is_ambiguous(&token, bytes);
            if glued || out.ambiguous {
                // It is not sure where later strings begin and end: nothing of them is shown.
                sure = sure.or(Some(out.text.len()));
            }
        } else if token.lexeme != Lexeme::Repeated {
            in_bare = false;
            out.text.extend_from_slice(bytes);
        }
        walk.step(&token, bytes);
    }
    out.text.truncate(sure.unwrap_or(out.text.len()));
    out
}

/// The masked text, where the digest of the text itself could show a secret as a name: it stands
/// unquoted, or its quotes do not pair. `accounts` tells that the statement manages users,
/// `data` that a word after `password =` is a column; `settings` are those of the session where
/// they are known.
pub(crate) fn masked_for_digest(
    sql: &[u8],
    reading: Reading,
    settings: Option<SessionSettings>,
    accounts: bool,
    data: bool,
) -> Option<Vec<u8>> {
    if strongest_mark(sql) < Mark::Secret {
        return None;
    }
    let trust = if settings.is_some() { Trust::Certain } else { Trust::Doubted };
    let masked = mask(sql, reading, settings.unwrap_or_default(), trust);
    // In a query the word after `password =` is a column, and part of the digest.
    let needed = masked.broken || (masked.bare && !data) || (masked.ambiguous && accounts);
    needed.then_some(masked.text)
}

impl Walk {
    fn is_in_doubt(&self) -> bool {
        self.trust == Trust::Doubted
    }

    fn is_secret(&self, token: &Token, sql: &[u8], following: Option<&[u8]>) -> bool {
        let bytes = token.bytes(sql);
        match token.lexeme {
            Lexeme::Text => {
                let named = following
                    .is_some_and(|next| next == b"@" || next.eq_ignore_ascii_case(b"IDENTIFIED"));
                let account = self.place == Place::Account && self.depth == 0 && named;
                let kept = (account || self.place == Place::Host) && !token.open;
                !kept
                    || mentions_secret(bytes)
                    || (self.is_in_doubt() && is_ambiguous(token, bytes))
            }
            Lexeme::Hex | Lexeme::Bits => true,
            Lexeme::Number | Lexeme::Integer => {
                bytes.get(1).is_some_and(u8::is_ascii_alphabetic)
                    || self.place == Place::Argument
                    || (self.place == Place::Secret && self.accounts)
                    || self.secret_name
            }
            Lexeme::Quoted if token.open || holds_statement(bytes) => true,
            Lexeme::Quoted if self.is_in_doubt() && may_be_none(token, sql) => true,
            Lexeme::Word | Lexeme::Name | Lexeme::Quoted => {
                let introducer = bytes.starts_with(b"_");
                let called = token.lexeme == Lexeme::Word
                    && following.is_some_and(|next| match next {
                        [b'('] => true,
                        [b'\'' | b'"', ..] => introducer,
                        _ => false,
                    });
                let is_column = bytes.starts_with(b"`");
                let expected = self.accounts || (self.secret_name && !is_column);
                self.place == Place::Secret && expected && !called && !is_clause(bytes)
            }
            _ => false,
        }
    }

    fn step(&mut self, token: &Token, bytes: &[u8]) {
        self.place = self.place_behind(token, bytes);
        match bytes {
            b"(" => self.depth += 1,
            b")" => self.depth = self.depth.saturating_sub(1),
            b"=" | b":=" | b"." | b"@" => return,
            _ => {}
        }
        let name =
            matches!(token.lexeme, Lexeme::Word | Lexeme::Name | Lexeme::Quoted | Lexeme::Host);
        self.secret_name = name && mentions_secret(bytes);
    }

    fn place_behind(&self, token: &Token, bytes: &[u8]) -> Place {
        const SECRETS: [&[u8]; 3] = [b"BY", b"AS", b"USING"];
        const ACCOUNTS: [&[u8]; 5] = [b"USER", b"EXISTS", b"FOR", b"TO", b"FROM"];
        let is_one = |words: &[&[u8]]| words.iter().any(|it| bytes.eq_ignore_ascii_case(it));
        match token.lexeme {
            Lexeme::Word if is_one(&SECRETS) => Place::Secret,
            Lexeme::Word if is_one(&ACCOUNTS) => Place::Account,
            Lexeme::Symbol => match bytes {
                b"=" | b":=" => Place::Secret,
                b"," if self.depth == 0 => Place::Account,
                b"(" | b"," => Place::Argument,
                b"@" if self.place != Place::Secret => Place::Host,
                b"." | b"-" | b"+" => self.place,
                _ => Place::Anywhere,
            },
            _ => Place::Anywhere,
        }
    }
}

/// Whether a token may end elsewhere under other settings: such a string, or such a name.
pub(crate) fn ends_elsewhere(token: &Token, sql: &[u8]) -> bool {
    is_ambiguous(token, token.bytes(sql)) || holds_quote_in_doubt(token, sql)
}

/// Whether a name holds the quote of a string where a backtick may be a part of a character, so that
/// the name may have begun, or may end, elsewhere: no such text is valid UTF-8.
fn holds_quote_in_doubt(token: &Token, sql: &[u8]) -> bool {
    token.lexeme == Lexeme::Quoted
        && holds_quote(token.bytes(sql))
        && std::str::from_utf8(sql.get(..token.end).unwrap_or_default()).is_err()
}

/// Whether a name in quotes holds the quote of a string between its own.
fn holds_quote(name: &[u8]) -> bool {
    let inside = match name {
        [first, inside @ .., last] if first == last => inside,
        [_, inside @ ..] => inside,
        [] => &[],
    };
    memchr::memchr2(b'\'', b'"', inside).is_some()
}

/// Whether a name is a statement with a secret: one that was meant as a string, under `ANSI_QUOTES`, or where quotes do
/// not pair.
fn holds_statement(name: &[u8]) -> bool {
    holds_quote(name) && mentions_secret(name)
}

/// Whether a name in quotes, of whichever kind, holds a secret of the statement that it was meant to stand in.
pub(crate) fn hides_secret_in_name(name: &[u8]) -> bool {
    let is_open = name.len() < 2 || name.first() != name.last();
    (is_open || holds_quote(name)) && mentions_secret(name)
}

/// Whether what looks like a name in quotes may be a string, or hold one: one in double quotes is,
/// under another mode; in a broken statement the quotes may not pair.
fn may_be_none(token: &Token, sql: &[u8]) -> bool {
    let name = token.bytes(sql);
    name.starts_with(b"\"") || holds_quote_in_doubt(token, sql)
}

/// A string whose end depends on `sql_mode`.
fn is_ambiguous(token: &Token, bytes: &[u8]) -> bool {
    token.lexeme == Lexeme::Text
        && bytes.windows(2).any(|pair| matches!(pair, [b'\\', b'\'' | b'"']))
}

/// Whether what follows a string directly is a word that nobody writes there.
fn is_glued(rest: &[u8]) -> bool {
    const USUAL: [&[u8]; 12] = [
        b"AND", b"OR", b"FROM", b"AS", b"WHERE", b"THEN", b"ELSE", b"END", b"WHEN", b"IN", b"IS",
        b"LIKE",
    ];
    let end = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default();
    !word.is_empty() && !USUAL.iter().any(|it| word.eq_ignore_ascii_case(it))
}

/// Words that stand where a password could but are none.
fn is_clause(word: &[u8]) -> bool {
    const CLAUSES: [&[u8]; 4] = [b"PASSWORD", b"RANDOM", b"DEFAULT", b"SELECT"];
    CLAUSES.iter().any(|it| word.eq_ignore_ascii_case(it))
}
