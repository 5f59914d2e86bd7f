//! The overhead lab: published experiments, run again on the user's own server and hardware.
//!
//! A suite says what is compared under which load. A schedule puts its windows into an order that follows from a seed.
//! Each window is measured under the real sysbench, on private servers or on one in use, and stored as it was measured.
//! The report is computed from the stored windows.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod budget;
pub mod buffer_pool;
mod capacity;
pub mod engine;
mod error;
mod evidence;
pub mod gate;
mod in_use;
pub mod lengths;
pub mod load;
pub mod manifest;
mod measured_server;
pub mod meter;
mod metric;
pub mod needs;
pub mod redo;
pub mod report;
pub mod run;
pub mod run_dir;
pub mod run_info;
pub mod schedule;
mod server_option;
mod span;
mod started;
mod stored_run;
pub mod suite;
mod trial;
mod turns;
mod warm_up;
pub mod window;

pub use error::LabError;
pub use manifest::Manifest;
pub use measured_server::check_counters;
pub use metric::{Metric, More};
pub use stored_run::StoredRun;
pub use window::{Cell, Latency, Load, Measured, Window};
