//! Which digests and sessions are shown.

use regex_lite::{Regex, RegexBuilder};
use waggle_model::DigestKey;
use waggle_sql::Kind;

use super::frame::{Details, Row};
use super::session::Session;

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The words of `kind:`, and what they stand for.
const KINDS: [(&str, &[Kind]); 16] = [
    ("select", &[Kind::Select]),
    ("insert", &[Kind::Insert]),
    ("update", &[Kind::Update]),
    ("delete", &[Kind::Delete]),
    ("replace", &[Kind::Replace]),
    ("call", &[Kind::Call]),
    ("set", &[Kind::Set]),
    ("show", &[Kind::Show]),
    ("begin", &[Kind::Begin]),
    ("commit", &[Kind::Commit]),
    ("rollback", &[Kind::Rollback]),
    ("ddl", &[Kind::Ddl]),
    ("users", &[Kind::UserManagement]),
    ("prepare", &[Kind::Prepare, Kind::Execute]),
    ("load", &[Kind::Load]),
    ("other", &[Kind::Other]),
];

/// What `kind:write` stands for.
const WRITES: &[Kind] = &[Kind::Insert, Kind::Update, Kind::Delete, Kind::Replace, Kind::Load];

/// The word for a kind.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    KINDS.iter().find(|(_, kinds)| kinds.contains(&kind)).map_or("other", |(name, _)| name)
}

/// Terms that must all hold. Without any, everything is shown.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    terms: Vec<Term>,
    /// As it was typed.
    typed: String,
}

#[derive(Debug)]
enum Term {
    Text(Pattern),
    Database(Pattern),
    User(Pattern),
    Kind(&'static [Kind]),
}

#[derive(Debug)]
enum Pattern {
    /// Anywhere, ASCII letters in either case.
    Part(String),
    Regex(Regex),
}

impl Filter {
    /// Reads what was typed: terms between blanks, a blank in `"…"` being part of a term. A term is
    /// a part of the text, or `db:`, `user:`, `kind:` and what is looked for there. `re:` before a
    /// pattern makes it a regular expression.
    ///
    /// # Errors
    ///
    /// What is wrong, as a sentence: no regular expression, no such kind, nothing after a colon.
    pub(crate) fn parse(typed: &str) -> Result<Filter, String> {
        let terms = words(typed).iter().map(|word| Term::parse(word)).collect::<Result<_, _>>()?;
        Ok(Filter { terms, typed: typed.trim().to_owned() })
    }

    /// As it was typed; empty where everything is shown.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// Whether a digest is shown. `details` are those of the digest, as far as they are known.
    pub(crate) fn passes<'a>(
        &self,
        row: &Row,
        details: impl Fn(&DigestKey) -> [Option<&'a Details>; 2],
    ) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Text(pattern) => pattern.holds(&row.name.text),
            Term::Database(pattern) => pattern.holds(row.name.schema.as_deref().unwrap_or("")),
            Term::User(pattern) => details(&row.key)
                .into_iter()
                .flatten()
                .flat_map(|details| details.users.keys())
                .any(|user| pattern.holds(&String::from_utf8_lossy(user))),
            Term::Kind(kinds) => kinds.contains(&row.name.kind),
        })
    }

    /// Whether a session is shown.
    pub(crate) fn passes_session(&self, session: &Session) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Text(pattern) => pattern.holds(&session.text) || pattern.holds(&session.state),
            Term::Database(pattern) => pattern.holds(&session.database),
            Term::User(pattern) => pattern.holds(&session.user),
            Term::Kind(kinds) => kinds.contains(&waggle_sql::kind(session.text.as_bytes())),
        })
    }
}

impl Term {
    fn parse(word: &str) -> Result<Term, String> {
        let (field, rest) = word.split_once(':').unwrap_or(("", word));
        match field {
            "db" => Ok(Term::Database(Pattern::parse(field, rest)?)),
            "user" => Ok(Term::User(Pattern::parse(field, rest)?)),
            "kind" => kinds(rest).map(Term::Kind),
            _ => Ok(Term::Text(Pattern::parse("text", word)?)),
        }
    }
}

fn kinds(name: &str) -> Result<&'static [Kind], String> {
    let name = name.to_ascii_lowercase();
    if name == "write" {
        return Ok(WRITES);
    }
    let found = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds);
    found.ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        format!("kind:{name}: no such kind; write {} or write", known.join(", "))
    })
}

impl Pattern {
    fn parse(field: &str, pattern: &str) -> Result<Pattern, String> {
        let Some(regex) = pattern.strip_prefix("re:") else {
            return match pattern {
                "" => Err(format!("{field}: nothing to look for")),
                part => Ok(Pattern::Part(part.to_owned())),
            };
        };
        RegexBuilder::new(regex)
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map(Pattern::Regex)
            .map_err(|error| format!("re:{regex}: {error}"))
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Pattern::Part(part) => {
                let mut places = text.as_bytes().windows(part.len());
                places.any(|place| place.eq_ignore_ascii_case(part.as_bytes()))
            }
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }
}

/// The words of a line; `"` keeps blanks together and is not part of a word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => words.push(String::new()),
            c => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
