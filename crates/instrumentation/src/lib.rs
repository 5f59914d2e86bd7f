//! The server's instrumentation under control: what is set in Performance Schema and which counters of
//! InnoDB are on, profiles of what shall be set, the changes between the two, a journal of them, and the way back.
//!
//! Nothing is changed that is not in a journal on the disk before. The tables of settings are
//! described once, in [`table`]; reading, comparing, writing, and undoing know only tables, keys and
//! settings.
#![forbid(unsafe_code)]

pub mod activity;
pub mod apply;
pub mod change;
pub mod changeable;
pub mod class;
pub mod cost;
pub mod filter;
pub mod full;
pub mod hold;
pub mod journal;
pub mod life;
pub mod metrics;
pub mod pattern;
pub mod plan;
pub mod profile;
mod rebuild;
pub mod sessions;
pub mod state;
pub mod statements;
pub mod status;
pub mod table;
pub mod undo;
pub mod unseen;
pub mod written;

pub use change::{Change, difference};
pub use plan::{Plan, PlanError, Wanted};
pub use state::State;
pub use table::Table;
