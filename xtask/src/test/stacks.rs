//! Where the threads of a process are.

use std::process::Command;

use crate::program::checked;

/// Calls of a thread.
const CALLS: &str = "12";

/// The stack of each thread, or why it cannot be told.
pub(crate) fn of(process: u32) -> String {
    // A thread that the kernel does not let go would hold it for ever.
    let mut debugger = Command::new("timeout");
    debugger.args([
        "--kill-after=5",
        "60",
        "gdb",
        "-batch",
        "-nx",
        "-p",
        &process.to_string(),
        "-ex",
    ]);
    debugger.arg(format!("thread apply all backtrace {CALLS}"));
    match checked(&mut debugger) {
        Ok(said) => {
            let told = |line: &&str| line.starts_with("Thread ") || line.starts_with('#');
            said.lines().filter(told).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("{error:#}"),
    }
}
