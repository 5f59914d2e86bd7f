//! Whether what was captured is what the server counted. Pure: two sets of numbers in, a report out.
//!
//! The count that decides is by event name, or `Questions` less `COM_QUIT` where Performance Schema
//! is off; digests come second, since the server itself miscounts them now and then. What differs
//! carries its reason where it is a known one; what cannot be compared is named.

mod captured;
mod compare;
mod counts;
mod join;
mod json;
mod report;
mod shortfall;

pub use captured::{Calls, Captured, CapturedDigest, CapturedKey, Edge};
pub use join::join_text;
pub use json::ReportJson;
pub use report::{Differing, Field, FieldSummary, Report, Source, Why};

use crate::Difference;

/// Compares what was captured between two readings of the counters with what the server counted.
pub fn verify(captured: &Captured, server: &Difference) -> Report {
    let mut report = counts::count(captured, server);
    compare::digests(captured, server, &mut report);
    report
}

#[cfg(test)]
mod tests;
