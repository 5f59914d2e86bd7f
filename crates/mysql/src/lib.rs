//! A client of the watched server: option files, one connection, the server's own counters, and the
//! comparison of captured with counted statements.
//!
//! Capturing does not need it. It serves `waggle verify`, the commands that read
//! `performance_schema`, and the lookup of digest hashes. It only reads: none of its statements
//! changes the server. `verify` counts and marks each of its statements, so they can be subtracted
//! exactly from the server's counters. A password comes from an option file or a login path, never
//! from an argument, and is never printed.
#![forbid(unsafe_code)]

pub mod connection;
pub mod counters;
pub mod history;
pub mod locks;
pub mod options;
pub mod rights;
mod secret;
pub mod verify;

pub use connection::{
    Connection, ConnectionError, DigestSession, Endpoint, ServerIdentity, why_no_digests,
};
pub use counters::{Counters, Difference};
pub use options::{Options, OptionsError, Sources};
pub use secret::Secret;
pub use verify::{Captured, Report, verify};
