//! The text of statements: tokens, digests, fingerprints, tables, kinds, layout, and what must not be
//! shown.
//!
//! A digest is the text that the server's own `STATEMENT_DIGEST_TEXT()` or
//! `events_statements_summary_by_digest` has, so that captured statements and Performance Schema
//! join. Nothing here does I/O; every function is total: any bytes give an answer.
#![forbid(unsafe_code)]

mod charset;
mod ddl;
mod digest;
mod fingerprint;
mod format;
mod kind;
mod letters;
mod lexer;
mod mask;
mod prepared;
mod redact;
mod session;
mod tables;

pub use charset::Charset;
pub use ddl::Ddl;
pub use ddl::DdlKind;
pub use ddl::Object;
pub use ddl::ObjectType;
pub use digest::Dialect;
pub use digest::Digest;
pub use digest::Normaliser;
pub use digest::stable_hash;
pub use fingerprint::Fingerprinter;
pub use fingerprint::QueryId;
pub use format::format;
pub use kind::Kind;
pub use kind::kind;
pub use lexer::Lexeme;
pub use lexer::Lexer;
pub use lexer::Reading;
pub use lexer::Token;
pub use mask::mask_secrets;
pub use prepared::SqlPrepared;
pub use redact::printable;
pub use redact::redact;
pub use session::SessionSettings;
pub use session::SqlModes;
pub use tables::TableName;
pub use tables::Tables;
