//! The servers of this host: which run, what build they are, where that build keeps what we read.

pub mod arch;
pub mod discover;
pub mod elf;
pub mod instance;
pub mod layout;
pub mod process_memory;
pub mod pthread;
pub mod recognise;

pub use instance::{CurrentThdAt, Instance, InstanceError};
pub use process_memory::{Batch, LONGEST_PLACE, MemoryError, Place, ProcessMemory};
