//! Passwords out of statements, before anything is printed or kept.
//!
//! A statement without any of the words that go with secrets is returned as it is. One with such a
//! word, as a word or inside a string, loses every string and most numbers, its comments, and what
//! stands unquoted where a password belongs; only account names stay. In doubt it is masked:
//! `INSERT INTO t (password) VALUES ('x')` is, and so is a text that is no valid statement.

use std::borrow::Cow;

use crate::SessionSettings;
use crate::lexer::Lexeme;
use crate::lexer::Lexer;
use crate::lexer::Reading;
use crate::lexer::Token;
use crate::lexer::is_word;

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

/// What a text mentions, the stronger the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    None,
    /// `PREPARE`, `EXECUTE IMMEDIATE`: a string that is a statement.
    Nested,
    /// A word that goes with secrets.
    Secret,
    /// `IDENTIFIED`, `REGISTRATION`: accounts, where a secret may stand unquoted.
    Account,
}

/// Letters that a mark has at a known place: most bytes of a usual statement are passed by one
/// look at this table.
static ANCHOR: [bool; 256] = anchors();

const fn anchors() -> [bool; 256] {
    let mut table = [false; 256];
    let letters = b"CcDdFfGgHhKkMmPpWwYy:";
    let mut at = 0;
    while at < letters.len() {
        table[letters[at] as usize] = true;
        at += 1;
    }
    table
}

fn strongest_mark(sql: &[u8]) -> Mark {
    let mut strongest = Mark::None;
    for (at, byte) in sql.iter().enumerate() {
        if ANCHOR[usize::from(*byte)] {
            strongest = strongest.max(mark_at(sql, at));
        }
    }
    strongest
}

fn mentions_secret(sql: &[u8]) -> bool {
    strongest_mark(sql) >= Mark::Secret
}

/// The mark whose anchor is the letter at `at`.
fn mark_at(sql: &[u8], at: usize) -> Mark {
    let around = |before: usize, mark: &[u8]| {
        at.checked_sub(before)
            .and_then(|from| sql.get(from..from + mark.len()))
            .is_some_and(|text| text.eq_ignore_ascii_case(mark))
    };
    let (mark, found) = match sql.get(at).map(u8::to_ascii_uppercase) {
        Some(b'C') => (Mark::Secret, around(2, b"SECRET")),
        Some(b'D') => {
            let code = around(4, b"ENCODE") || around(4, b"DECODE");
            (Mark::Secret, code || around(3, b"CREDENTIAL"))
        }
        Some(b'F') => (Mark::Account, around(6, b"IDENTIF")),
        Some(b'G') => (Mark::Account, around(2, b"REGISTRATION")),
        Some(b'H') => {
            let factor = around(1, b"CHALLENGE") || around(3, b"AUTH_STRING");
            (Mark::Secret, factor || around(5, b"PASSPH"))
        }
        Some(b'K') => (Mark::Secret, around(2, b"TOKEN")),
        Some(b'M') => (Mark::Nested, around(1, b"IMMEDIATE")),
        Some(b'P') => (Mark::Nested, around(0, b"PREPARE")),
        Some(b'W') => (Mark::Secret, around(4, b"PASSW") || around(1, b"PWD")),
        Some(b'Y') => (Mark::Secret, around(2, b"CRYPT")),
        Some(b':') => (Mark::Secret, around(0, b"://")),
        _ => (Mark::None, false),
    };
    if found { mark } else { Mark::None }
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
    let (mut end, mut sure) = (0, None);
    while let Some(token) = lexer.next() {
        let gap = sql.get(end..token.start).unwrap_or_default();
        let plain = gap.iter().all(u8::is_ascii_whitespace);
        out.text.extend_from_slice(if plain { gap } else { b" " });
        end = token.end;
        let bytes = token.bytes(sql);
        let following = lexer.peek().map(|next| next.bytes(sql));
        if walk.is_secret(&token, bytes, following) {
            if !out.text.ends_with(SECRET) {
                out.text.extend_from_slice(SECRET);
            }
            let quoted = matches!(token.lexeme, Lexeme::Text | Lexeme::Hex | Lexeme::Bits);
            let number = matches!(token.lexeme, Lexeme::Integer | Lexeme::Number);
            // A letter right behind a string: the quotes before it do not pair.
            let glued = quoted && is_glued(sql.get(end..).unwrap_or_default());
            out.bare |= !(quoted || number);
            out.broken |= token.open || glued;
            out.ambiguous |= walk.is_in_doubt() && is_ambiguous(&token, bytes);
            if glued || out.ambiguous {
                // Where the strings behind begin and end is not sure: nothing of them is shown.
                sure = sure.or(Some(out.text.len()));
            }
        } else if token.lexeme != Lexeme::Repeated {
            out.text.extend_from_slice(bytes);
        }
        walk.step(&token, bytes);
    }
    out.text.truncate(sure.unwrap_or(out.text.len()));
    out
}

/// The masked text, where the digest of the text itself could show a secret as a name: it stands
/// unquoted, or its quotes do not pair. `accounts` tells that the statement manages users,
/// `data` that a word behind `password =` is a column; `settings` are those of the session where
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
    // In a query the word behind `password =` is a column, and part of the digest.
    let needed = masked.broken || (masked.bare && !data) || (masked.ambiguous && accounts);
    needed.then_some(masked.text)
}

impl Walk {
    fn is_in_doubt(&self) -> bool {
        self.trust == Trust::Doubted
    }

    fn is_secret(&self, token: &Token, bytes: &[u8], following: Option<&[u8]>) -> bool {
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
                    || matches!(self.place, Place::Secret | Place::Argument)
                    || self.secret_name
            }
            Lexeme::Quoted if token.open => true,
            Lexeme::Quoted
                if self.is_in_doubt() && memchr::memchr2(b'\'', b'"', bytes).is_some() =>
            {
                true
            }
            Lexeme::Word | Lexeme::Name | Lexeme::Quoted => {
                let introducer = bytes.starts_with(b"_");
                let called = token.lexeme == Lexeme::Word
                    && following.is_some_and(|next| match next {
                        [b'('] => true,
                        [b'\'' | b'"', ..] => introducer,
                        _ => false,
                    });
                let expected = self.accounts || self.secret_name;
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

/// Whether a token may end elsewhere under other settings: such a string, or a quoted name that holds
/// the quote of a string.
pub(crate) fn ends_elsewhere(token: &Token, bytes: &[u8]) -> bool {
    let inside = bytes.get(1..).unwrap_or_default();
    is_ambiguous(token, bytes)
        || (token.lexeme == Lexeme::Quoted && memchr::memchr2(b'\'', b'"', inside).is_some())
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
