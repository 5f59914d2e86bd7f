//! The servers of this host: their processes, their builds, and where each build keeps its fields.

mod allowance;
pub mod arch;
mod batch;
pub mod breakpoint;
mod child;
pub mod digest_length;
pub mod discover;
pub mod elf;
mod file_id;
mod held_up;
mod inquiry;
pub mod instance;
pub mod layout;
mod loader;
mod maps;
mod namer;
mod names;
mod opened;
pub mod owner;
pub mod process_memory;
mod program;
pub mod pthread;
mod reader;
pub mod recognise;
mod refusal;
pub mod shift;
mod turns;
pub mod waiting;
pub mod x_protocol;

pub use batch::{Batch, LONGEST_PLACE, Place};
pub use child::{answer as answer_as_child, serve as serve_as_reader, use_children};
pub use instance::{CurrentThdAt, Instance, InstanceError};
pub use namer::{Named, Namer, Names, Told as ToldNames};
pub use names::ADDRESSES_MAX;
pub use process_memory::{MemoryError, ProcessMemory};
pub use reader::{durable_name, file_at, reader_cost, user};
