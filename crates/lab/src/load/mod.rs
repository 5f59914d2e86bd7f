//! The load: the real sysbench, in sessions that can stand still, be counted and be given a rate.
//!
//! sysbench 1.0 runs a small script of ours (`lab.lua`), which runs a stock script unchanged and
//! replaces the loop around it. Between windows its sessions stand still, connected and with their
//! statements prepared, so that a window can follow a change of settings at once.

mod age;
mod board;
mod count;
mod driver;
mod error;
mod histogram;
mod reach;
mod sysbench;
mod traffic;

pub use age::{AGE_ROWS, age};
pub use count::Count;
pub use driver::{Driver, Pace};
pub use error::LoadError;
pub use reach::Reach;
pub(crate) use reach::SCHEMA;
pub use sysbench::{Request, prepare};
pub(crate) use traffic::Traffic;
pub use waggle_sysbench::{Sysbench, SysbenchError};
