//! Whether the threads of a process may run.

use std::path::PathBuf;

/// What holds a process as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Nothing: its threads run and wait as they like.
    Runs,
    /// A signal, such as SIGSTOP.
    Stopped,
    /// A debugger.
    Traced {
        /// Its process.
        by: u32,
    },
    /// A control group that is frozen.
    Frozen {
        /// The file by which it was.
        by: PathBuf,
    },
}

impl ProcessState {
    /// Its name in JSON.
    pub fn key(&self) -> &'static str {
        match self {
            ProcessState::Runs => "runs",
            ProcessState::Stopped => "stopped",
            ProcessState::Traced { .. } => "traced",
            ProcessState::Frozen { .. } => "frozen",
        }
    }

    /// Why nothing goes on in process `pid`, and what helps; `None` where it may run. The file is named by others, so
    /// this is no command to be copied.
    pub fn standstill(&self, pid: u32) -> Option<String> {
        Some(match self {
            ProcessState::Runs => return None,
            ProcessState::Stopped => {
                format!("STOPPED by a signal (SIGSTOP); to resume it: kill -CONT {pid}")
            }
            ProcessState::Traced { by } => {
                format!("STOPPED: a debugger (pid {by}) holds the process; resume it there")
            }
            ProcessState::Frozen { by } => {
                let word = if by.ends_with("freezer.state") { "THAWED" } else { "0" };
                format!(
                    "FROZEN with its control group; to thaw it write {word} to {}",
                    by.display()
                )
            }
        })
    }
}
