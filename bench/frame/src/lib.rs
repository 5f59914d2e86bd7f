//! What every bench does alike: what it is told, how it takes turns, how far it is, how it asks `waggle prove`, on what it
//! measured, and what it keeps.
#![forbid(unsafe_code)]

mod machine;
mod page;
mod quick;
mod run;
mod trial;
mod turns;
mod waggle;

pub use machine::{in_words, machine};
pub use page::{Limit, interval, kept, limits, signed, span, table};
pub use quick::Quick;
pub use run::{Options, Run, ended, write};
pub use trial::{number, price, prove, rounded};
pub use turns::{rounds, thread_cpu};
pub use waggle::waggle;

/// Of all intervals.
pub const CONFIDENCE: f64 = 0.95;
