//! The nouns of waggle: what a server is, what a statement is, what was read and what was lost.
//!
//! This crate does no input or output, starts no task and reads no clock; it is given bytes and
//! times. Domain types are not serialisable on purpose: what leaves the program is a type of the
//! room that prints it.
#![forbid(unsafe_code)]

mod cost;
mod histogram;
mod interval;
mod loss;
mod reading;
mod sample;
mod server;
mod session;
mod settings;
mod statement;
mod version;

pub use cost::Cost;
pub use histogram::Histogram;
pub use interval::{DigestKey, DigestName, DigestTotals, DigestsMax, Interval, Sum};
pub use loss::{Loss, Losses};
pub use reading::Reading;
pub use sample::{Sample, Samples};
pub use server::{BuildKey, Clock, Flavour, Server};
pub use session::RunningStatement;
pub use settings::{CharsetName, SessionSettings};
pub use statement::{Command, Identity, Origin, ServerStatus, Statement, StatementKey, Text};
pub use version::ServerVersion;
