//! The overhead lab: published experiments, run again on the user's own server and hardware.
//!
//! A suite says what is compared under which load. It becomes a schedule of windows, in an order that
//! follows from a seed; each window is measured on private servers under the real sysbench and kept as
//! it was measured. What the report says is computed from the windows that were kept.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod begun;
pub mod budget;
pub mod buffer_pool;
mod capacity;
pub mod engine;
mod error;
mod evidence;
pub mod facts;
pub mod foreign;
pub mod gate;
pub mod kept;
mod kept_run;
pub mod lengths;
mod life;
pub mod load;
pub mod meter;
mod metric;
pub mod needs;
pub mod redo;
pub mod report;
pub mod schedule;
mod server_option;
mod span;
mod started;
pub mod suite;
pub mod trial;
mod turns;
mod warm_up;
pub mod window;

pub use begun::Begun;
pub use error::LabError;
pub use kept_run::KeptRun;
pub use life::{Origin, check_counters, connect};
pub use metric::{Metric, More};
pub use window::{Cell, Latency, Load, Measured, Window};
