//! What the digest remembers while it reads a statement.

use super::table::Keyword;
use crate::kind::{Classifier, Kind};
use crate::letters::Letters;
use crate::lexer::Lexer;

/// What is remembered along one statement.
#[derive(Default)]
pub(super) struct Context<'a> {
    pub(super) classifier: Classifier,
    pub(super) depth: u32,
    pub(super) in_hint: bool,
    /// The hint has something in it.
    pub(super) hinted: bool,
    /// A routine's body may follow, in which semicolons end nothing.
    pub(super) routine: bool,
    /// The depth of the outermost query that is open.
    pub(super) query: Option<u32>,
    /// The depth of the expression of a generated column that is open.
    pub(super) generated: Option<u32>,
    /// Inside a routine: a statement that makes or changes an object has begun.
    pub(super) inner_ddl: bool,
    /// Depths, as bits, at which a list of columns is open (`ORDER BY`, `GROUP BY`).
    pub(super) columns: u64,
    /// A number that is a whole element of such a list if nothing but its end follows.
    pub(super) number: Option<&'a [u8]>,
}

impl Context<'_> {
    /// Takes a word or a name for the kind of the statement.
    #[inline]
    pub(super) fn classify(&mut self, keyword: Option<&Keyword>, letters: Letters, length: usize) {
        match keyword {
            _ if self.classifier.is_done() => {}
            Some(keyword) if self.classifier.is_first() => self.classifier.begin(keyword.first),
            _ => self.classifier.word(letters, length, self.depth),
        }
    }

    /// Whether a `NULL` may be an attribute of a column here.
    pub(super) fn defines_columns(&self) -> bool {
        let ddl = self.classifier.kind() == Kind::Ddl && (!self.routine || self.inner_ddl);
        // Attributes stand in no inner parenthesis and in no query.
        ddl && self.query.is_none() && self.depth < 2
    }

    /// A semicolon ends a statement of a routine's body.
    pub(super) fn end_statement(&mut self) {
        (self.query, self.inner_ddl, self.columns) = (None, false, 0);
    }

    /// A list of columns at the present depth is over.
    #[inline]
    pub(super) fn end_columns(&mut self) {
        // Most statements have none.
        if self.columns != 0 {
            self.columns &= !self.level();
        }
    }

    /// The bit of the present depth; none below the 63rd parenthesis.
    pub(super) fn level(&self) -> u64 {
        1_u64.checked_shl(self.depth).unwrap_or_default()
    }
}

/// Whether `ON EMPTY` or `ON ERROR` follows where `lexer` stands, as after the `NULL` of
/// `JSON_VALUE`.
pub(super) fn is_before_empty(lexer: &Lexer<'_>, sql: &[u8]) -> bool {
    let mut ahead = lexer.clone();
    let mut next = || ahead.next().map(|token| token.bytes(sql)).unwrap_or_default();
    let (on, empty) = (next(), next());
    on.eq_ignore_ascii_case(b"ON")
        && (empty.eq_ignore_ascii_case(b"EMPTY") || empty.eq_ignore_ascii_case(b"ERROR"))
}
