//! A sysbench at work, and what it says.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::SysbenchError;

/// Lines in a message.
const LINES: usize = 6;

/// A sysbench at work; dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: File,
    script: String,
}

impl Running {
    /// Starts a command; what it says goes to a file without a name in a directory.
    ///
    /// # Errors
    /// The file cannot be made, or the program cannot be started.
    pub fn start(
        mut command: Command,
        stdin: Stdio,
        directory: &Path,
        script: &str,
    ) -> Result<Running, SysbenchError> {
        let failed = || SysbenchError::system(format!("make a file in {}", directory.display()));
        let log = tempfile::tempfile_in(directory).map_err(failed())?;
        let out = log.try_clone().map_err(failed())?;
        let err = log.try_clone().map_err(failed())?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(stdin).stdout(out).stderr(err).spawn();
        let child = child.map_err(SysbenchError::system(format!("start {program}")))?;
        Ok(Running { child, log, script: script.to_owned() })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The script that it runs.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// How it ended; `None` while it is at work.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, SysbenchError> {
        self.child.try_wait().map_err(SysbenchError::system("wait for sysbench"))
    }

    /// Waits for its end, and returns what it said.
    ///
    /// # Errors
    /// It failed; `how` says what it could not do.
    pub fn wait(mut self, how: &str) -> Result<String, SysbenchError> {
        let ended = self.child.wait().map_err(SysbenchError::system("wait for sysbench"))?;
        if ended.success() { self.said() } else { Err(self.failed(how)) }
    }

    /// Kills it.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn kill(&mut self) -> Result<(), SysbenchError> {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map(drop).map_err(SysbenchError::system("end sysbench"))
    }

    /// What it said so far.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn said(&self) -> Result<String, SysbenchError> {
        let read = self.log.metadata().and_then(|found| {
            let mut bytes = vec![0; usize::try_from(found.len()).unwrap_or(0)];
            self.log.read_exact_at(&mut bytes, 0).map(|()| bytes)
        });
        let bytes = read.map_err(SysbenchError::system("read what sysbench said"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What is to be told where it has failed.
    pub fn failed(&self, how: impl Into<String>) -> SysbenchError {
        told(&self.script, how, &self.said().unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be; where it fails the kernel does it when this process ends.
        let _ = self.kill();
    }
}

/// What is to be told of what it said.
pub(crate) fn told(script: &str, how: impl Into<String>, text: &str) -> SysbenchError {
    let script = script.to_owned();
    // As `lab.lua` and as sysbench itself say it.
    if text.contains("no such script: ") || text.contains("Cannot find benchmark ") {
        return SysbenchError::Script { script };
    }
    SysbenchError::Failed { script, how: how.into(), said: reason(text) }
}

/// The first lines that tell of an error, since each session can repeat them; where there are none the
/// last lines.
fn reason(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors = lines.iter().copied().filter(|line| line.starts_with("FATAL: "));
    let errors: Vec<&str> = errors.take(LINES).collect();
    match errors.is_empty() {
        true => lines[lines.len().saturating_sub(LINES)..].join("\n"),
        false => errors.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_and_without_one_the_end() {
        let many: String = (0..200).map(|n| format!("FATAL: error {n}\n")).collect();
        let said = reason(&format!("sysbench 1.0.20\n\nThreads started!\n{many}"));
        assert!(said.starts_with("FATAL: error 0\n") && said.lines().count() == LINES, "{said}");
        assert_eq!(reason("one\n\ntwo\n"), "one\ntwo");
    }
}
