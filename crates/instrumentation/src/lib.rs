//! Controls the server's instrumentation: the settings of Performance Schema and the counters of
//! InnoDB. Profiles say what should be on; a plan has the changes; a journal records them and leads
//! back.
//!
//! Nothing changes before it is in a journal on disk. [`table`] describes the setup tables once.
//! Reading, comparing, writing and undoing know only tables, keys and settings.
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
mod left_connection;
pub mod locked;
pub mod metrics;
pub mod pattern;
pub mod plan;
pub mod profile;
mod rebuild;
pub mod server_start;
pub mod sessions;
pub mod state;
pub mod statements;
pub mod status;
pub mod table;
mod trusted;
pub mod undo;
pub mod unseen;
pub mod variables;
pub mod written;

pub use change::{Change, difference};
pub use plan::{Plan, PlanError, Wanted};
pub use state::State;
pub use table::Table;
