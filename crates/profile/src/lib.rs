//! From samples of processor time, or of time off the processor, to answers: which digest, which functions, and how
//! much of it is conversion of character sets. And the same as folded stacks, as the rectangles of a flame graph, and as
//! a profile in the format of pprof.
//!
//! [`Collector`] takes samples and statements while they come, and addresses with what they are. What it has become in the
//! end is a [`Profile`].
#![forbid(unsafe_code)]

mod collector;
mod conversion;
mod flame;
mod folded;
mod functions;
mod pprof;
mod profile;
mod table;
#[cfg(test)]
mod tests;

pub use collector::{Collector, Taken};
pub use conversion::{Conversion, is_conversion};
pub use flame::{Flame, Frame, Kind, Label};
pub use folded::folded;
pub use functions::Used;
pub use pprof::{Span, pprof};
pub use profile::{Chain, Counts, Function, Owner, Profile, Stack, Work};
