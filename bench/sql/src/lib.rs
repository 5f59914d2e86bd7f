//! The statements of the bench, and what works on them inside this process.
#![forbid(unsafe_code)]

pub mod load;
pub mod subject;
