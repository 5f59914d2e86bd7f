//! A client of the server that is watched: option files, one connection, the server's own
//! counters, and the comparison of what was captured with what the server counted.
//!
//! Nothing here is needed to capture; it serves `waggle verify`, the views that read
//! `performance_schema`, and whoever asks the server for the hash of a digest. It only reads: no
//! statement that it sends changes the server. Every statement that `verify` sends is counted and
//! marked, so that it can be taken out of the server's counters exactly. A password comes from an option file or a login path, never from an
//! argument, and is never printed.
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
