//! The text of statements: tokens, digests, fingerprints, tables, kinds, layout, and hiding
//! secrets.
//!
//! A digest is the text that the server's own `STATEMENT_DIGEST_TEXT()` or
//! `events_statements_summary_by_digest` has, so captured statements join with Performance Schema.
//! Nothing here does I/O, and every function accepts any bytes.
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
pub use ddl::{Ddl, DdlKind, Object, ObjectType};
pub use digest::{DIGEST_LENGTH, Dialect, Digest, Normaliser, stable_hash};
pub use fingerprint::{Fingerprinter, QueryId};
pub use format::format;
pub use kind::{Kind, kind};
pub use lexer::{Lexeme, Lexer, Reading, Token};
pub use mask::mask_secrets;
pub use prepared::SqlPrepared;
pub use redact::{printable, redact};
pub use session::{SessionSettings, SqlModes};
pub use tables::{TableName, Tables};
