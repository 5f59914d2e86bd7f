//! Tests against real servers of all five versions. A failure names the version.

mod connect;
mod count;
