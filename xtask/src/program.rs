//! Running other programs.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a program and gives what it printed.
///
/// # Errors
///
/// It cannot be started, or it failed: then with all that it said.
pub(crate) fn checked(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {name}: is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let erred = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}):\n{said}{erred}", output.status);
    }
    Ok(said)
}
