//! The children of waggle, which do for it what others may turn against it. For internal use: `read-process` and
//! `read-memory` look into other processes, `ask-server` is a connection.

use waggle_mysql::connection;
use waggle_probes::servers;

use super::{Failure, Outcome, stop_on_signal};

/// The names of the commands.
const PROCESS: &str = "read-process";
const MEMORY: &str = "read-memory";
const SERVER: &str = "ask-server";

/// Looks into one process and its program, without any right.
pub(super) fn read_process() -> Result<Outcome, Failure> {
    servers::answer_as_child()?;
    Ok(Outcome::Done)
}

/// Reads the memory of any number of processes, and decodes none of it.
pub(super) fn read_memory() -> Result<Outcome, Failure> {
    servers::serve_as_reader()?;
    Ok(Outcome::Done)
}

/// Logs in to a server, and asks it without any right.
pub(super) fn ask_server() -> Result<Outcome, Failure> {
    // Who ends all processes of a service ends it by ending waggle: what that does at its end needs the connection.
    let _ignored = stop_on_signal()?;
    connection::serve_as_child()?;
    Ok(Outcome::Done)
}

/// From now on this very program is started as these commands.
pub(super) fn use_them() {
    servers::use_children("/proc/self/exe".into(), PROCESS, MEMORY);
    connection::use_children("/proc/self/exe".into(), SERVER);
}
