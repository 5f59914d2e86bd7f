//! What an event of Performance Schema costs, measured on a server that nobody else uses.
//!
//! Sessions of our own read rows by their key. Short windows with a class of instruments and without
//! it follow each other in a random order; what is compared is the processor time of the server per
//! statement. Nothing here may be done to a server in use: it sets its instruments without a journal.
#![forbid(unsafe_code)]

mod arm;
mod awake;
mod block;
mod calibrate;
mod load;

pub use arm::Arm;
pub use awake::Awake;
pub use block::{Block, Windows, rounds_max};
pub use calibrate::{CalibrationError, Request, measure, start_knowing};
pub use load::PointSelects;
