//! What needs the host's clocks to itself: the tap's times against the server's, and a wall clock that
//! is stepped. These tests run alone, one after another.
#![cfg(test)]
#![allow(dead_code, reason = "the other tests use all of what they share")]

mod latency;
#[path = "../it/load.rs"]
mod load;
#[path = "../it/size.rs"]
mod size;
mod stepped;
#[path = "../it/verified.rs"]
mod verified;
#[path = "../it/watched.rs"]
mod watched;
#[path = "../it/watching.rs"]
mod watching;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps the other tests waiting.
fn alone() -> MutexGuard<'static, ()> {
    static CLOCKS: Mutex<()> = Mutex::new(());
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}
