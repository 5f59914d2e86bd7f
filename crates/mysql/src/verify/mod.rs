//! Checks whether the captured statements are the ones that the server counted. Pure: two sets of
//! numbers in, a report out.
//!
//! The count by event name decides, or `Questions` less `COM_QUIT` if Performance Schema is off.
//! Digests come second, because the server itself sometimes miscounts them. A difference has its
//! reason if that is known. The report names what cannot be compared.

mod captured;
mod compare;
mod counts;
mod join;
mod json;
mod report;
mod shortfall;

pub use captured::{Calls, Captured, CapturedDigest, CapturedKey, Edge, Edges, Ended};
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
