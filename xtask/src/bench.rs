//! `cargo xtask bench`: builds the bench and the binary that it measures, and runs it.
//!
//! The bench is a program of its own, since it needs clang and the kernel's headers and this one
//! must build without them.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs a bench with its arguments, such as `tap --pairs 40`; `--help` lists them.
///
/// # Errors
///
/// Where something cannot be built, or the bench fails.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--quiet", "--package", "waggle", "--package", "waggle-bench"];
    let built = Command::new(&cargo).args(build).status().context("cargo build")?;
    ensure!(built.success(), "the bench cannot be built: cargo xtask setup fetches what it needs");
    let run = ["run", "--quiet", "--package", "waggle-bench", "--"];
    let ended = Command::new(&cargo).args(run).args(arguments).status().context("cargo run")?;
    ensure!(ended.success(), "the bench failed");
    Ok(())
}
