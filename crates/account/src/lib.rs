//! From statements to intervals: each statement gets its digest and is counted.
//!
//! This crate does no input or output and reads no clock. It takes statements and times. `waggle
//! watch` does this work for every statement. The bench uses this crate too, so that it measures
//! the real price.
#![forbid(unsafe_code)]

mod books;
mod digests;
mod last;
mod texts;

pub use books::{Books, DIGESTS_MAX};
pub use digests::{Digests, Grouping};
pub use texts::{head_without_secrets, settings_of};

#[cfg(test)]
mod tests;
