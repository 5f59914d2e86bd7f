//! The installed `pt-query-digest`, loaded once by perl and asked round after round.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Where Debian's `percona-toolkit` puts it.
const TOOL: &str = "/usr/bin/pt-query-digest";
const DRIVER: &str = include_str!("pt-query-digest.pl");

/// A perl that fingerprints one list of statements whenever it is asked.
pub(crate) struct Tool {
    perl: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Tool {
    /// Starts it; its files are made in `directory`.
    pub(crate) fn start(statements: &[String], directory: &Path) -> Result<Tool> {
        ensure!(
            Path::new(TOOL).exists(),
            "{TOOL} is missing: cargo xtask setup installs it (on Debian: percona-toolkit)"
        );
        let (driver, list) = (directory.join("driver.pl"), directory.join("statements"));
        fs::write(&driver, DRIVER).with_context(|| driver.display().to_string())?;
        fs::write(&list, statements.join("\n")).with_context(|| list.display().to_string())?;
        let mut perl = Command::new("perl")
            .args([driver.as_path(), Path::new(TOOL), &list])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("perl cannot be run: install it")?;
        let input = perl.stdin.take().context("no input of perl")?;
        let output = BufReader::new(perl.stdout.take().context("no output of perl")?);
        Ok(Tool { perl, input, output })
    }

    /// Fingerprints every statement once; the CPU time in seconds.
    pub(crate) fn round(&mut self) -> Result<f64> {
        writeln!(self.input, "again").context("perl has ended")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let seconds = line.split(' ').next().and_then(|seconds| seconds.parse().ok());
        seconds.with_context(|| format!("perl did not say how long it took: `{line}`"))
    }

    /// Its version, as it prints it.
    pub(crate) fn version() -> Result<String> {
        let output = Command::new(TOOL).arg("--version").output().context(TOOL)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // It ends by itself with its input; nothing is lost where it did not.
        let _ = (self.perl.kill(), self.perl.wait());
    }
}
