//! `cargo xtask bench`: hands over to the programs below `bench/`, which need clang and the probes.

use std::process::Command;

use anyhow::{Context, Result, bail};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `tap`, then its own options; `cargo xtask bench tap --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let ended = Command::new("cargo")
        .args(["run", "--quiet", "--package", "waggle-bench", "--"])
        .args(&args.arguments)
        .status()
        .context("cargo")?;
    if ended.success() { Ok(()) } else { bail!("the bench ended with {ended}") }
}
