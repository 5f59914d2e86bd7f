//! `waggle read-process` and `waggle read-memory`: look into other processes for the waggle that started them. For
//! internal use.

use waggle_probes::servers;

use super::{Failure, Outcome};

/// The names of the commands.
const PROCESS: &str = "read-process";
const MEMORY: &str = "read-memory";

/// Looks into one process and its program, without any right.
pub(super) fn run() -> Result<Outcome, Failure> {
    servers::answer_as_child()?;
    Ok(Outcome::Done)
}

/// Reads the memory of any number of processes, and decodes none of it.
pub(super) fn read_memory() -> Result<Outcome, Failure> {
    servers::serve_as_reader()?;
    Ok(Outcome::Done)
}

/// From now on processes are looked into by this very program, started as these commands.
pub(super) fn use_children() {
    servers::use_children("/proc/self/exe".into(), PROCESS, MEMORY);
}
