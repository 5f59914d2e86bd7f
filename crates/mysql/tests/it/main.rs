//! Tests against real servers of all five versions. A failure names the version.
#![cfg(test)]

mod connect;
mod count;
mod who_waits;
