//! The binary against real servers, as its users run it.
//!
//! Every test starts servers of its own. `cargo xtask soak` runs the same tests with more
//! statements and longer waits: see `size.rs`.
#![cfg(test)]

mod bad_days;
mod busy;
mod cut_texts;
mod digest_length;
mod exactness;
mod hidden;
mod hostile;
mod hostile_names;
mod load;
mod misread;
mod outputs;
mod pile_up;
mod prove;
mod prove_program;
mod rungs;
mod secrets;
mod server_digests;
mod size;
mod slow_log;
#[path = "../terminal/tmux.rs"]
#[expect(dead_code, reason = "the tests of the terminal view use all of it")]
mod tmux;
mod verified;
mod waiting_now;
mod watched;
mod watching;
