//! From statements to intervals: the digest of every statement, and what was counted of it.
//!
//! This crate does no input or output and reads no clock: it is given statements and times. It is
//! the work that `waggle watch` does for every statement, so the bench, which states the price of
//! that work, does it by this crate too.
#![forbid(unsafe_code)]

mod books;
mod digests;

pub use books::Books;
pub use books::DIGESTS_MAX;
pub use digests::{Digests, Grouping};

#[cfg(test)]
mod tests;
