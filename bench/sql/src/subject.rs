//! What is measured inside this process.

use std::hint::black_box;

use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use waggle_sql::{Dialect, Fingerprinter, Normaliser};

/// Works on one statement after the other.
pub enum Subject {
    /// Our digests as one server makes them.
    Digest(Box<Normaliser>, &'static str),
    /// Our fingerprints.
    Fingerprint(Box<Fingerprinter>),
    /// The syntax trees of the crate `sqlparser`.
    Parser(MySqlDialect),
}

impl Subject {
    /// Every subject.
    pub fn all() -> Vec<Subject> {
        let digest = |dialect, name| Subject::Digest(Box::new(Normaliser::new(dialect)), name);
        vec![
            digest(Dialect::Mysql9, "digest, MySQL 9"),
            digest(Dialect::Mariadb, "digest, MariaDB"),
            Subject::Fingerprint(Box::default()),
            Subject::Parser(MySqlDialect {}),
        ]
    }

    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Digest(_, name) => name,
            Subject::Fingerprint(_) => "fingerprint",
            Subject::Parser(_) => "sqlparser",
        }
    }

    /// Whether it is ours, so that it may not allocate.
    pub fn is_ours(&self) -> bool {
        !matches!(self, Subject::Parser(_))
    }

    /// Works on every statement; how many it could not read.
    pub fn work(&mut self, statements: &[String]) -> usize {
        let mut refused = 0;
        for statement in statements {
            let statement = black_box(statement.as_str());
            match self {
                Subject::Digest(normaliser, _) => {
                    let digest = normaliser.digest(statement.as_bytes());
                    black_box((digest.hash, digest.text().len()));
                }
                Subject::Fingerprint(fingerprinter) => {
                    black_box(fingerprinter.fingerprint(statement.as_bytes()).len());
                }
                Subject::Parser(dialect) => {
                    let parsed = black_box(Parser::parse_sql(dialect, statement));
                    refused += usize::from(parsed.is_err());
                }
            }
        }
        refused
    }
}
