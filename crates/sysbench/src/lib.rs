//! The program sysbench 1.0: finding it, telling it what to do, and what it says of it.
#![forbid(unsafe_code)]

mod error;
mod program;
mod running;

pub use error::SysbenchError;
pub use program::{Sysbench, Tables, anywhere};
pub use running::Running;
