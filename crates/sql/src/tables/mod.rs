//! The tables that a statement names.
//!
//! waggle works on tokens and needs no grammar. It takes the names after `FROM`, `JOIN`, `UPDATE`,
//! `INTO`, `TABLE` and so on, where the statement's verb gives these words that meaning. Common
//! table expressions, derived tables, table functions, `DUAL` and aliases are not tables. A view
//! looks like a table. The bodies of routines, triggers and events are not read, nor what a
//! procedure does.

mod verb;
mod walk;

use crate::SessionSettings;
use crate::lexer::Reading;
use crate::mask::{HIDDEN, hides_secret_in_name};

/// The most tables of one statement.
const TABLES_MAX: usize = 32;

/// A table as the statement names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The schema, where the statement gives one.
    pub schema: Option<String>,
    /// The table, without quotes.
    pub name: String,
}

/// The tables that a statement names, each once, in the order of their first mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// At most 32.
    pub names: Vec<TableName>,
    /// Some may be missing: there are more than 32, or parentheses are nested deeper than 64.
    pub truncated: bool,
}

impl Tables {
    /// The tables of a whole statement; `reading` tells which comments are code, `settings` are those
    /// of its session. Of several statements the first counts. Broken UTF-8 in names is replaced.
    pub fn of(sql: &[u8], reading: Reading, settings: SessionSettings) -> Self {
        walk::walk(sql, reading, settings, sql.len())
    }

    /// The tables of the beginning of a statement, as a capture limit left it. A name that ends with
    /// the text may be a part of one and is left out.
    pub fn of_beginning(sql: &[u8], reading: Reading, settings: SessionSettings) -> Self {
        walk::walk(sql, reading, settings, sql.len().saturating_sub(1))
    }

    fn add(&mut self, found: TableName) {
        if self.names.contains(&found) {
            return;
        }
        if self.names.len() < TABLES_MAX {
            self.names.push(found);
        } else {
            self.truncated = true;
        }
    }
}

/// An identifier without its quotes; one that holds a secret, because quotes do not pair, is hidden.
pub(crate) fn plain(identifier: &[u8]) -> String {
    let quote = match identifier {
        [quote @ (b'`' | b'"'), ..] => *quote,
        _ => return String::from_utf8_lossy(identifier).into_owned(),
    };
    if hides_secret_in_name(identifier) {
        return HIDDEN.to_owned();
    }
    let inside = identifier.get(1..).unwrap_or_default();
    let inside = inside.strip_suffix(&[quote]).unwrap_or(inside);
    let mut doubled = false;
    let bytes = inside.iter().copied().filter(|byte| {
        doubled = *byte == quote && !doubled;
        !doubled
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}
