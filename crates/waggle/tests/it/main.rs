//! The binary against real servers, as its users run it.
//!
//! Every test starts servers of its own. `cargo xtask soak` runs the same tests with more
//! statements and longer waits: see `size.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy sees tests in #[test] functions only"
)]
#![allow(clippy::print_stdout, reason = "what was measured is part of a test's result")]

mod bad_days;
mod exactness;
mod latency;
mod load;
mod pile_up;
mod rungs;
mod secrets;
mod server_digests;
mod size;
mod slow_log;
mod verified;
mod watched;
mod watching;
