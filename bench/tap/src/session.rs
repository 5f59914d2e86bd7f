//! A session of its own for the run, behind the threads of the kernel.
//!
//! The load keeps every processor busy with threads that sleep and wake all the time. Where the
//! scheduler groups tasks by session (sched(7), "The autogroup feature"), the kernel's own worker
//! and RCU threads were seen to wait for minutes behind such a group (Linux 6.18, 2 processors),
//! and with them every detach of a breakpoint. A group with a higher nice value gives way to them,
//! and inside it nothing changes.

use std::fs;
use std::io;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The nice value of the group: weight 110 against 1,024 of a group that nobody has touched
/// (`sched_prio_to_weight` of the kernel).
const NICE: &str = "10";

/// Runs this program again with the same arguments and `flag` in a session of its own, which ends
/// with this process.
pub(crate) fn again(flag: &str) -> Result<()> {
    let program = std::env::current_exe()?;
    let ended = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "setsid"])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .arg(flag)
        .status()
        .context("setpriv (of util-linux) cannot be run: cargo xtask setup installs it")?;
    ensure!(ended.success(), "the run ended with {ended}");
    Ok(())
}

/// Lets the session of this process give way to the kernel's threads. Where tasks are not grouped
/// by session there is nothing to do.
pub(crate) fn give_way() -> Result<()> {
    match fs::write("/proc/self/autogroup", NICE) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("/proc/self/autogroup")
        }
        _ => Ok(()),
    }
}
